/**
 * Small questions to a disk and small changes of it that more than one room needs.
 */
import { Effect, FileSystem } from "effect"
import { rmdir } from "node:fs/promises"
import { errnoOf } from "../../domain/Errno.ts"

export { errnoOf }

/** What the disk says of a path, a final symlink not followed; undefined when nothing is there. */
export const infoAt = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.lstat(at).pipe(
    Effect.catchTag("PlatformError", (error) => {
      const code = errnoOf(error)
      return code === "ENOENT" || code === "ENOTDIR" ? Effect.succeed(undefined) : Effect.fail(error)
    })
  )
})

/** The type of what stands at a path, a final symlink not followed; null when nothing can be seen there. */
export const typeAt = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.lstat(at).pipe(
    Effect.map((info) => info.type),
    Effect.catchTag("PlatformError", () => Effect.succeed(null))
  )
})

/** Of a small file that is read whole, in bytes. */
const maxWhole = 64 * 1024 * 1024

/**
 * The bytes of a regular file, symlinks followed; null for anything else and for one that is too large. The type is asked
 * first: opening a FIFO that somebody planted would wait for its writer for ever.
 */
export const bytesAt = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.stat(at).pipe(
    Effect.flatMap((info) =>
      info.type === "File" && Number(info.size) <= maxWhole ? fs.readFile(at) : Effect.succeed(null)
    ),
    Effect.catchTag("PlatformError", () => Effect.succeed(null))
  )
})

/** The same as text. */
export const textAt = (at: string) =>
  Effect.map(bytesAt(at), (bytes) => (bytes === null ? null : new TextDecoder().decode(bytes)))

/** Whether a path leads to a directory, symlinks followed. */
export const isDirectory = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.stat(at).pipe(
    Effect.map((info) => info.type === "Directory"),
    Effect.catchTag("PlatformError", () => Effect.succeed(false))
  )
})

/** Makes a directory in one that is there. Whether it was made: something of that name may be there already. */
export const makeDirectoryOnce = Effect.fnUntraced(function* (directory: string, mode?: number) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.makeDirectory(directory, mode === undefined ? {} : { mode }).pipe(
    Effect.as(true),
    Effect.catchTag("PlatformError", (error) =>
      errnoOf(error) === "EEXIST" ? Effect.succeed(false) : Effect.fail(error)
    )
  )
})

/** Removes a directory if nothing is in it, and says whether it did: what comes in between is not removed with it. */
export const removeIfEmpty = Effect.fnUntraced(function* (directory: string) {
  return yield* Effect.promise(() =>
    rmdir(directory).then(
      () => true,
      () => false
    )
  )
})

/** The permission bits of a replaced file stay what they are, but for the executable ones. */
export const modeFor = (mode: number, executable: boolean): number => {
  const kept = mode & 0o7777
  if (((kept & 0o100) !== 0) === executable) return kept
  return executable ? kept | ((kept & 0o444) >> 2) : kept & ~0o111
}
