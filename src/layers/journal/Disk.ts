/**
 * Writes that survive power loss, and reads that are bounded. Symbolic links are never followed.
 */
import type { Scope } from "effect"
import { Effect, FileSystem, Path } from "effect"
import { shownName } from "../../domain/Text.ts"
import { StoreError } from "../../services/RunStore.ts"
import { failAt, invalid, isTaken } from "./Failure.ts"

export const directoryMode = 0o700
export const fileMode = 0o600

export interface Disk {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** Makes the names in a directory durable. */
  readonly syncDirectory: (directory: string) => Effect.Effect<void, StoreError>
  /** Makes a directory and its missing parents; new names are durable when this returns. */
  readonly makeDirectories: (directory: string) => Effect.Effect<void, StoreError>
  /** Opens a file for this user alone. */
  readonly open: (
    file: string,
    flag: FileSystem.OpenFlag
  ) => Effect.Effect<FileSystem.File, StoreError, Scope.Scope>
  /** Writes a file under a temporary name beside it, then renames it: readers see the old or the new one. With
   * `synced` the content is durable before the name changes; the name itself is durable with the directory. */
  readonly replace: (
    file: string,
    content: Uint8Array,
    options: { readonly synced: boolean }
  ) => Effect.Effect<void, StoreError>
  /** The type of what a name is, without following it; null when there is nothing. */
  readonly typeOf: (path: string) => Effect.Effect<FileSystem.File.Type | null, StoreError>
  /** A whole regular file; null when it is missing, no regular file, or longer than `limit` bytes. */
  readonly read: (file: string, limit: number) => Effect.Effect<Uint8Array | null, StoreError>
}

export const makeDisk: Effect.Effect<Disk, never, FileSystem.FileSystem | Path.Path> = Effect.gen(
  function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path

    const open: Disk["open"] = (file, flag) =>
      fs.open(file, { flag, mode: fileMode, noFollow: true }).pipe(failAt(file))

    const syncDirectory: Disk["syncDirectory"] = (directory) =>
      Effect.scoped(Effect.flatMap(fs.open(directory), (handle) => handle.sync)).pipe(failAt(directory))

    const makeDirectories: Disk["makeDirectories"] = Effect.fnUntraced(function* (directory) {
      if (yield* fs.exists(directory).pipe(failAt(directory))) return
      const parent = path.dirname(directory)
      yield* makeDirectories(parent)
      yield* fs.makeDirectory(directory, { mode: directoryMode }).pipe(
        Effect.catchTag("PlatformError", (error) =>
          error.reason._tag === "AlreadyExists" ? Effect.void : Effect.fail(error)
        ),
        failAt(directory)
      )
      yield* syncDirectory(parent)
    })

    const openTemporary = (temporary: string) =>
      open(temporary, "wx").pipe(
        // One writer holds the run's lock, so a temporary file that is there was left by one that died.
        Effect.catchIf(isTaken, () =>
          Effect.andThen(fs.remove(temporary).pipe(failAt(temporary)), open(temporary, "wx"))
        )
      )
    const replace: Disk["replace"] = Effect.fnUntraced(function* (file, content, { synced }) {
      const temporary = path.join(path.dirname(file), `.${path.basename(file)}.tmp`)
      const write = Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* openTemporary(temporary)
          yield* handle.writeAll(content).pipe(failAt(file))
          if (synced) yield* handle.sync.pipe(failAt(file))
        })
      )
      yield* write.pipe(
        Effect.andThen(fs.rename(temporary, file).pipe(failAt(file))),
        // What matters is why the write failed, not whether tidying up did too.
        Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true })))
      )
    })

    const infoOf = (name: string): Effect.Effect<FileSystem.File.Info | null, StoreError> =>
      fs.lstat(name).pipe(
        Effect.catchTag("PlatformError", (error) =>
          error.reason._tag === "NotFound" ? Effect.succeed(null) : Effect.fail(error)
        ),
        failAt(name)
      )
    const typeOf: Disk["typeOf"] = (name) => Effect.map(infoOf(name), (info) => info?.type ?? null)

    const read: Disk["read"] = Effect.fnUntraced(function* (file, limit) {
      // Opening a FIFO would wait for its writer, so the type is asked first.
      const info = yield* infoOf(file)
      const size = Number(info?.size ?? 0)
      if (info?.type !== "File" || size > limit) return null
      return yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* open(file, "r")
          // Handed out only when it was filled, so nothing of before is seen.
          const bytes = Buffer.allocUnsafeSlow(size)
          let filled = 0
          while (filled < size) {
            const count = yield* handle.read(bytes.subarray(filled)).pipe(failAt(file))
            if (count === 0) return null
            filled += count
          }
          return bytes
        })
      )
    })

    return { fs, path, open, syncDirectory, makeDirectories, replace, typeOf, read }
  }
)

/** Fails unless a path is a real directory. */
export const demandDirectory = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  const type = yield* disk.typeOf(directory)
  if (type === "Directory") return
  if (type === null)
    return yield* new StoreError({
      reason: "not_found",
      path: directory,
      message: `there is no ${shownName(directory)}`
    })
  return yield* invalid(
    directory,
    type === "SymbolicLink"
      ? `refused: ${shownName(directory)} is a symbolic link`
      : `refused: ${shownName(directory)} is no directory`
  )
})
