/**
 * What a dying writer left behind is put right, under the run's lock.
 */
import { Effect, type FileSystem } from "effect"
import { artifactNames } from "../../domain/Result.ts"
import type { StoreError } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { failAt, invalid } from "./Failure.ts"

/** What `--accept-loss` cut off the journal, kept as it was. */
export const lostName = "events.lost.jsonl"

const newline = 0x0a
const isTemporary = /^\..+\.tmp$/

/** Removes half-written files and directories: their names say that nobody refers to them. */
export const removeTemporaries = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  const { fs, path } = disk
  for (const place of [directory, path.join(directory, "blobs")]) {
    if ((yield* disk.typeOf(place)) !== "Directory") continue
    const names = yield* fs.readDirectory(place).pipe(failAt(place))
    for (const name of names.filter((each) => isTemporary.test(each))) {
      const file = path.join(place, name)
      yield* fs.remove(file, { recursive: true, force: true }).pipe(failAt(file))
    }
  }
})

/** Hands over the bytes of a file from `offset` on, in pieces, as long as they are wanted. */
const readFrom = Effect.fnUntraced(function* (
  disk: Disk,
  file: string,
  offset: number,
  use: (bytes: Uint8Array) => Effect.Effect<void, StoreError>,
  limit = Number.MAX_SAFE_INTEGER
) {
  yield* Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* disk.open(file, "r")
      const buffer = new Uint8Array(1024 * 1024)
      for (let at = offset; at - offset < limit;) {
        const count = yield* handle.read(buffer, { position: BigInt(at) }).pipe(failAt(file))
        if (count === 0) return
        yield* use(buffer.subarray(0, count))
        at += count
      }
    })
  )
})

/** Whole lines behind an offset of a file, within `limit` bytes of it, and whether the file goes on behind those. */
export const linesBehind = Effect.fnUntraced(function* (
  disk: Disk,
  file: string,
  offset: number,
  limit: number
) {
  let lines = 0
  let bytes = 0
  if ((yield* disk.typeOf(file)) !== "File") return { lines, more: false }
  yield* readFrom(
    disk,
    file,
    offset,
    (piece) =>
      Effect.sync(() => {
        bytes += piece.length
        for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, at + 1)) lines++
      }),
    limit
  )
  return { lines, more: bytes >= limit }
})

/** Keeps what is behind an offset of the journal in a file beside it, durable before anything is cut off. */
export const keepLost = Effect.fnUntraced(function* (disk: Disk, directory: string, offset: number) {
  const file = disk.path.join(directory, artifactNames.events)
  const lost = disk.path.join(directory, lostName)
  if ((yield* disk.typeOf(file)) !== "File") return
  const { size } = yield* disk.fs.stat(file).pipe(failAt(file))
  if (Number(size) <= offset) return
  const type = yield* disk.typeOf(lost)
  if (type !== null && type !== "File") return yield* invalid(lost, `refused: ${lost} is no plain file`)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const out = yield* disk.open(lost, "a")
      yield* readFrom(disk, file, offset, (bytes) => out.writeAll(bytes).pipe(failAt(lost)))
      yield* out.sync.pipe(failAt(lost))
    })
  )
  yield* disk.syncDirectory(directory)
})

/** Ends the journal at an offset, durably, and makes what is before it durable as well. */
export const cutAt = Effect.fnUntraced(function* (disk: Disk, directory: string, offset: number) {
  const file = disk.path.join(directory, artifactNames.events)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const handle: FileSystem.File = yield* disk.open(file, "a")
      const size = Number((yield* handle.stat.pipe(failAt(file))).size)
      if (size > offset) yield* handle.truncate(offset).pipe(failAt(file))
      yield* handle.sync.pipe(failAt(file))
    })
  )
})
