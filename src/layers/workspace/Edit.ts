/**
 * Writing and deleting files of the workspace, all or nothing. New bytes and replaced originals wait in a directory
 * outside of the workspace, so that no crash and no failure leaves litter in it.
 */
import { Effect, FileSystem, Path, Ref } from "effect"
import type { FileChange } from "../../domain/patch/FileSet.ts"
import { quotePath } from "../../domain/WorkspacePath.ts"
import { WorkspaceError } from "../../services/Workspace.ts"
import { infoAt, makeDirectoryOnce, modeFor, removeIfEmpty } from "../fs/Files.ts"
import { nameOf } from "../git/GitBinary.ts"
import { resolveInside } from "./Contained.ts"
import { failed, onDisk, refused } from "./Failure.ts"
import type { PathChange } from "./TreeMap.ts"

interface Step {
  readonly change: FileChange
  /** Relative to the root, free of symlinks. */
  readonly path: string
  readonly at: string
  /** Where the new bytes wait; null for a deletion. */
  readonly staged: string | null
  /** Where the original goes; null when there was none. */
  readonly saved: string | null
}

/** Remembers how to take a step back. */
type Undo = (action: Effect.Effect<unknown, never, FileSystem.FileSystem>) => Effect.Effect<void>

/** Looks at the path of a change and puts its new bytes aside. Touches nothing in the workspace. */
const prepare = Effect.fnUntraced(function* (
  root: string,
  staging: string,
  change: FileChange,
  index: number
) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const path = yield* resolveInside(root, change.path, change._tag === "Write")
  if (path === ".") return yield* refused(`${quotePath(change.path)} is the workspace itself, not a file`)
  const at = paths.join(root, path)
  const complain = Effect.mapError(onDisk(quotePath(change.path)))
  const info = yield* infoAt(at).pipe(complain)
  const saved = paths.join(staging, `${index}.old`)
  if (change._tag === "Delete") {
    if (info?.type === "File" || info?.type === "SymbolicLink")
      return { change, path, at, staged: null, saved } satisfies Step
    return yield* new WorkspaceError({
      reason: info === undefined ? "not_found" : "not_a_file",
      message: `${quotePath(change.path)} ${info === undefined ? "does not exist" : "is not a file"}`
    })
  }
  if (info !== undefined && info.type !== "File" && info.type !== "Directory") {
    return yield* new WorkspaceError({
      reason: "not_a_file",
      message: `${quotePath(change.path)} is neither a file nor a directory`
    })
  }
  const staged = paths.join(staging, `${index}.new`)
  const mode = change.executable ? 0o777 : 0o666
  yield* fs.writeFile(staged, change.bytes, { flag: "wx", mode }).pipe(complain)
  // A directory may be on its way out with the files in it: that is known when its turn comes.
  if (info?.type !== "File") return { change, path, at, staged, saved: null } satisfies Step
  yield* fs.chmod(staged, modeFor(info.mode, change.executable)).pipe(complain)
  return { change, path, at, staged, saved } satisfies Step
})

/** Makes the missing directories above a path, each recorded for the way back. */
const makeParents = Effect.fnUntraced(function* (root: string, path: string, undo: Undo) {
  const paths = yield* Path.Path
  const segments = path.split("/").slice(0, -1)
  for (let depth = 1; depth <= segments.length; depth++) {
    const directory = paths.join(root, ...segments.slice(0, depth))
    if (yield* makeDirectoryOnce(directory)) yield* undo(removeIfEmpty(directory))
  }
})

/** Removes directories that a deletion left empty, up to the root: a tree holds none. */
const prune = Effect.fnUntraced(function* (root: string, path: string, undo: Undo) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  for (let directory = paths.dirname(path); directory !== "."; directory = paths.dirname(directory)) {
    const at = paths.join(root, directory)
    const mode = yield* fs.stat(at).pipe(Effect.map((info) => info.mode & 0o7777))
    if (!(yield* removeIfEmpty(at))) return
    yield* undo(fs.makeDirectory(at, { mode }).pipe(Effect.ignore))
  }
})

const perform = Effect.fnUntraced(function* (root: string, step: Step, undo: Undo) {
  const fs = yield* FileSystem.FileSystem
  const { at, path, saved, staged } = step
  if (saved !== null) {
    yield* fs.rename(at, saved)
    yield* undo(fs.rename(saved, at).pipe(Effect.ignore))
  }
  if (staged === null) return yield* prune(root, path, undo)
  yield* makeParents(root, path, undo)
  const info = yield* fs.lstat(at).pipe(Effect.catchTag("PlatformError", () => Effect.succeed(undefined)))
  if (info !== undefined) {
    return yield* new WorkspaceError({ reason: "not_a_file", message: `${quotePath(path)} is a directory` })
  }
  yield* fs.rename(staged, at)
  yield* undo(fs.remove(at, { force: true }).pipe(Effect.ignore))
})

/**
 * Runs `record`, makes every change, and then runs the `made` that `record` returned; when anything fails, that included,
 * every change is undone. `staging` must be on the workspace's disk; it is emptied again.
 */
export const applyChanges = Effect.fnUntraced(function* <A, E, R, E2, R2>(
  root: string,
  staging: string,
  changes: ReadonlyArray<FileChange>,
  record: (
    changes: ReadonlyArray<PathChange>
  ) => Effect.Effect<{ readonly made: Effect.Effect<A, E2, R2> }, E, R>
) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* fs
    .makeTempDirectoryScoped({ directory: staging, prefix: "edit-" })
    .pipe(Effect.mapError((cause) => failed("the run directory cannot be written", cause)))
  const steps = yield* Effect.forEach(changes, (change, index) => prepare(root, place, change, index))
  const twice = steps.find((step, index) => steps.findIndex((other) => other.path === step.path) !== index)
  if (twice !== undefined) return yield* refused(`${quotePath(twice.path)} is changed twice by one edit`)
  const deletionsFirst = [
    ...steps.filter((step) => step.staged === null),
    ...steps.filter((step) => step.staged !== null)
  ]
  const done = yield* Ref.make<ReadonlyArray<Effect.Effect<unknown, never, FileSystem.FileSystem>>>([])
  const undo: Undo = (action) => Ref.update(done, (actions) => [action, ...actions])
  const rollback = Effect.flatMap(Ref.get(done), (actions) =>
    Effect.forEach(actions, (action) => action, { discard: true })
  )
  const recorded = record(
    deletionsFirst.map(({ change, path }) => ({
      path: nameOf(path),
      file: change._tag === "Write" ? { bytes: change.bytes, executable: change.executable } : null
    }))
  )
  const performed = Effect.forEach(
    deletionsFirst,
    (step) =>
      perform(root, step, undo).pipe(
        Effect.catchTag("PlatformError", (error) => Effect.fail(onDisk(quotePath(step.path))(error)))
      ),
    { discard: true }
  )
  return yield* Effect.uninterruptible(
    Effect.flatMap(recorded, ({ made }) =>
      Effect.andThen(performed, made).pipe(Effect.onError(() => rollback))
    )
  )
}, Effect.scoped)
