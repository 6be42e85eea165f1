/**
 * Workspaces on the local disk.
 */
import { Context, Effect, FileSystem, Layer, Path, type PlatformError, Ref } from "effect"
import { ChildProcessSpawner } from "effect/process"
import type { TreeId } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import type { GitError } from "../../services/Git.ts"
import { Sandbox } from "../../services/Sandbox.ts"
import {
  type OpenWorkspace,
  type WorkspaceDiff,
  type WorkspaceError,
  Workspaces
} from "../../services/Workspace.ts"
import { byBytes, displayName } from "../git/GitBinary.ts"
import { nodeAt, resolveInside } from "./Contained.ts"
import { applyChanges } from "./Edit.ts"
import { failed } from "./Failure.ts"
import { materialise } from "./Materialise.ts"
import type { Opened, Platform } from "./Opened.ts"
import { changedFiles, provenEntries, provePatch, proveSettings } from "./Proof.ts"
import { removeTree } from "./RemoveTree.ts"
import { placesOf } from "./Places.ts"
import { prepare } from "./Prepare.ts"
import type { Recorder } from "./Recorder.ts"
import { reopen, type Resumed } from "./Reopen.ts"
import { sweepForeign } from "./Sweep.ts"
import { changesBetween, filesBelow, patchBetween } from "./Trees.ts"
import { unrecorded } from "./Unrecorded.ts"

/** The workspace as its users see it. */
const serve = Effect.fnUntraced(function* (
  opened: Opened,
  recorder: Recorder,
  { found, prepared }: Pick<OpenWorkspace, "found" | "prepared">,
  staging: string
) {
  const { services, store } = opened
  const root = store.work_tree
  // What is handed over is settled before any check of it runs: no check can change it afterwards.
  const settled = yield* Ref.make<{ readonly tree: TreeId; readonly diff: WorkspaceDiff } | null>(null)

  const settle = Effect.fnUntraced(function* (tree: TreeId) {
    if (tree === opened.base || (yield* Ref.get(settled))?.tree === tree) return
    const [patch] = yield* Effect.all(
      [patchBetween(store.git_dir, opened.base, tree), provenEntries(opened, tree)],
      { concurrency: 2 }
    )
    const files = yield* provePatch(opened, tree, patch)
    yield* Ref.set(settled, { tree, diff: { patch, files } })
  })

  const differing = Effect.fnUntraced(function* (tree: TreeId) {
    const [patch, changes] = yield* Effect.all(
      [patchBetween(store.git_dir, opened.base, tree), changesBetween(store.git_dir, opened.base, tree)],
      { concurrency: 2 }
    )
    const diff: WorkspaceDiff = { patch, files: changedFiles(changes) }
    return diff
  })

  const diff = Effect.fnUntraced(function* (tree: TreeId) {
    const known = yield* Ref.get(settled)
    if (tree === opened.base) return { patch: new Uint8Array(), files: [] } satisfies WorkspaceDiff
    return known?.tree === tree ? known.diff : yield* differing(tree)
  })

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
    found,
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
    diff: (tree) => closed("the trees cannot be compared", diff(tree)),
    handOver: (tree) =>
      closed(
        "what is handed over cannot be proved",
        Effect.andThen(Effect.andThen(proveSettings(opened), settle(tree)), diff(tree))
      ),
    restore: (tree) => closed("the workspace cannot be put back", recorder.restore(tree)),
    materialise: (tree) =>
      closed(
        "a place to check in cannot be made",
        Effect.andThen(proveSettings(opened), materialise(opened, tree))
      ),
    unrecorded: closed(
      "the workspace cannot be looked through",
      Effect.andThen(recorder.settled, unrecorded(opened))
    )
  } satisfies OpenWorkspace
})

const open = Effect.fn("Workspaces.open")(
  function* (task: Task, into: string, resumed: Resumed | undefined) {
    const fs = yield* FileSystem.FileSystem
    yield* fs.makeDirectory(into, { recursive: true, mode: 0o700 })
    // Links and containment are judged against where the directory really is.
    const places = yield* placesOf(task, yield* fs.realPath(into))
    const { staging, task_env } = places
    yield* Effect.addFinalizer(() => Effect.forEach([staging, task_env], removeTree, { discard: true }))
    const opening = resumed === undefined ? prepare(task, places) : reopen(task, places, resumed)
    const { found, opened, prepared, recorder } = yield* opening.pipe(
      // What was being written when it was cut off, by git or by us, is nobody's any more.
      Effect.onInterrupt(() => Effect.ignore(sweepForeign(places.store.git_dir)))
    )
    const workspace: OpenWorkspace = yield* serve(opened, recorder, { found, prepared }, staging)
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
      open: ({ directory, resume, task }) => Effect.provideContext(open(task, directory, resume), services)
    })
  })
)
