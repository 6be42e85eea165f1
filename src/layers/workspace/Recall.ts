/**
 * What an earlier process knew of the workspace, again: out of `git/`, proved by hashing, and of what the source still
 * has.
 */
import { Effect, FileSystem, Path, Ref } from "effect"
import type { EventData } from "../../domain/Event.ts"
import type { TreeId } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { Sandbox } from "../../services/Sandbox.ts"
import { isDirectory } from "../fs/Files.ts"
import { bareDirectory, isPlainGitDirectory, resetControl } from "../git/GitDirectory.ts"
import { writeExcludes } from "./Clone.ts"
import { demandTree, lost, sourceOf } from "./Demand.ts"
import { type DependencyLayer, differingInSource, namedRoot, otherLock } from "./Dependencies.ts"
import { lfsStoreOf } from "./Lfs.ts"
import type { Opened } from "./Opened.ts"
import type { Places } from "./Places.ts"
import { platform, takesAnyLocks } from "./Prepare.ts"
import { readRecord, type WorkspaceRecord } from "./Record.ts"
import { nowhere } from "./Relocate.ts"
import { recallSubmodules } from "./Submodules.ts"
import type { Identity } from "./ThrowAway.ts"
import { isTree, treeMapOf } from "./TreeMap.ts"
import { entriesOf } from "./Trees.ts"

/** The entries of the base, proved to be what its id says; undefined when they are not all there. */
const baseEntries = (git_dir: string, base: TreeId) =>
  entriesOf(git_dir, base).pipe(
    Effect.map((entries) => (isTree(treeMapOf(entries, base.length), base) ? entries : undefined)),
    Effect.catchTag("GitError", () => Effect.succeed(undefined))
  )

const maxShown = 3

/** Paths in one line, as many as help. */
const some = (names: ReadonlyArray<string>): string =>
  names.length > maxShown
    ? `${names.slice(0, maxShown).join(", ")} and ${names.length - maxShown} more`
    : names.join(", ")

/** The layer as it can be brought now. What set-up installed is sealed; what came from the user's own may have moved on. */
const recallLayer = Effect.fnUntraced(function* (
  recorded: WorkspaceRecord["layer"],
  task: Task,
  places: Places
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const source = task.repository
  const { overlays } = yield* Sandbox
  const shown_at = overlays ? source : null
  if (recorded.from === "setup") {
    const layer: DependencyLayer = {
      ...recorded,
      origin: places.aside,
      included_from: places.aside,
      installed_at: shown_at ?? nowhere,
      pointers: "rewrite",
      shown_at,
      mounted: overlays
    }
    return layer
  }
  const named = task.dependencies.mode === "path" ? task.dependencies.path : "."
  const origin = recorded.from === "named" ? namedRoot(path, path.resolve(source, named)) : source
  const layer: DependencyLayer = {
    ...recorded,
    origin,
    included_from: source,
    installed_at: origin,
    pointers: "report",
    shown_at,
    mounted: overlays && recorded.from === "source" && task.setup.length === 0
  }
  const differing = takesAnyLocks(task) ? null : yield* differingInSource(source, layer.locks)
  const there = yield* Effect.filter(
    layer.copied,
    (name) =>
      fs
        .exists(path.join(layer.included.includes(name) ? source : origin, name))
        .pipe(Effect.orElseSucceed(() => false)),
    { concurrency: 8 }
  )
  if (there.length < layer.copied.length) {
    const gone = layer.copied.filter((name) => !there.includes(name))
    const roots = [...new Set([origin, source])]
    const missing = (yield* Effect.filter(roots, (root) => Effect.map(isDirectory(root), (is) => !is)))[0]
    const reason =
      missing === undefined
        ? `${some(gone)} cannot be brought along again: gone from ${origin}`
        : `${some(gone)} cannot be brought along again: ${missing} is gone`
    return {
      ...layer,
      copied: there,
      included: layer.included.filter((name) => there.includes(name)),
      reason
    }
  }
  return differing === null || layer.copied.length === layer.included.length
    ? layer
    : { ...layer, copied: layer.included, reason: otherLock(differing) }
})

export interface Recalled {
  readonly opened: Opened
  readonly record: WorkspaceRecord
}

/** Null when `git/` does not say how the workspace was made: then only the source can. */
export const recall = Effect.fnUntraced(function* (
  task: Task,
  places: Places,
  prepared: EventData<"workspace.prepared">
) {
  const { directory, store } = places
  const { git_dir } = store
  if (!(yield* isPlainGitDirectory(git_dir))) return null
  const record = yield* readRecord(places.record)
  if (record === null) return null
  const { branch, shallow } = record
  const { commit } = task.base
  const identity: Identity = { git_dir, commit, branch, shallow }
  yield* resetControl(bareDirectory(git_dir, commit, shallow))
  yield* writeExcludes(store, record.excludes)
  const base = prepared.tree
  const [known, layer] = yield* Effect.all(
    [baseEntries(git_dir, base), recallLayer(record.layer, task, places)],
    { concurrency: 2 }
  )
  if (known === undefined) yield* demandTree(task, places, base)
  const entries = known ?? (yield* baseEntries(git_dir, base))
  if (entries === undefined) return yield* lost(task, git_dir, base)
  const location = yield* sourceOf(task)
  const opened: Opened = {
    directory,
    store,
    identity,
    base,
    entries,
    proven: yield* Ref.make<{ readonly tree: TreeId; readonly entries: Opened["entries"] } | null>(null),
    layer,
    brought: record.layer.copied,
    any_locks: takesAnyLocks(task),
    submodules: yield* recallSubmodules(record.submodules, location, places.modules),
    lfs: yield* lfsStoreOf(location),
    ignored_before: new Set(record.ignored_before),
    notes: record.notes,
    services: yield* platform
  }
  const recalled: Recalled = { opened, record }
  return recalled
})
