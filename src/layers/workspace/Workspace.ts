/**
 * Workspaces on the local disk.
 */
import { Context, Effect, FileSystem, Layer, Path, type PlatformError } from "effect"
import { ChildProcessSpawner } from "effect/process"
import type { ChangedFile } from "../../domain/Result.ts"
import type { Task } from "../../domain/Task.ts"
import type { GitError } from "../../services/Git.ts"
import { Sandbox } from "../../services/Sandbox.ts"
import {
  type OpenWorkspace,
  type WorkspaceDiff,
  type WorkspaceError,
  Workspaces
} from "../../services/Workspace.ts"
import { byBytes, displayName, splitNul } from "../git/GitBinary.ts"
import { nodeAt, resolveInside } from "./Contained.ts"
import { applyChanges } from "./Edit.ts"
import { failed } from "./Failure.ts"
import { materialise } from "./Materialise.ts"
import type { Opened, Platform } from "./Opened.ts"
import { removeTree } from "./RemoveTree.ts"
import { prepare } from "./Prepare.ts"
import { makeRecorder } from "./Recorder.ts"
import { diffTrees, filesBelow } from "./Trees.ts"
import { unrecorded } from "./Unrecorded.ts"

const changeOf: Readonly<Record<string, ChangedFile["change"]>> = {
  A: "added",
  D: "deleted",
  T: "type_changed"
}

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

/** The workspace as its users see it. */
const serve = Effect.fnUntraced(function* (
  opened: Opened,
  prepared: OpenWorkspace["prepared"],
  staging: string
) {
  const { services, store } = opened
  const root = store.work_tree
  const recorder = yield* makeRecorder(opened)

  const closed = <A, R>(
    what: string,
    effect: Effect.Effect<A, GitError | PlatformError.PlatformError | WorkspaceError, R>
  ): Effect.Effect<A, WorkspaceError, Exclude<R, Platform>> =>
    effect.pipe(
      Effect.mapError((error) => (error._tag === "WorkspaceError" ? error : failed(what, error))),
      Effect.provideContext(services)
    )

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
          yield* recorder.settled
          return (yield* filesBelow(store, real === "." ? "" : real)).map(displayName).toSorted(byBytes)
        })
      ),
    apply: (changes) =>
      closed(
        "the edit cannot be recorded",
        recorder.exclusively(applyChanges(root, staging, changes, recorder.record))
      ),
    scan: closed("the workspace cannot be scanned", recorder.scan),
    tree: recorder.tree,
    diff: (tree) =>
      closed(
        "the trees cannot be compared",
        Effect.map(diffTrees(store.git_dir, opened.base, tree), ([patch, raw]): WorkspaceDiff => ({
          patch,
          files: changedFiles(raw)
        }))
      ),
    restore: (tree) => closed("the workspace cannot be put back", recorder.restore(tree)),
    materialise: (tree) => closed("a place to check in cannot be made", materialise(opened, tree)),
    unrecorded: closed(
      "the workspace cannot be looked through",
      Effect.andThen(recorder.settled, unrecorded(opened))
    )
  } satisfies OpenWorkspace
})

const open = Effect.fn("Workspaces.open")(
  function* (task: Task, into: string) {
    const fs = yield* FileSystem.FileSystem
    yield* fs.makeDirectory(into, { recursive: true, mode: 0o700 })
    // Links and containment are judged against where the directory really is.
    const directory = yield* fs.realPath(into)
    const { opened, prepared, scratch, staging } = yield* prepare(task, directory)
    yield* Effect.addFinalizer(() => Effect.forEach(scratch, removeTree, { discard: true }))
    const workspace: OpenWorkspace = yield* serve(opened, prepared, staging)
    return workspace
  },
  (effect, _task, into) =>
    effect.pipe(
      Effect.catchTag("PlatformError", (cause) => Effect.fail(failed(`${into} cannot be used`, cause)))
    )
)

export const layer: Layer.Layer<Workspaces, never, Platform | Sandbox> = Layer.effect(
  Workspaces,
  Effect.gen(function* () {
    const services = yield* Effect.map(
      Effect.context<Platform | Sandbox>(),
      Context.pick(ChildProcessSpawner.ChildProcessSpawner, FileSystem.FileSystem, Path.Path, Sandbox)
    )
    return Workspaces.of({
      open: ({ directory, task }) => Effect.provideContext(open(task, directory), services)
    })
  })
)
