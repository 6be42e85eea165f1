/**
 * Keeps the workspace's tree: edits by path in memory, everything else by the private index. One writer at a time.
 */
import { Effect, FileSystem, Path, Ref, Semaphore } from "effect"
import { readdir, rm, rmdir } from "node:fs/promises"
import { TreeId } from "../../domain/Ids.ts"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { keepObject } from "../git/Objects.ts"
import { parentsOf, quotePath } from "../../domain/WorkspacePath.ts"
import { bytePath, displayName, nameOf, textOf } from "../git/GitBinary.ts"
import { refused, thrown } from "./Failure.ts"
import type { Opened } from "./Opened.ts"
import { changeTree, holds, type PathChange, type TreeMap, treeMapOf } from "./TreeMap.ts"
import {
  checkout,
  differences,
  entriesOf,
  keepTree,
  type Store,
  untracked,
  updateIndex,
  writeTree
} from "./Trees.ts"

interface State {
  readonly tree: TreeId
  /** The tree in memory; null when it must be read again. */
  readonly map: TreeMap | null
  /** Paths that are in the tree and not yet in the index. */
  readonly pending: ReadonlySet<ByteString>
  /** Whether the index was brought up to date since a tree was last made of it. */
  readonly ahead: boolean
}

/** Removes what a tree does not hold and the rules do not hide, and the directories that this leaves empty. */
export const clean = Effect.fnUntraced(function* (store: Store) {
  const { paths } = yield* untracked(store)
  const at = (name: ByteString) => bytePath(store.work_tree, name)
  const deepestFirst = [...new Set(paths.flatMap(parentsOf))].toSorted((a, b) => b.length - a.length)
  yield* Effect.tryPromise({
    try: async () => {
      for (const name of paths) await rm(at(name), { force: true })
      for (const name of deepestFirst) if ((await readdir(at(name))).length === 0) await rmdir(at(name))
    },
    catch: thrown("a file cannot be removed")
  })
})

/** Where a recorder begins: the tree that the index holds, or held before paths were taken out of it. */
export interface Beginning {
  readonly tree: TreeId
  readonly ahead: boolean
}

/** Keeps the tree of an open workspace. */
export const makeRecorder = Effect.fnUntraced(function* (opened: Opened, from: Beginning) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { store } = opened
  const digits = opened.base.length
  const state = yield* Ref.make<State>({
    ...from,
    map: from.tree === opened.base ? treeMapOf(opened.entries, digits) : null,
    pending: new Set()
  })
  const lock = yield* Semaphore.make(1)
  const gitlinks = new Set(
    opened.entries.filter((entry) => entry.mode === "160000").map((entry) => entry.path)
  )

  const isSubmodule = (name: ByteString): boolean => gitlinks.has(name)

  const brought = opened.brought.map(nameOf)

  /** Why a path is not the repository's to change, or null: no patch that changes it would apply to the source. */
  const foreign = (known: TreeMap, name: ByteString): string | null => {
    const within = (places: Iterable<ByteString>) =>
      [...places].find((at) => name === at || name.startsWith(`${at}/`))
    const submodule = within(gitlinks)
    if (submodule !== undefined)
      return `is in the submodule ${quotePath(displayName(submodule))}: a patch cannot change files of another repository`
    return within(brought) !== undefined && !holds(known, name)
      ? "is no file of the repository: it was brought along from an install or by --include, and a patch cannot change it"
      : null
  }

  /**
   * Keeps the tree that some changes make, before they are made: a process that dies in between leaves no path that
   * nobody knows of. `made` is for when the disk holds them.
   */
  const record = Effect.fnUntraced(function* (changes: ReadonlyArray<PathChange>) {
    const { map, pending, tree: before } = yield* Ref.get(state)
    const known = map ?? treeMapOf(yield* entriesOf(store.git_dir, before), digits)
    for (const change of changes) {
      const why = foreign(known, change.path)
      if (why !== null) return yield* refused(`${quotePath(displayName(change.path))} ${why}`)
    }
    // What fails from here on leaves a map of a tree that never was: it is read again then.
    yield* Ref.update(state, (now) => ({ ...now, map: null }))
    const { objects, root } = changeTree(known, changes)
    yield* Effect.forEach(objects, (object) => keepObject(store.git_dir, object), {
      concurrency: 8,
      discard: true
    })
    const tree = TreeId.make(root)
    yield* keepTree(store.git_dir, tree)
    const made = Ref.update(state, (now) => ({
      ...now,
      tree,
      map: known,
      pending: new Set([...pending, ...changes.map((change) => change.path)])
    }))
    return { made: Effect.as(made, tree) }
  })

  /** Brings the index up to date with the edits. */
  const settle = Effect.gen(function* () {
    const { pending } = yield* Ref.get(state)
    if (pending.size === 0) return
    yield* updateIndex(store, [...pending], isSubmodule)
    yield* Ref.update(state, (now) => ({ ...now, pending: new Set<ByteString>(), ahead: true }))
  })

  const scan = Effect.gen(function* () {
    const { paths } = yield* differences(store)
    // A submodule is a commit of another repository: only its removal is a change of this one.
    const changed = yield* Effect.filter(paths, (name) =>
      gitlinks.has(name)
        ? fs.exists(path.join(store.work_tree, textOf(name) ?? "")).pipe(Effect.map((there) => !there))
        : Effect.succeed(true)
    )
    const now = yield* Ref.get(state)
    if (changed.length === 0 && now.pending.size === 0 && !now.ahead) return now.tree
    yield* updateIndex(store, [...new Set([...now.pending, ...changed])], isSubmodule)
    const tree = yield* writeTree(store)
    yield* Ref.set(state, {
      tree,
      map: tree === now.tree ? now.map : null,
      pending: new Set<ByteString>(),
      ahead: false
    })
    return tree
  })

  const restore = Effect.fnUntraced(function* (tree: TreeId) {
    // What was edited and is ignored is found, and so removed, only by way of the index.
    yield* settle
    yield* checkout(store, tree)
    yield* clean(store)
    yield* keepTree(store.git_dir, tree)
    yield* Ref.update(state, (now) => ({
      tree,
      map: tree === now.tree ? now.map : null,
      pending: new Set<ByteString>(),
      ahead: false
    }))
  }, Effect.uninterruptible)

  return {
    tree: Effect.map(Ref.get(state), (now) => now.tree),
    record,
    scan: lock.withPermit(scan),
    settled: lock.withPermit(settle),
    restore: (tree: TreeId) => lock.withPermit(restore(tree)),
    exclusively: lock.withPermit
  }
})

/** The one writer of an open workspace. */
export type Recorder = Effect.Success<ReturnType<typeof makeRecorder>>
