/**
 * Fresh places: a tree and its dependency layer in a directory that nobody worked in.
 */
import { Effect, FileSystem, Path } from "effect"
import type { TreeId } from "../../domain/Ids.ts"
import type { FreshPlace } from "../../services/Workspace.ts"
import { byBytes, displayName, nameOf } from "../git/GitBinary.ts"
import { differingLock, provideDependencies, shownDependencies, wantedWhere } from "./Dependencies.ts"
import { failed } from "./Failure.ts"
import { lfsContents } from "./Lfs.ts"
import type { Opened } from "./Opened.ts"
import { provenEntries, provePlace, proveSubmodule } from "./Proof.ts"
import { removeTree } from "./RemoveTree.ts"
import { checkoutSubmodules } from "./Submodules.ts"
import { finishThrowAway, makeThrowAway } from "./ThrowAway.ts"
import { checkout, differences, ignored, type Store } from "./Trees.ts"

const maxWrote = 100

/** Every directory that a tree has files in. */
const directoriesOf = (paths: ReadonlyArray<string>): ReadonlySet<string> => {
  const directories = new Set<string>()
  for (const path of paths) {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      const directory = path.slice(0, slash)
      if (directories.has(directory)) break
      directories.add(directory)
    }
  }
  return directories
}

/** What differs in a place from what was put there, sorted and bounded. */
const written = Effect.fnUntraced(function* (store: Store, provided: ReadonlySet<string>) {
  const [changed, hidden] = yield* Effect.all([differences(store), ignored(store)], { concurrency: 2 })
  const known = (name: string) => provided.has(name.endsWith("/") ? name.slice(0, -1) : name)
  const names = [...changed.paths, ...changed.nested, ...hidden]
    .map(displayName)
    .filter((name) => !known(name))
  return [...new Set(names)].toSorted(byBytes).slice(0, maxWrote)
})

export const materialise = Effect.fnUntraced(
  function* (opened: Opened, tree: TreeId) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { layer, store } = opened
    const root = yield* Effect.acquireRelease(
      fs.makeTempDirectory({ directory: opened.directory, prefix: "verify-" }),
      removeTree
    )
    const label = path.basename(root)
    const place: Store = { ...store, work_tree: root, index: path.join(store.git_dir, `${label}.index`) }
    yield* Effect.addFinalizer(() => fs.remove(place.index, { force: true }).pipe(Effect.ignore))
    const [entries] = yield* Effect.all([provenEntries(opened, tree), makeThrowAway(root, opened.identity)], {
      concurrency: 2
    })
    const directories = directoriesOf(entries.map((entry) => displayName(entry.path)))
    const lock = opened.any_locks ? null : differingLock(layer, opened.entries, entries)
    // Dependencies first: whatever the tree holds inside of their directories has the last word.
    const wanted = wantedWhere(path, (directory) => directories.has(directory))
    const layers = lock === null ? yield* shownDependencies(layer, wanted) : []
    const distrust =
      lock === null
        ? yield* provideDependencies(layer, { at: root, to: root }, wanted)
        : `the patch changes ${lock}: the dependencies at hand are those of the base`
    yield* checkout(place, tree)
    yield* finishThrowAway(root, place.index)
    // A submodule that the tree no longer has would lay its files over those of the tree.
    const links = new Set(entries.filter((entry) => entry.mode === "160000").map((entry) => entry.path))
    const submodules = opened.submodules.filter((submodule) => links.has(nameOf(submodule.path)))
    yield* checkoutSubmodules(submodules, root, label)
    yield* provePlace(place, tree, entries)
    yield* Effect.forEach(submodules, (submodule) => proveSubmodule(submodule, root, label), {
      discard: true
    })
    const contents = yield* lfsContents(opened.lfs, root, entries)
    if (layer.shown_at === null)
      yield* Effect.forEach(contents, ({ from, path: name }) => fs.copyFile(from, path.join(root, name)), {
        discard: true
      })
    const provided = new Set([...(lock === null ? layer.copied : []), ...contents.map(({ path }) => path)])
    const fresh: FreshPlace = {
      root,
      layers: layer.shown_at === null ? layers : [...layers, ...contents],
      distrust,
      wrote: written(place, provided).pipe(
        Effect.mapError((cause) => failed("what the check wrote cannot be listed", cause)),
        Effect.provideContext(opened.services)
      )
    }
    return fresh
  },
  (effect) =>
    effect.pipe(
      Effect.catchTags({
        GitError: (cause) => Effect.fail(failed("a place to check in cannot be made", cause)),
        PlatformError: (cause) => Effect.fail(failed("a place to check in cannot be made", cause))
      })
    )
)
