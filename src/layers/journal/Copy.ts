/**
 * Whole directories of one bundle taken over into another.
 */
import { Effect } from "effect"
import { demandDirectory, type Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"

const concurrency = 8

/** Names in the order in which they are copied: in a repository that is written meanwhile, whatever points at an object
 * is older than the object's copy. */
const inOrder = (names: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...names.filter((name) => name !== "objects"),
  ...names.filter((name) => name === "objects")
]

/** What another process is about to rename or remove. */
const isPassing = (name: string): boolean => name.endsWith(".lock") || name.startsWith("tmp_")

const copyFile = Effect.fnUntraced(function* (disk: Disk, from: string, to: string, synced: boolean) {
  yield* disk.fs.copyFile(from, to).pipe(failAt(to))
  if (synced)
    yield* Effect.scoped(Effect.flatMap(disk.open(to, "r"), (handle) => handle.sync.pipe(failAt(to))))
})

const copyInto = Effect.fnUntraced(function* (
  disk: Disk,
  from: string,
  to: string,
  synced: boolean
): Effect.fn.Return<void, Effect.Error<ReturnType<typeof copyFile>>> {
  const { fs, path } = disk
  const mode = (yield* fs.lstat(from).pipe(failAt(from))).mode & 0o777
  // What is copied into it has to be written first, whatever its own permissions are.
  yield* fs.makeDirectory(to, { mode: 0o700 | mode }).pipe(failAt(to))
  const types = new Map(
    (yield* fs.readDirectoryEntries(from).pipe(failAt(from))).map(({ name, type }) => [name, type])
  )
  const names = inOrder([...types.keys()].filter((name) => !isPassing(name)))
  const plain = names.filter((name) => types.get(name) !== "Directory")
  yield* Effect.forEach(
    plain,
    (name) => {
      const [source, target] = [path.join(from, name), path.join(to, name)]
      if (types.get(name) === "File") return copyFile(disk, source, target, synced)
      if (types.get(name) !== "SymbolicLink") return Effect.void
      return fs.readLink(source).pipe(
        Effect.flatMap((link) => fs.symlink(link, target)),
        failAt(target)
      )
    },
    { concurrency, discard: true }
  )
  for (const name of names)
    if (types.get(name) === "Directory")
      yield* copyInto(disk, path.join(from, name), path.join(to, name), synced)
  if (synced) yield* disk.syncDirectory(to)
})

/**
 * Copies a directory under its own name into another one, which has it as a whole or not at all. Nothing is hard-linked,
 * symbolic links stay as they are. `synced`: the content survives power loss when the name does.
 */
export const takeOver = Effect.fnUntraced(function* (
  disk: Disk,
  name: string,
  from: string,
  into: string,
  synced: boolean
) {
  const source = disk.path.join(from, name)
  const target = disk.path.join(into, name)
  // What somebody put in its place would lead whoever works there elsewhere.
  if ((yield* disk.typeOf(target)) !== null) return yield* demandDirectory(disk, target)
  if ((yield* disk.typeOf(source)) !== "Directory") return
  const temporary = disk.path.join(into, `.${name}.tmp`)
  yield* disk.fs.remove(temporary, { recursive: true, force: true }).pipe(failAt(temporary))
  yield* copyInto(disk, source, temporary, synced)
  yield* disk.fs.rename(temporary, target).pipe(failAt(target))
  yield* disk.syncDirectory(into)
})

/** Writes the beginnings of some files, one behind the other, as one file: durable before it has its name. */
export const joinFiles = Effect.fnUntraced(function* (
  disk: Disk,
  parts: ReadonlyArray<{ readonly file: string; readonly length: number }>,
  target: string
) {
  const temporary = disk.path.join(disk.path.dirname(target), `.${disk.path.basename(target)}.tmp`)
  yield* disk.fs.remove(temporary, { force: true }).pipe(failAt(temporary))
  yield* Effect.scoped(
    Effect.gen(function* () {
      const out = yield* disk.open(temporary, "wx")
      const buffer = new Uint8Array(1024 * 1024)
      for (const { file, length } of parts)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const input = yield* disk.open(file, "r")
            for (let left = length; left > 0;) {
              const count = yield* input
                .read(buffer.subarray(0, Math.min(left, buffer.length)))
                .pipe(failAt(file))
              if (count === 0) break
              yield* out.writeAll(buffer.subarray(0, count)).pipe(failAt(target))
              left -= count
            }
          })
        )
      yield* out.sync.pipe(failAt(target))
    })
  )
  yield* disk.fs.rename(temporary, target).pipe(failAt(target))
  yield* disk.syncDirectory(disk.path.dirname(target))
})
