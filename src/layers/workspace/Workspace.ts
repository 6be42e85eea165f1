/**
 * Workspaces on the local disk.
 */
import { Effect, FileSystem, Layer, Path, type PlatformError, Ref, Semaphore } from "effect"
import type { TreeId } from "../../domain/Ids.ts"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import type { ChangedFile } from "../../domain/Result.ts"
import type { Task } from "../../domain/Task.ts"
import type { GitError } from "../../services/Git.ts"
import { Sandbox } from "../../services/Sandbox.ts"
import { type OpenWorkspace, type WorkspaceDiff, type WorkspaceError, Workspaces } from "../../services/Workspace.ts"
import { byBytes, displayName, splitNul, textOf } from "../git/GitBinary.ts"
import { nodeAt, resolveInside } from "./Contained.ts"
import { applyChanges } from "./Edit.ts"
import { failed } from "./Failure.ts"
import { materialise } from "./Materialise.ts"
import type { Opened, Platform } from "./Opened.ts"
import { prepare } from "./Prepare.ts"
import { checkout, differences, diffTrees, filesBelow, namesOf, type Store, untracked, updateIndex, writeTree } from "./Trees.ts"
import { unrecorded } from "./Unrecorded.ts"

const changeOf: Readonly<Record<string, ChangedFile["change"]>> = { A: "added", D: "deleted", T: "type_changed" }

/** The changed files of `diff-tree --raw -z`: a record of facts and a path, by turns. */
const changedFiles = (raw: Uint8Array): ReadonlyArray<ChangedFile> => {
  const records = splitNul(raw)
  const files: Array<ChangedFile> = []
  for (let at = 0; at + 1 < records.length; at += 2) {
    const status = records[at]?.split(" ")[4]?.[0] ?? ""
    files.push({ path: displayName(records[at + 1] ?? ""), change: changeOf[status] ?? "modified" })
  }
  return files.toSorted((a, b) => byBytes(a.path, b.path))
}

/** Removes what a tree does not hold and the rules do not hide, and the directories that this leaves empty. */
const clean = Effect.fnUntraced(function* (store: Store) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { paths } = yield* untracked(store)
  const directories = new Set<string>()
  for (const name of paths) {
    const text = textOf(name)
    if (text === undefined) continue
    yield* fs.remove(path.join(store.work_tree, text), { force: true })
    for (let at = path.dirname(text); at !== "."; at = path.dirname(at)) directories.add(at)
  }
  const deepestFirst = [...directories].toSorted((a, b) => b.length - a.length)
  for (const directory of deepestFirst) {
    const at = path.join(store.work_tree, directory)
    if ((yield* fs.readDirectory(at)).length === 0) yield* fs.remove(at, { recursive: true })
  }
})

/** The workspace as its users see it. */
const serve = Effect.fnUntraced(function* (opened: Opened, prepared: OpenWorkspace["prepared"], staging: string) {
  const { services, store } = opened
  const root = store.work_tree
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const current = yield* Ref.make<TreeId>(opened.base)
  // The index has one writer at a time.
  const lock = yield* Semaphore.make(1)
  const gitlinks = new Set(opened.entries.filter((entry) => entry.mode === "160000").map((entry) => entry.path))

  const closed = <A, R>(
    what: string,
    effect: Effect.Effect<A, GitError | PlatformError.PlatformError | WorkspaceError, R>
  ): Effect.Effect<A, WorkspaceError, Exclude<R, Platform>> =>
    effect.pipe(
      Effect.mapError((error) => (error._tag === "WorkspaceError" ? error : failed(what, error))),
      Effect.provideContext(services)
    )

  const record = Effect.fnUntraced(function* (names: ReadonlyArray<ByteString>) {
    yield* updateIndex(store, names)
    const tree = yield* writeTree(store)
    yield* Ref.set(current, tree)
    return tree
  })

  const scan = Effect.gen(function* () {
    const { paths } = yield* differences(store)
    // A submodule is a commit of another repository: only its removal is a change of this one.
    const changed = yield* Effect.filter(paths, (name) =>
      gitlinks.has(name)
        ? fs.exists(path.join(root, textOf(name) ?? "")).pipe(Effect.map((there) => !there))
        : Effect.succeed(true)
    )
    return changed.length === 0 ? yield* Ref.get(current) : yield* record(changed)
  })

  return {
    root,
    prepared,
    read: (name, max_bytes) =>
      closed(
        "the file cannot be read",
        Effect.flatMap(resolveInside(root, name, false), (real) => nodeAt(root, real, max_bytes))
      ),
    resolve: (name) => closed("the path cannot be followed", resolveInside(root, name, true)),
    list: (directory) =>
      closed(
        "the workspace cannot be listed",
        Effect.gen(function* () {
          const real = yield* resolveInside(root, directory === "" ? "." : directory, true)
          return (yield* filesBelow(store, real === "." ? "" : real)).map(displayName).toSorted(byBytes)
        })
      ),
    apply: (changes) =>
      closed(
        "the edit cannot be recorded",
        applyChanges(root, staging, changes, (paths) => record(namesOf(paths)))
      ).pipe(lock.withPermit),
    scan: closed("the workspace cannot be scanned", scan).pipe(lock.withPermit),
    tree: Ref.get(current),
    diff: (tree) =>
      closed(
        "the trees cannot be compared",
        Effect.map(diffTrees(store.git_dir, opened.base, tree), ([patch, raw]): WorkspaceDiff => ({
          patch,
          files: changedFiles(raw)
        }))
      ),
    restore: (tree) =>
      closed(
        "the workspace cannot be put back",
        Effect.uninterruptible(
          checkout(store, tree).pipe(Effect.andThen(clean(store)), Effect.andThen(Ref.set(current, tree)))
        )
      ).pipe(lock.withPermit),
    materialise: (tree) => closed("a place to check in cannot be made", materialise(opened, tree)),
    unrecorded: closed("the workspace cannot be looked through", unrecorded(opened))
  } satisfies OpenWorkspace
})

const open = Effect.fn("Workspaces.open")(function* (task: Task, into: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(into, { recursive: true, mode: 0o700 })
  // Links and containment are judged against where the directory really is.
  const directory = yield* fs.realPath(into)
  const { opened, prepared, staging } = yield* prepare(task, directory)
  const workspace: OpenWorkspace = yield* serve(opened, prepared, staging)
  return workspace
}, (effect, _task, into) =>
  effect.pipe(
    Effect.catchTag("PlatformError", (cause) => Effect.fail(failed(`${into} cannot be used`, cause)))
  ))

export const layer: Layer.Layer<Workspaces, never, Platform | Sandbox> = Layer.effect(
  Workspaces,
  Effect.gen(function* () {
    const services = yield* Effect.context<Platform | Sandbox>()
    return Workspaces.of({
      open: ({ directory, task }) => Effect.provideContext(open(task, directory), services)
    })
  })
)
