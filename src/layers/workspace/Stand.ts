/**
 * Putting a workspace back where the journal says: what stands there is looked at, kept as a tree, and replaced.
 */
import { Effect, FileSystem, Path } from "effect"
import { lstat, readFile } from "node:fs/promises"
import type { TreeId } from "../../domain/Ids.ts"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import { infoAt } from "../fs/Files.ts"
import { bytePath, nameOf } from "../git/GitBinary.ts"
import { gitObject } from "../git/Objects.ts"
import { type DependencyLayer, provideDependencies } from "./Dependencies.ts"
import { failed } from "./Failure.ts"
import type { Opened } from "./Opened.ts"
import type { Places } from "./Places.ts"
import { type Beginning, makeRecorder } from "./Recorder.ts"
import { removeTree } from "./RemoveTree.ts"
import { checkoutSubmodules } from "./Submodules.ts"
import { finishLater, isWholeIndex, makeThrowAway, mendThrowAway } from "./ThrowAway.ts"
import {
  changesBetween,
  checkout,
  entriesOf,
  forget,
  keepTree,
  newestTree,
  readIndex,
  type Store
} from "./Trees.ts"

/** What a path on disk holds, as a blob's id; null when it is no file. */
const blobAt = (root: string, name: ByteString, digits: number) =>
  Effect.promise(async () => {
    const at = bytePath(root, name)
    try {
      return (await lstat(at)).isFile() ? gitObject("blob", await readFile(at), digits).id : null
    } catch {
      return null
    }
  })

/**
 * Makes the index hold what the dead process last meant the workspace to be: an edit of a path that the rules ignore is
 * found only by way of it. Where that process never came to write such a path, what is there is not its own.
 */
const lookFrom = Effect.fnUntraced(function* (store: Store, tree: TreeId) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* isWholeIndex(store.index, tree.length)))
    yield* fs.remove(store.index, { recursive: true, force: true })
  const last = (yield* newestTree(store.git_dir)) ?? tree
  const meant =
    last === tree
      ? []
      : yield* changesBetween(store.git_dir, tree, last).pipe(
          Effect.catchTag("GitError", () => Effect.succeed(null))
        )
  const from = meant === null ? tree : last
  yield* readIndex(store, from)
  const unmade = yield* Effect.filter(
    (meant ?? []).filter((change) => change.status === "A"),
    (change) => Effect.map(blobAt(store.work_tree, change.path, tree.length), (id) => id !== change.new_id)
  )
  if (unmade.length > 0)
    yield* forget(
      store,
      unmade.map((change) => change.path)
    )
  const beginning: Beginning = { tree: from, ahead: unmade.length > 0 }
  return beginning
})

/** Makes the submodules of a tree that are not in the workspace. */
const standSubmodules = Effect.fnUntraced(function* ({ store, submodules }: Opened, tree: TreeId) {
  if (submodules.length === 0) return
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const links = new Set(
    (yield* entriesOf(store.git_dir, tree))
      .filter((entry) => entry.mode === "160000")
      .map((entry) => entry.path)
  )
  const absent = yield* Effect.filter(submodules, (submodule) =>
    Effect.gen(function* () {
      const { git_dir } = submodule
      if (git_dir === null || !links.has(nameOf(submodule.path))) return false
      const names = yield* fs.readDirectory(path.join(store.work_tree, submodule.path))
      // The index comes last: without it, the checkout was never finished.
      return names.length === 0 || !(yield* fs.exists(path.join(git_dir, "workspace.index")))
    }).pipe(Effect.catchTag("PlatformError", () => Effect.succeed(false)))
  )
  yield* Effect.forEach(
    absent,
    ({ git_dir }) => fs.remove(path.join(git_dir ?? "", "workspace.index"), { force: true }),
    { discard: true }
  )
  yield* checkoutSubmodules(absent, store.work_tree, "workspace")
})

/** Whether a path of the layer is missing and can be put there without leaving the workspace. */
const isAbsent = Effect.fnUntraced(function* (root: string, name: string, included: boolean) {
  const path = yield* Path.Path
  if ((yield* infoAt(path.join(root, name))) !== undefined) return false
  for (const parent of parentsOf(name)) {
    const info = yield* infoAt(path.join(root, parent))
    // A package that is gone gets no dependencies.
    if (info === undefined) return included
    if (info.type !== "Directory") return false
  }
  return true
})

/** Brings what the workspace has lost of its dependencies, each whole or not at all. */
export const bringMissing = Effect.fnUntraced(function* (places: Places, layer: DependencyLayer) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = places.store.work_tree
  const brought = layer.mounted ? layer.included : layer.copied
  const absent = yield* Effect.filter(brought, (name) => isAbsent(root, name, layer.included.includes(name)))
  if (absent.length === 0) return
  const at = path.join(places.staging, "provided")
  yield* provideDependencies(layer, { at, to: root }, (name) => absent.includes(name))
  for (const name of absent) {
    yield* fs.makeDirectory(path.dirname(path.join(root, name)), { recursive: true })
    yield* fs.rename(path.join(at, name), path.join(root, name))
  }
})

/** Puts a workspace that stands back to a tree. `onFound` is told what stood there. */
export const putBackTo = Effect.fnUntraced(function* (
  opened: Opened,
  places: Places,
  tree: TreeId,
  onFound: (found: TreeId) => Effect.Effect<void>
) {
  const path = yield* Path.Path
  const { base, identity, store } = opened
  const recorder = yield* makeRecorder(opened, yield* lookFrom(store, tree))
  const found = yield* recorder.scan
  yield* onFound(found)
  if (found !== tree) {
    yield* recorder.restore(tree)
    if ((yield* recorder.scan) !== tree)
      return yield* failed("the workspace cannot be put back where it stands")
  } else yield* keepTree(store.git_dir, tree)
  yield* mendThrowAway(store, identity, path.join(places.staging, "throw-away"), base, tree)
  yield* standSubmodules(opened, tree)
  return recorder
})

/** Makes a workspace anew, out of `git/` and the layer. What stood there goes when the new one is whole. */
export const standAnew = Effect.fnUntraced(function* (
  opened: Opened,
  places: Places,
  layer: DependencyLayer | null,
  tree: TreeId
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { base, identity, store } = opened
  const made: Store = { ...store, work_tree: path.join(places.staging, "workspace") }
  yield* removeTree(made.work_tree)
  yield* fs.makeDirectory(made.work_tree, { mode: 0o700 })
  // Dependencies first: whatever the tree holds inside of their directories has the last word.
  if (layer !== null)
    yield* provideDependencies(layer, { at: made.work_tree, to: store.work_tree }, () => true)
  yield* fs.remove(store.index, { recursive: true, force: true })
  yield* Effect.all([makeThrowAway(made.work_tree, identity), checkout(made, tree)], { concurrency: 2 })
  yield* finishLater(made.work_tree, store, base, tree)
  yield* removeTree(store.work_tree)
  yield* fs.rename(made.work_tree, store.work_tree)
  yield* keepTree(store.git_dir, tree)
  yield* standSubmodules(opened, tree)
  return yield* makeRecorder(opened, { tree, ahead: false })
})
