/**
 * Whether a journal still is what its writer made, for the price of reading and hashing it: every line is held by the
 * one after it, and the last by its hash, so nothing has to be understood.
 */
import { Effect } from "effect"
import type { Digest } from "../../domain/Ids.ts"
import { maxLineBytes, noLine } from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"
import { sha256 } from "./Hash.ts"

const chunkBytes = 1024 * 1024
const newline = 0x0a
const previousOf = /^\{"version":1,"sequence":(\d{1,15}),"previous":"([0-9a-f]{64})",/
/** Longer than what comes before the end of `previous`. */
const headerBytes = 160

/** The hash of the last line when all lines hang together and nothing is behind them; null otherwise. */
export const chainEnd = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  const file = disk.path.join(directory, artifactNames.events)
  if ((yield* disk.typeOf(file)) !== "File") return null
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* disk.open(file, "r")
      const latin1 = new TextDecoder("latin1")
      let hash: Digest = noLine
      let sequence = -1
      let buffer = new Uint8Array(chunkBytes)
      let filled = 0
      for (;;) {
        if (filled > maxLineBytes) return null
        if (filled === buffer.length) {
          const larger = new Uint8Array(2 * filled)
          larger.set(buffer)
          buffer = larger
        }
        const count = yield* handle.read(buffer.subarray(filled)).pipe(failAt(file))
        if (count === 0) return filled === 0 ? hash : null
        filled += count
        const bytes = buffer.subarray(0, filled)
        let from = 0
        for (let to = bytes.indexOf(newline); to !== -1; to = bytes.indexOf(newline, from)) {
          const found = previousOf.exec(latin1.decode(bytes.subarray(from, Math.min(to, from + headerBytes))))
          if (found === null || Number(found[1]) !== sequence + 1 || found[2] !== hash) return null
          hash = sha256(bytes.subarray(from, to + 1))
          sequence++
          from = to + 1
        }
        buffer.copyWithin(0, from, filled)
        filled -= from
      }
    })
  )
})
