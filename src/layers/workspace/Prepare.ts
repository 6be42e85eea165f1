/**
 * Opening a workspace: our own git directory, the checkout, and what a clone lacks. What can run side by side does.
 */
import { Context, Effect, FileSystem, Path, Ref } from "effect"
import { ChildProcessSpawner } from "effect/process"
import type { EventData } from "../../domain/Event.ts"
import { TreeId } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { sourceState } from "../git/Dirty.ts"
import { displayName, nameOf } from "../git/GitBinary.ts"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { type Clone, cloneInto, readExcludes, workingTree, writeExcludes } from "./Clone.ts"
import {
  captureDependencies,
  type DependencyLayer,
  planDependencies,
  provideDependencies
} from "./Dependencies.ts"
import { demandCommit } from "./Demand.ts"
import { failed } from "./Failure.ts"
import { lfsStoreOf } from "./Lfs.ts"
import type { Opened, Platform } from "./Opened.ts"
import type { Places } from "./Places.ts"
import { type WorkspaceRecord, writeRecord } from "./Record.ts"
import { clean, makeRecorder } from "./Recorder.ts"
import { runSetup, taskEnvironment } from "./Setup.ts"
import { checkoutSubmodules, gatherSubmodules, treeOfSubmodule } from "./Submodules.ts"
import { discard } from "./Sweep.ts"
import { finishThrowAway, makeThrowAway } from "./ThrowAway.ts"
import { rootOf, treeMapOf } from "./TreeMap.ts"
import { checkout, differences, entriesOf, ignored, keepTree, type Store } from "./Trees.ts"

/** Paths of a dirty source that a result names; more would help nobody. */
const maxLeftOut = 500

/** Of what set-up changed in the repository's own files, as many paths are named. */
const maxNotes = 20

/** Only these: a whole context would carry the scope that it was captured in to whoever uses the workspace later. */
export const platform: Effect.Effect<Context.Context<Platform>, never, Platform> = Effect.map(
  Effect.context<Platform>(),
  Context.pick(ChildProcessSpawner.ChildProcessSpawner, FileSystem.FileSystem, Path.Path)
)

/** Rules that keep directories that somebody named out of every tree, whatever the base's rules say of them. */
const hiding = ({ copied, included }: DependencyLayer): ByteString =>
  copied
    .filter((name) => !included.includes(name))
    .map((name) => `/${nameOf(name)}\n`)
    .join("")

/**
 * Puts the workspace back to where it starts: what set-up wrote into the repository's own files is no change of the
 * agent's, and a patch that carried it would not be the agent's alone. Returns what was put back.
 */
const putBack = Effect.fnUntraced(function* (store: Store, start: string) {
  const { paths } = yield* differences(store)
  if (paths.length === 0) return []
  yield* checkout(store, start)
  yield* clean(store)
  const more = paths.length > maxNotes ? [`and ${paths.length - maxNotes} more paths that set-up wrote`] : []
  return [
    ...paths.slice(0, maxNotes).map((name) => `written by set-up and put back: ${displayName(name)}`),
    ...more
  ]
})

/** What a workspace got beside its tree. */
export interface Installed {
  readonly layer: DependencyLayer
  readonly ignored_before: ReadonlyArray<string>
  readonly notes: ReadonlyArray<string>
}

/** Where what set-up installed is until its seal is written down. */
const madeAside = (path: Path.Path, places: Places): string => path.join(places.staging, "deps")

/** Brings the dependencies into a workspace that stands at the base, and runs the task's set-up there. */
export const install = Effect.fnUntraced(function* (
  task: Task,
  places: Places,
  planned: DependencyLayer,
  start: string
) {
  const path = yield* Path.Path
  const { aside, store, task_env } = places
  const root = store.work_tree
  yield* provideDependencies(planned, { at: root, to: root }, () => true)
  const setUp = task.setup.length > 0
  if (setUp) {
    const place = { root, at: task.repository, writable: [task_env], layers: [] }
    yield* runSetup(task.setup, place, yield* taskEnvironment(task_env), task.setup_network ?? "none")
  }
  const layer = setUp ? yield* captureDependencies(planned, store, madeAside(path, places), aside) : planned
  const installed: Installed = {
    layer,
    notes: setUp || task.dependencies.mode === "path" ? yield* putBack(store, start) : [],
    ignored_before: setUp
      ? (yield* ignored(store)).map(displayName)
      : layer.copied.flatMap((name) => [name, `${name}/`])
  }
  return installed
})

/** Writes down what is installed. What set-up left is in its place only after that, so it is never there unsealed. */
export const remember = Effect.fnUntraced(function* (places: Places, record: WorkspaceRecord) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* writeRecord(places.record, record)
  if (record.layer.from === "setup") yield* fs.rename(madeAside(path, places), places.aside)
})

export const recordOfLayer = (layer: DependencyLayer): WorkspaceRecord["layer"] => {
  const { copied, from, included, lock_digest, locks, reason, seal } = layer
  return { from, copied, included, lock_digest, reason, locks, seal }
}

/** Makes the workspace at its base. `standing`: a base that is no commit's, and what it left out. */
export const furnish = Effect.fnUntraced(function* (
  task: Task,
  places: Places,
  { identity, location }: Clone,
  standing: { readonly tree: string; readonly dirty: ReadonlyArray<ByteString> } | null
) {
  const fs = yield* FileSystem.FileSystem
  const { directory, modules, source, staging, store } = places
  const { commit } = task.base
  const start = standing?.tree ?? commit
  yield* Effect.forEach(
    [store.work_tree, staging],
    (at) => fs.makeDirectory(at, { recursive: true, mode: 0o700 }),
    { concurrency: 2, discard: true }
  )
  const [entries, state] = yield* Effect.all(
    [
      entriesOf(store.git_dir, start),
      standing === null ? sourceState(source, location) : Effect.succeed({ ...standing, ignored: null }),
      checkout(store, start),
      makeThrowAway(store.work_tree, identity)
    ],
    { concurrency: "unbounded" }
  )
  const tree = TreeId.make(rootOf(treeMapOf(entries, start.length)))
  const rules = yield* readExcludes(store, location, entries)
  yield* writeExcludes(store, rules)
  const [planned, submodules] = yield* Effect.all(
    [
      planDependencies(
        task,
        { ...store, work_tree: task.repository },
        store.work_tree,
        entries,
        state.ignored
      ),
      gatherSubmodules(entries, location, store.work_tree, modules),
      finishThrowAway(store.work_tree, store.index),
      keepTree(store.git_dir, tree),
      fs.remove(source.index, { force: true })
    ],
    { concurrency: "unbounded" }
  )
  yield* checkoutSubmodules(submodules, store.work_tree, "workspace")
  const excludes = task.dependencies.mode === "path" ? `${rules}${hiding(planned)}` : rules
  if (excludes !== rules) yield* writeExcludes(store, excludes)
  const { ignored_before, layer, notes } = yield* install(task, places, planned, start)
  yield* remember(places, {
    version: 1,
    branch: identity.branch,
    shallow: identity.shallow,
    excludes,
    layer: recordOfLayer(layer),
    submodules: submodules.map((submodule) => ({
      path: submodule.path,
      name: submodule.name,
      module: submodule.module,
      commit: submodule.commit,
      tree: treeOfSubmodule(submodule)
    })),
    ignored_before,
    notes
  })
  const prepared: EventData<"workspace.prepared"> = {
    base_sha: commit,
    tree,
    left_out: state.dirty.slice(0, maxLeftOut).map(displayName),
    dependencies: {
      requested: task.dependencies,
      copied: layer.copied,
      ...(layer.mounted ? { mounted: true } : {}),
      lock_digest: layer.lock_digest,
      reason: layer.reason
    },
    setup: task.setup.map((argv) => argv.join(" "))
  }
  const opened: Opened = {
    directory,
    store,
    identity,
    base: tree,
    entries,
    proven: yield* Ref.make<{ readonly tree: TreeId; readonly entries: Opened["entries"] } | null>(null),
    layer,
    brought: layer.copied,
    any_locks: takesAnyLocks(task),
    submodules,
    lfs: yield* lfsStoreOf(location),
    ignored_before: new Set(ignored_before),
    notes,
    services: yield* platform
  }
  return { opened, prepared }
})

/** Whether the user wants the dependencies at hand whatever the lock files say. */
export const takesAnyLocks = ({ dependencies }: Task): boolean =>
  dependencies.mode === "copy" || dependencies.mode === "path"

/** Everything up to the first tool. What a dead run left of a clone is thrown away first. */
export const prepare = Effect.fnUntraced(
  function* (task: Task, places: Places) {
    yield* discard(places)
    const clone = yield* cloneInto(task, places)
    const { commit, kind } = task.base
    const standing =
      kind === "working_tree" ? yield* workingTree(places.source, clone.location, commit) : null
    const { opened, prepared } = yield* furnish(task, places, clone, standing)
    const recorder = yield* makeRecorder(opened, { tree: opened.base, ahead: false })
    return { opened, recorder, prepared, found: null }
  },
  (effect, task, { store }) =>
    effect.pipe(
      // Git only says that it cannot go on: a base that was pruned meanwhile is named.
      Effect.tapErrorTag("GitError", () =>
        demandCommit(task, store.git_dir).pipe(Effect.catchTag("GitError", () => Effect.void))
      ),
      Effect.catchTags({
        GitError: (cause) => Effect.fail(failed("the workspace cannot be made", cause)),
        PlatformError: (cause) => Effect.fail(failed("the workspace cannot be made", cause))
      })
    )
)
