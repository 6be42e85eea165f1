/**
 * Our own git directory of a run: the source's objects, and what the base is.
 */
import { Effect, FileSystem, Path } from "effect"
import { bytesAt } from "../fs/Files.ts"
import type { Task } from "../../domain/Task.ts"
import { leftOutOfSparse, workTreeChanges } from "../git/Dirty.ts"
import { git, gitIn, type Repository, splitNul, textOf } from "../git/GitBinary.ts"
import {
  bareDirectory,
  copyObjects,
  type GitLocation,
  headOf,
  locateGit,
  makeGitDirectory
} from "../git/GitDirectory.ts"
import { excludesOf } from "./Ignore.ts"
import type { Places } from "./Places.ts"
import type { Identity } from "./ThrowAway.ts"
import { type Store, type TreeEntry, updateIndex, writeTree } from "./Trees.ts"

export interface Clone {
  readonly identity: Identity
  readonly location: GitLocation
}

/** The git directory and every object of the source: from here on only ours is read. */
export const cloneInto = Effect.fnUntraced(function* (task: Task, { store }: Places) {
  const path = yield* Path.Path
  const location = yield* locateGit(task.repository)
  const { branch, shallow } = yield* headOf(location)
  const { commit } = task.base
  const identity: Identity = { git_dir: store.git_dir, commit, branch, shallow }
  yield* makeGitDirectory(bareDirectory(store.git_dir, commit, shallow))
  yield* copyObjects(location.common_dir, path.join(store.git_dir, "objects"))
  const clone: Clone = { identity, location }
  return clone
})

/** The tree of the source's work tree as it stands, untracked files included, through an index of ours. */
export const workingTree = Effect.fnUntraced(function* (
  source: Repository,
  location: GitLocation,
  commit: string
) {
  const sparse = new Set(yield* leftOutOfSparse(source, location))
  yield* git({
    cwd: source.git_dir,
    env: { GIT_INDEX_FILE: source.index },
    args: [`--git-dir=${source.git_dir}`, "read-tree", commit]
  })
  const missing = sparse.size === 0 ? [] : splitNul(yield* gitIn(source, ["ls-files", "-z", "-d"]))
  const absent = new Set(missing.filter((name) => sparse.has(name)))
  const changes = (yield* workTreeChanges(source, location)).filter((name) => !absent.has(name))
  yield* updateIndex(
    source,
    changes.filter((name) => !name.endsWith("/")),
    () => true
  )
  const tree = yield* writeTree(source)
  return { tree, dirty: changes.filter((name) => name.endsWith("/")), ignored: null }
})

/**
 * The base's ignore rules as one list. The source's own `info/exclude` counts as the base's: it is where its owner keeps
 * rules, and no agent can reach it. It is read once, now.
 */
export const readExcludes = Effect.fnUntraced(function* (
  store: Store,
  location: GitLocation,
  entries: ReadonlyArray<TreeEntry>
) {
  const path = yield* Path.Path
  const read = (at: string) => Effect.map(bytesAt(at), (bytes) => Buffer.from(bytes ?? []).toString("latin1"))
  const rules = entries.filter(
    (entry) =>
      entry.mode.startsWith("100") && (entry.path === ".gitignore" || entry.path.endsWith("/.gitignore"))
  )
  const [first, ...files] = yield* Effect.all(
    [
      Effect.map(read(path.join(location.common_dir, "info", "exclude")), (content) => ({
        directory: "",
        content
      })),
      ...rules.flatMap((entry) => {
        const name = textOf(entry.path)
        if (name === undefined) return []
        const directory = entry.path.slice(0, Math.max(0, entry.path.lastIndexOf("/")))
        return [Effect.map(read(path.join(store.work_tree, name)), (content) => ({ directory, content }))]
      })
    ],
    { concurrency: 8 }
  )
  return excludesOf(files, first?.content ?? "")
})

/** Puts the base's ignore rules where git reads them. */
export const writeExcludes = Effect.fnUntraced(function* (store: Store, list: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.writeFile(store.excludes, Buffer.from(list, "latin1"), { mode: 0o600 })
})
