/**
 * What a repository's work tree holds beside its commit. The user's index is copied, never locked or refreshed, and read
 * with attributes of ours, so that no filter of the repository ever runs.
 */
import { Effect, FileSystem, Path } from "effect"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { byBytes, gitIn, type Repository, splitNul } from "./GitBinary.ts"
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

/** Where the source keeps the rules that are its owner's alone; null when it has none that can be read. */
const ownRules = Effect.fnUntraced(function* (location: GitLocation) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const rules = path.join(location.common_dir, "info", "exclude")
  return yield* fs.access(rules, { readable: true }).pipe(
    Effect.as(rules),
    Effect.catchTag("PlatformError", () => Effect.succeed(null))
  )
})

/**
 * Paths that a sparse checkout leaves out on purpose, by the user's index: their absence is no deletion. Uses the
 * repository's index file for it.
 */
export const leftOutOfSparse = Effect.fnUntraced(
  function* (repository: Repository, location: GitLocation) {
    yield* copyIndex(location, repository)
    const tagged = splitNul(yield* gitIn(repository, ["ls-files", "-z", "-t"]))
    return tagged.filter((record) => record.startsWith("S ")).map((record) => record.slice(2))
  },
  Effect.catchTags({ GitError: () => Effect.succeed([]), PlatformError: () => Effect.succeed([]) })
)

/**
 * Paths of the work tree that differ from the index or are untracked, by the user's own ignore rules as they stand.
 * Bytes are compared as they are; a path that ends in "/" is a repository of its own.
 */
export const workTreeChanges = Effect.fnUntraced(function* (repository: Repository, location: GitLocation) {
  const rules = yield* ownRules(location)
  const excludes = [
    "--exclude-per-directory=.gitignore",
    ...(rules === null ? [] : [`--exclude-from=${rules}`])
  ]
  return [...new Set(splitNul(yield* gitIn(repository, ["ls-files", "-z", "-m", "-d", "-o", ...excludes])))]
})

export interface SourceState {
  /** Staged, changed and untracked paths, in byte order. */
  readonly dirty: ReadonlyArray<ByteString>
  /** What the user's rules ignore, whole directories as one path that ends in "/". */
  readonly ignored: ReadonlyArray<ByteString>
}

/**
 * The source beside its commit, which is the HEAD of `repository`: a git directory of ours with the source as its work
 * tree and an index file that is ours to write. Submodules are never entered: git would read their settings.
 */
export const sourceState = Effect.fnUntraced(function* (repository: Repository, location: GitLocation) {
  const fs = yield* FileSystem.FileSystem
  const rules = yield* ownRules(location)
  const status = gitIn(repository, [
    ...(rules === null ? [] : ["-c", `core.excludesFile=${rules}`]),
    ...["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching"],
    "--ignore-submodules=all"
  ])
  const fresh = gitIn(repository, ["read-tree", "HEAD"])
  const copied = yield* copyIndex(location, repository).pipe(
    Effect.as(true),
    Effect.catchTag("PlatformError", () => Effect.succeed(false))
  )
  if (!copied) yield* fresh
  const records = splitNul(
    yield* status.pipe(
      // An index that cannot be read as it was copied says nothing: the commit's own stands in for it.
      Effect.catchTag("GitError", () =>
        fs.remove(repository.index, { force: true }).pipe(Effect.andThen(fresh), Effect.andThen(status))
      )
    )
  )
  const state: SourceState = {
    dirty: [
      ...new Set(records.filter((record) => !record.startsWith("!!")).map((record) => record.slice(3)))
    ].toSorted(byBytes),
    ignored: records.filter((record) => record.startsWith("!!")).map((record) => record.slice(3))
  }
  return state
})
