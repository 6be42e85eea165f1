/**
 * Submodules, from the source's own git directory and without network. What is not there is left empty and said.
 */
import { Effect, FileSystem, Path } from "effect"
import { TreeId } from "../../domain/Ids.ts"
import { displayName, git, type Repository, splitNul, textOf } from "../git/GitBinary.ts"
import {
  bareDirectory,
  copyObjects,
  type GitLocation,
  isPlainGitDirectory,
  makeGitDirectory,
  resetControl
} from "../git/GitDirectory.ts"
import type { WorkspaceRecord } from "./Record.ts"
import { removeTree } from "./RemoveTree.ts"
import { rootOf, treeMapOf } from "./TreeMap.ts"
import { checkout, entriesOf, type TreeEntry } from "./Trees.ts"

export interface Submodule {
  readonly path: string
  /** Its name in `.gitmodules`; null when there is none that can be used. */
  readonly name: string | null
  /** Our copy of its repository, below `modules/` by its `module`; null when the source has none. */
  readonly git_dir: string | null
  readonly module: string | null
  readonly commit: string
  /** Everything in that commit, as it was when the run began; null when we do not have it. */
  readonly entries: ReadonlyArray<TreeEntry> | null
}

/** Names of submodules by path. A name that would climb out of `modules/` is none. */
const namesByPath = Effect.fnUntraced(function* (workspace: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(workspace, ".gitmodules")
  if (!(yield* fs.exists(file).pipe(Effect.orElseSucceed(() => false)))) return new Map<string, string>()
  const listed = yield* git({
    cwd: workspace,
    args: ["config", "--no-includes", "-f", file, "-z", "--list"]
  }).pipe(Effect.orElseSucceed(() => new Uint8Array()))
  return new Map(
    splitNul(listed).flatMap((record): ReadonlyArray<readonly [string, string]> => {
      const match = /^submodule\.([\s\S]+)\.path\n([\s\S]+)$/.exec(record)
      const [, name = "", at = ""] = match ?? []
      const climbs = name.split(/[\\/]/).some((part) => part === ".." || part === "." || part === "")
      return match === null || climbs ? [] : [[at, name]]
    })
  )
})

/** Brings the repository of a submodule into `into`, where the source has it. */
const bring = Effect.fnUntraced(function* (
  submodule: Pick<Submodule, "path" | "name" | "commit">,
  location: GitLocation,
  into: string,
  module: string
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { commit, name } = submodule
  const empty: Submodule = { ...submodule, git_dir: null, module: null, entries: null }
  if (name === null) return empty
  const common_dir = path.join(location.common_dir, "modules", name)
  if (!(yield* fs.exists(path.join(common_dir, "objects")))) return empty
  const git_dir = path.join(into, module)
  yield* makeGitDirectory(bareDirectory(git_dir, commit, null))
  yield* copyObjects(common_dir, path.join(git_dir, "objects"))
  const entries = yield* entriesOf(git_dir, commit).pipe(
    Effect.catchTag("GitError", () => Effect.succeed(null))
  )
  const brought: Submodule = { ...submodule, git_dir, module, entries }
  return brought
})

/** Brings the repositories of a tree's submodules into `into`, where the source has them. */
export const gatherSubmodules = Effect.fnUntraced(function* (
  entries: ReadonlyArray<TreeEntry>,
  location: GitLocation,
  workspace: string,
  into: string
) {
  const links = entries.filter((entry) => entry.mode === "160000")
  if (links.length === 0) return []
  const names = yield* namesByPath(workspace)
  return yield* Effect.forEach(links, (link, index) => {
    const at = textOf(link.path)
    const named = at === undefined ? undefined : names.get(link.path)
    const submodule = {
      path: at ?? displayName(link.path),
      name: named === undefined ? null : (textOf(named) ?? null),
      commit: link.id
    }
    return bring(submodule, location, into, String(index))
  })
})

/** The tree of a submodule's commit, as the run writes it down. */
export const treeOfSubmodule = ({ commit, entries }: Submodule): TreeId | null =>
  entries === null ? null : TreeId.make(rootOf(treeMapOf(entries, commit.length)))

/**
 * The submodules of a run that another process began. A copy that is gone, or is not what it was, is brought again from
 * the source; where that has none either, the submodule is left empty.
 */
export const recallSubmodules = Effect.fnUntraced(function* (
  recorded: WorkspaceRecord["submodules"],
  location: GitLocation | null,
  into: string
) {
  const path = yield* Path.Path
  return yield* Effect.forEach(
    recorded,
    Effect.fnUntraced(function* ({ module, tree, ...known }) {
      const empty: Submodule = { ...known, git_dir: null, module: null, entries: null }
      if (module === null) return empty
      const git_dir = path.join(into, module)
      if (yield* isPlainGitDirectory(git_dir)) {
        yield* resetControl(bareDirectory(git_dir, known.commit, null))
        const entries = yield* entriesOf(git_dir, known.commit).pipe(
          Effect.catchTag("GitError", () => Effect.succeed(null))
        )
        const standing: Submodule = { ...known, git_dir, module, entries }
        if (treeOfSubmodule(standing) === tree) return standing
      }
      yield* removeTree(git_dir)
      return location === null ? empty : yield* bring(known, location, into, module)
    })
  )
})

/** Where a submodule stands in a place. */
export const submoduleIn = (
  submodule: Submodule & { readonly git_dir: string },
  root: string,
  label: string
): Repository => ({
  git_dir: submodule.git_dir,
  work_tree: `${root}/${submodule.path}`,
  index: `${submodule.git_dir}/${label}.index`
})

/** Checks the submodules out in a place. One whose commit is not there stays empty. */
export const checkoutSubmodules = (submodules: ReadonlyArray<Submodule>, root: string, label: string) =>
  Effect.forEach(
    submodules,
    (submodule) =>
      Effect.gen(function* () {
        const { git_dir } = submodule
        if (git_dir === null) return
        const fs = yield* FileSystem.FileSystem
        const at = submoduleIn({ ...submodule, git_dir }, root, label)
        const real = yield* fs.realPath(at.work_tree)
        // The directory comes from a tree: reached through a symlink, it would not be the place's own.
        if (real !== at.work_tree) return
        yield* checkout(at, submodule.commit)
      }).pipe(Effect.catchTags({ GitError: () => Effect.void, PlatformError: () => Effect.void })),
    { concurrency: 2, discard: true }
  )
