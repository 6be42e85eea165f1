/**
 * Submodules, from the source's own git directory and without network. What is not there is left empty and said.
 */
import { Effect, FileSystem, Path } from "effect"
import { displayName, git, type Repository, splitNul, textOf } from "../git/GitBinary.ts"
import { copyObjects, type GitLocation, makeGitDirectory } from "../git/GitDirectory.ts"
import { checkout, entriesOf, type TreeEntry } from "./Trees.ts"

export interface Submodule {
  readonly path: string
  /** Our copy of its repository; null when the source has none. */
  readonly git_dir: string | null
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

/** Brings the repositories of a tree's submodules into `into`, where the source has them. */
export const gatherSubmodules = Effect.fnUntraced(function* (
  entries: ReadonlyArray<TreeEntry>,
  location: GitLocation,
  workspace: string,
  into: string
) {
  const links = entries.filter((entry) => entry.mode === "160000")
  if (links.length === 0) return []
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* namesByPath(workspace)
  return yield* Effect.forEach(links, (link, index) =>
    Effect.gen(function* () {
      const at = textOf(link.path)
      const name = names.get(link.path)
      const empty: Submodule = {
        path: at ?? displayName(link.path),
        git_dir: null,
        commit: link.id,
        entries: null
      }
      if (at === undefined || name === undefined) return empty
      const common_dir = path.join(location.common_dir, "modules", textOf(name) ?? "")
      if (!(yield* fs.exists(path.join(common_dir, "objects")))) return empty
      const git_dir = path.join(into, String(index))
      yield* makeGitDirectory({ at: git_dir, commit: link.id, branch: null, bare: true, shallow: null })
      yield* copyObjects(common_dir, path.join(git_dir, "objects"))
      const entries = yield* entriesOf(git_dir, link.id).pipe(
        Effect.catchTag("GitError", () => Effect.succeed(null))
      )
      const submodule: Submodule = { path: at, git_dir, commit: link.id, entries }
      return submodule
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
