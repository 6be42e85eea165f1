/**
 * Opening the workspace of a run that was there before: whatever stands in its directory, the recorded tree stands there
 * in the end, or it is said what is gone.
 */
import { Effect, FileSystem, Ref } from "effect"
import type { EventData } from "../../domain/Event.ts"
import type { TreeId } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { infoAt, isDirectory } from "../fs/Files.ts"
import { cloneInto, workingTree } from "./Clone.ts"
import { demandTree, sourceOf } from "./Demand.ts"
import { type DependencyLayer, planDependencies } from "./Dependencies.ts"
import { failed } from "./Failure.ts"
import type { Opened } from "./Opened.ts"
import type { Places } from "./Places.ts"
import { furnish, install, recordOfLayer, remember } from "./Prepare.ts"
import { type Recalled, recall } from "./Recall.ts"
import { makeRecorder } from "./Recorder.ts"
import { bringMissing, putBackTo, standAnew } from "./Stand.ts"
import { discardSettings, discardWork, sweep } from "./Sweep.ts"
import { isComplete } from "./Trees.ts"

export interface Resumed {
  readonly prepared: EventData<"workspace.prepared">
  readonly tree: TreeId
}

/** The dependencies of the task's own source that set-up began with, as far as they can be brought. */
const planAgain = Effect.fnUntraced(function* (task: Task, { entries, layer, store }: Opened) {
  const bare: DependencyLayer = { ...layer, copied: [], included: [], seal: null }
  if (!(yield* isDirectory(task.repository))) return bare
  return yield* planDependencies(
    task,
    { ...store, work_tree: task.repository },
    store.work_tree,
    entries,
    null
  )
})

/** Runs the set-up again, on the base, because what it had installed is gone. */
const installAgain = Effect.fnUntraced(function* (
  task: Task,
  places: Places,
  { opened, record }: Recalled,
  tree: TreeId
) {
  yield* demandTree(task, places, tree)
  yield* standAnew(opened, places, null, opened.base)
  const planned = yield* planAgain(task, opened)
  const { ignored_before, layer } = yield* install(task, places, planned, opened.base)
  yield* remember(places, { ...record, layer: recordOfLayer(layer), ignored_before })
  const again: Opened = { ...opened, layer, brought: layer.copied, ignored_before: new Set(ignored_before) }
  const recorder = yield* makeRecorder(again, { tree: opened.base, ahead: false })
  yield* recorder.restore(tree)
  return { opened: again, recorder }
})

/** The workspace of a run whose `git/` says how it was made. */
const stand = Effect.fnUntraced(function* (task: Task, places: Places, recalled: Recalled, tree: TreeId) {
  const { opened, record } = recalled
  const { store } = opened
  const found = yield* Ref.make<TreeId | null>(null)
  const info = yield* infoAt(store.work_tree)
  const back =
    info?.type === "Directory"
      ? yield* putBackTo(opened, places, tree, (at) => Ref.set(found, at)).pipe(
          // Whatever is wrong with it: everything that it must hold can be made again.
          Effect.catch(() => Effect.succeed(null))
        )
      : null
  if (record.layer.from === "setup" && !(yield* isDirectory(places.aside))) {
    const again = yield* installAgain(task, places, recalled, tree)
    return { ...again, found: yield* Ref.get(found) }
  }
  const anew = standAnew(opened, places, opened.layer, tree)
  const recorder =
    back ??
    (yield* anew.pipe(
      Effect.catchTag("GitError", () => Effect.andThen(demandTree(task, places, tree), anew))
    ))
  yield* bringMissing(places, opened.layer)
  return { opened, recorder, found: yield* Ref.get(found) }
})

/**
 * Makes everything anew from the source, where `git/` does not say how: with the objects that it still has, so that a
 * tree later than the base can be had when they are all there.
 */
const remake = Effect.fnUntraced(function* (task: Task, places: Places, { prepared, tree }: Resumed) {
  const { git_dir } = places.store
  const { commit, kind } = task.base
  if ((yield* sourceOf(task)) === null)
    return yield* failed(
      `${git_dir} is gone or not whole, and so is ${task.repository}: the base commit ${commit} cannot be had`
    )
  yield* discardSettings(git_dir)
  const clone = yield* cloneInto(task, places)
  if (kind === "working_tree" && !(yield* isComplete(git_dir, prepared.tree)))
    yield* workingTree(places.source, clone.location, commit)
  yield* demandTree(task, places, prepared.tree)
  yield* demandTree(task, places, tree)
  yield* discardWork(places)
  const standing = kind === "working_tree" ? { tree: prepared.tree, dirty: [] } : null
  const { opened } = yield* furnish(task, places, clone, standing)
  if (opened.base !== prepared.tree)
    return yield* failed(
      `the base commit ${commit} does not hold the tree ${prepared.tree} that the run began with`
    )
  const recorder = yield* makeRecorder(opened, { tree: opened.base, ahead: false })
  if (tree !== opened.base) yield* recorder.restore(tree)
  return { opened, recorder, found: null }
})

/** The workspace with its recorded tree in it, and what stood there before. */
export const reopen = Effect.fnUntraced(
  function* (task: Task, places: Places, resumed: Resumed) {
    const fs = yield* FileSystem.FileSystem
    yield* sweep(places)
    yield* fs.makeDirectory(places.staging, { mode: 0o700 })
    const recalled = yield* recall(task, places, resumed.prepared)
    const { found, opened, recorder } =
      recalled === null
        ? yield* remake(task, places, resumed)
        : yield* stand(task, places, recalled, resumed.tree)
    const { copied, lock_digest, reason } = opened.layer
    const prepared: Resumed["prepared"] = {
      ...resumed.prepared,
      dependencies: { ...resumed.prepared.dependencies, copied, lock_digest, reason }
    }
    return { opened, recorder, prepared, found }
  },
  (effect) =>
    effect.pipe(
      Effect.catchTags({
        GitError: (cause) => Effect.fail(failed("the workspace cannot be opened again", cause)),
        PlatformError: (cause) => Effect.fail(failed("the workspace cannot be opened again", cause))
      })
    )
)
