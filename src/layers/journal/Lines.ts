/**
 * One line of a journal by its sequence, without reading what comes before it.
 */
import { Effect, type FileSystem } from "effect"
import { maxLineBytes } from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { StoreError } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { damaged, failAt } from "./Failure.ts"

const windowBytes = 64 * 1024
const newline = 0x0a

/** The beginning of every line, whichever version its envelope has. */
const headerBytes = 64
const header = /^\{"version":\d{1,15},"sequence":(\d{1,15}),/

export interface Found {
  /** With its newline; null when no whole line has the sequence. */
  readonly line: Uint8Array | null
  /** The last whole line that was seen on the way; -1 when there was none. */
  readonly last: number
}

/** Looks for a line by guessing and by halving the file: the reads grow with the logarithm of its length at most. */
export const findLine = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  wanted: number
): Effect.fn.Return<Found, StoreError> {
  const file = disk.path.join(directory, artifactNames.events)
  if ((yield* disk.typeOf(file)) !== "File") return yield* damaged(file, `no journal at ${file}`)
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* disk.open(file, "r")
      const size = Number((yield* handle.stat.pipe(failAt(file))).size)

      const latin1 = new TextDecoder("latin1")
      /** Bytes from `at` on, fewer at the end of the file. */
      const read = (at: number, length: number) =>
        readAt(handle, at, Math.min(length, size - at)).pipe(failAt(file))
      const sequenceOf = (line: Uint8Array, at: number) => {
        const sequence = header.exec(latin1.decode(line.subarray(0, headerBytes)))?.[1]
        return sequence === undefined
          ? Effect.fail(damaged(file, `there is no line of a journal at byte ${at} of ${file}`))
          : Effect.succeed(Number(sequence))
      }
      const sequenceAt = (at: number) => Effect.flatMap(read(at, headerBytes), (line) => sequenceOf(line, at))
      /** The offset behind the first newline at or behind `from`; null when there is none before `to`. */
      const behindNewline = Effect.fnUntraced(function* (from: number, to: number) {
        for (let at = from; at < to; at += windowBytes) {
          if (at - from > maxLineBytes)
            return yield* damaged(file, `a line around byte ${from} of ${file} does not end`)
          const found = (yield* read(at, Math.min(windowBytes, to - at))).indexOf(newline)
          if (found !== -1) return at + found + 1
        }
        return null
      })

      /** The first whole line behind a newline at or behind `from`, when it begins before `to`. */
      const lineBehind = Effect.fnUntraced(function* (from: number, to: number) {
        const bytes = yield* read(from, windowBytes)
        const first = bytes.indexOf(newline) + 1
        if (first > 0 && from + first >= to) return null
        // Mostly one look is enough.
        if (first > 0 && bytes.includes(newline, first))
          return { start: from + first, sequence: yield* sequenceOf(bytes.subarray(first), from + first) }
        const start = yield* behindNewline(from, to - 1)
        if (start === null || (yield* behindNewline(start, size)) === null) return null
        return { start, sequence: yield* sequenceAt(start) }
      })

      // A whole line begins at `low`, and the wanted one begins there or between the two.
      let low = 0
      let high = size
      let sequence = 0
      /** Bytes a line, as far as was seen. */
      let average = Infinity
      for (let look = 0; high - low > windowBytes && (wanted - sequence) * average > windowBytes; look++) {
        const middle = low + Math.floor((high - low) / 2)
        const guess = low + Math.floor((wanted - sequence) * average - windowBytes / 2)
        // A guess is mostly right; every other look halves what is left, for when it is not.
        const probe = look % 2 === 1 && guess > low && guess < high ? guess : middle
        const found = yield* lineBehind(probe - 1, high)
        if (found !== null) average = found.start / Math.max(found.sequence, 1)
        if (found === null || found.sequence > wanted) high = probe
        else {
          low = found.start
          sequence = found.sequence
        }
      }
      let last = -1
      for (let at = low; at < size;) {
        const bytes = yield* read(at, windowBytes)
        const first = bytes.indexOf(newline) + 1
        const end = first > 0 ? at + first : yield* behindNewline(at + bytes.length, size)
        if (end === null) break
        // Whole lines of the window, or the one that is longer than it.
        const lines =
          first > 0 ? bytes.subarray(0, bytes.lastIndexOf(newline) + 1) : yield* read(at, end - at)
        for (let from = 0; from < lines.length;) {
          const to = lines.indexOf(newline, from) + 1
          const line = lines.subarray(from, to)
          last = yield* sequenceOf(line, at + from)
          if (last === wanted) return { line, last }
          if (last > wanted) return { line: null, last }
          from = to
        }
        at += lines.length
      }
      return { line: null, last }
    })
  )
})

const readAt = Effect.fnUntraced(function* (handle: FileSystem.File, at: number, length: number) {
  const bytes = Buffer.allocUnsafeSlow(Math.max(0, length))
  let filled = 0
  while (filled < bytes.length) {
    const count = yield* handle.read(bytes.subarray(filled), { position: BigInt(at + filled) })
    if (count === 0) break
    filled += count
  }
  return bytes.subarray(0, filled)
})
