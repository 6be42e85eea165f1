/**
 * What a repository's work tree holds beside its commit. The user's index is copied, never locked or refreshed, and read
 * with attributes of ours, so that no filter of the repository ever runs.
 */
import { Effect, FileSystem, Path } from "effect"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { byBytes, git, gitIn, type Repository, splitNul } from "./GitBinary.ts"
import type { GitLocation } from "./GitDirectory.ts"

/** Copies the user's index, and what a split index refers to, into a git directory of ours. */
const copyIndex = Effect.fnUntraced(function* (location: GitLocation, repository: Repository) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.copyFile(path.join(location.git_dir, "index"), repository.index)
  const names = yield* fs.readDirectory(location.git_dir)
  yield* Effect.forEach(
    names.filter((name) => /^sharedindex\.[0-9a-f]+$/.test(name)),
    (name) => fs.copyFile(path.join(location.git_dir, name), path.join(repository.git_dir, name)),
    { discard: true }
  )
})

/** The untracked paths of the work tree that the user's own rules do not ignore. */
export const untrackedInSource = Effect.fnUntraced(function* (repository: Repository, location: GitLocation) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const rules = path.join(location.common_dir, "info", "exclude")
  const readable = yield* fs.access(rules, { readable: true }).pipe(
    Effect.as(true),
    Effect.catchTag("PlatformError", () => Effect.succeed(false))
  )
  return splitNul(
    yield* gitIn(repository, [
      ...["ls-files", "-z", "-o", "--exclude-per-directory=.gitignore"],
      ...(readable ? [`--exclude-from=${rules}`] : [])
    ])
  )
})

/**
 * Staged, changed and untracked paths of the source, in byte order. `repository` is a git directory of ours with the
 * source as its work tree and an index file that is ours to write.
 */
export const dirtyPaths = Effect.fnUntraced(function* (repository: Repository, location: GitLocation, head: string) {
  const fs = yield* FileSystem.FileSystem
  const fresh = gitIn(repository, ["read-tree", head])
  yield* copyIndex(location, repository).pipe(
    Effect.catchTag("PlatformError", () => fresh)
  )
  const raw = (args: ReadonlyArray<string>) =>
    gitIn(repository, [...args, "--name-only", "--no-renames", "-z", "--ignore-submodules=all"])
  const tracked = Effect.all(
    [
      git({
        cwd: repository.git_dir,
        env: { GIT_INDEX_FILE: repository.index },
        args: [`--git-dir=${repository.git_dir}`, "diff-index", "--cached", "--name-only", "--no-renames", "-z", head, "--"]
      }),
      raw(["diff-files"])
    ],
    { concurrency: 2 }
  )
  const [[staged, changed], others] = yield* Effect.all(
    [
      // An index that cannot be read as it was copied says nothing: the commit's own stands in for it.
      tracked.pipe(
        Effect.catchTag("GitError", () =>
          Effect.andThen(fs.remove(repository.index, { force: true }), Effect.andThen(fresh, tracked))
        )
      ),
      untrackedInSource(repository, location)
    ],
    { concurrency: 2 }
  )
  const names: ReadonlyArray<ByteString> = [...splitNul(staged), ...splitNul(changed), ...others]
  return [...new Set(names)].toSorted(byBytes)
})
