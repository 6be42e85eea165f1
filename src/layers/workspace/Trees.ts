/**
 * Trees of raw bytes: the state of a work tree as a git tree in our own store, by a private index and the ignore rules
 * of the base.
 */
import { Effect, FileSystem, Path } from "effect"
import { textAt } from "../fs/Files.ts"
import { lstat } from "node:fs/promises"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { TreeId } from "../../domain/Ids.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import {
  byBytes,
  bytePath,
  git,
  gitIn,
  joinNul,
  lineOf,
  type Repository,
  runGit,
  splitNul
} from "../git/GitBinary.ts"

/** A repository of ours, and the file that holds the base's ignore rules. */
export interface Store extends Repository {
  readonly excludes: string
}

/** Big checkouts use every core; small ones are faster on one. */
const parallelCheckout = ["-c", "checkout.workers=0", "-c", "checkout.thresholdForParallelism=2000"]

/** Makes the work tree and the index hold exactly the tree, over whatever is in the way. */
export const checkout = (store: Repository, tree: string) =>
  Effect.asVoid(
    gitIn(store, [...parallelCheckout, "read-tree", "--reset", "-u", tree], { timeout_ms: 1_800_000 })
  )

export interface TreeEntry {
  readonly mode: string
  readonly id: string
  readonly path: ByteString
}

/** Everything in a tree: files, symlinks, gitlinks and the subtrees themselves. */
export const entriesOf = (git_dir: string, tree: string) =>
  Effect.map(
    git({ cwd: git_dir, args: [`--git-dir=${git_dir}`, "ls-tree", "-r", "-t", "-z", "--full-tree", tree] }),
    (bytes): ReadonlyArray<TreeEntry> =>
      splitNul(bytes).map((record) => {
        const tab = record.indexOf("\t")
        const [mode = "", , id = ""] = record.slice(0, tab).split(" ")
        return { mode, id, path: record.slice(tab + 1) }
      })
  )

/** Paths that differ from the index, and untracked directories that are repositories of their own. */
export interface Differences {
  readonly paths: ReadonlyArray<ByteString>
  readonly nested: ReadonlyArray<ByteString>
}

const split = (records: ReadonlyArray<ByteString>): Differences => ({
  paths: [...new Set(records.filter((record) => !record.endsWith("/")))],
  nested: records.filter((record) => record.endsWith("/")).map((record) => record.slice(0, -1))
})

/** What differs from the index, untracked files included, ignored ones not. */
export const differences = (store: Store) =>
  Effect.map(
    gitIn(store, ["ls-files", "-z", "-m", "-d", "-o", `--exclude-from=${store.excludes}`]),
    (bytes) => split(splitNul(bytes))
  )

/** Untracked paths that the rules do not ignore. */
export const untracked = (store: Store) =>
  Effect.map(gitIn(store, ["ls-files", "-z", "-o", `--exclude-from=${store.excludes}`]), (bytes) =>
    split(splitNul(bytes))
  )

/** Untracked paths that the rules ignore, whole directories as one path that ends in "/". */
export const ignored = (store: Store) =>
  Effect.map(
    gitIn(store, ["ls-files", "-z", "-o", "-i", "--directory", `--exclude-from=${store.excludes}`]),
    (bytes) => splitNul(bytes)
  )

/** Ignored files that a glob names, `*` not crossing `/`. */
export const ignoredMatching = (store: Store, globs: ReadonlyArray<string>) =>
  Effect.map(
    gitIn(
      store,
      [
        ...["ls-files", "-z", "-o", "-i", `--exclude-from=${store.excludes}`, "--"],
        ...globs.map((glob) => `:(top,glob)${glob.replace(/^\.?\//, "")}`)
      ],
      { env: { GIT_LITERAL_PATHSPECS: "0" } }
    ),
    (bytes) => splitNul(bytes)
  )

/** Tracked and not ignored paths below a directory, "" for all, in byte order. */
export const filesBelow = (store: Store, directory: string) =>
  Effect.map(
    gitIn(store, [
      ...["ls-files", "-z", "-c", "-o", `--exclude-from=${store.excludes}`],
      ...(directory === "" ? [] : ["--", `${directory}/`])
    ]),
    (bytes) => [...new Set(splitNul(bytes).filter((name) => !name.endsWith("/")))].toSorted(byBytes)
  )

const update = (store: Repository, paths: ReadonlyArray<ByteString>) =>
  gitIn(store, ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], { stdin: joinNul(paths) })

/** Takes paths out of the index whatever stands on disk. */
export const forget = (store: Repository, paths: ReadonlyArray<ByteString>) =>
  gitIn(store, ["update-index", "--force-remove", "-z", "--stdin"], { stdin: joinNul(paths) })

/**
 * Brings the index up to date with the disk at these paths. What cannot be a file of the tree counts as nothing there: a
 * device or a FIFO, a directory that is no submodule, whatever lies behind a directory that became a symlink. Git would
 * refuse to go on, or take a repository that somebody made there for a submodule.
 */
export const updateIndex = Effect.fnUntraced(function* (
  store: Repository,
  paths: ReadonlyArray<ByteString>,
  isSubmodule: (path: ByteString) => boolean
) {
  const gone = new Set(yield* goneAmong(store.work_tree, paths, isSubmodule))
  if (gone.size > 0) yield* forget(store, [...gone])
  const there = paths.filter((name) => !gone.has(name))
  if (there.length > 0) yield* update(store, there)
})

type Kind = "file" | "directory" | "link" | "special" | "nothing"

/** The kind of what stands at a path, in bytes: a name need not be UTF-8. */
const kindAt = (root: string, name: ByteString): Effect.Effect<Kind> =>
  Effect.promise(() =>
    lstat(bytePath(root, name)).then(
      (stats): Kind =>
        stats.isFile()
          ? "file"
          : stats.isDirectory()
            ? "directory"
            : stats.isSymbolicLink()
              ? "link"
              : "special",
      (): Kind => "nothing"
    )
  )

const goneAmong = Effect.fnUntraced(function* (
  root: string,
  paths: ReadonlyArray<ByteString>,
  isSubmodule: (path: ByteString) => boolean
) {
  const behindLink = new Map<ByteString, boolean>()
  const isBehindLink = Effect.fnUntraced(function* (name: ByteString) {
    for (const directory of parentsOf(name)) {
      const known = behindLink.get(directory) ?? (yield* kindAt(root, directory)) === "link"
      behindLink.set(directory, known)
      if (known) return true
    }
    return false
  })
  return yield* Effect.filter(
    paths,
    Effect.fnUntraced(function* (name) {
      if (yield* isBehindLink(name)) return true
      const kind = yield* kindAt(root, name)
      return kind === "special" || (kind === "directory" && !isSubmodule(name))
    }),
    { concurrency: 16 }
  )
})

/** Names the tree that was kept last: the paths that a dead process may have left, hidden by the rules or not. */
const newest = "refs/looplane/newest"

/** Keeps a tree by a ref of its own, and as the newest one. */
export const keepTree = Effect.fnUntraced(function* (git_dir: string, tree: TreeId) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.forEach(
    [`refs/looplane/trees/${tree}`, newest],
    (name) => {
      const ref = path.join(git_dir, name)
      // A ref that was cut off while it was written would stop every git that reads refs.
      return Effect.andThen(
        fs.writeFileString(`${ref}.lock`, `${tree}\n`, { mode: 0o600 }),
        fs.rename(`${ref}.lock`, ref)
      )
    },
    { concurrency: 2, discard: true }
  )
})

/** The tree that was kept last, or null. */
export const newestTree = Effect.fnUntraced(function* (git_dir: string) {
  const path = yield* Path.Path
  const text = (yield* textAt(path.join(git_dir, newest))) ?? ""
  return /^[0-9a-f]{40,64}\n$/.test(text) ? TreeId.make(text.trim()) : null
})

/** Makes the index hold exactly the tree. What it knows of the disk stays where it is still about the same bytes. */
export const readIndex = (store: Repository, tree: string) =>
  Effect.asVoid(gitIn(store, ["read-tree", "--reset", tree]))

/** Whether every object of a tree is there. */
export const isComplete = (git_dir: string, tree: string) =>
  Effect.map(
    runGit({
      cwd: git_dir,
      args: [`--git-dir=${git_dir}`, "rev-list", "--objects", "--quiet", tree],
      timeout_ms: 1_800_000
    }),
    (output) => output.exit_code === 0
  )

/** The tree of the index, kept. */
export const writeTree = Effect.fnUntraced(function* (store: Repository) {
  const tree = TreeId.make(lineOf(yield* gitIn(store, ["write-tree"])))
  yield* keepTree(store.git_dir, tree)
  return tree
})

const diffTree = (git_dir: string, from: string, to: string, args: ReadonlyArray<string>) =>
  git({
    cwd: git_dir,
    args: [
      ...[`--git-dir=${git_dir}`, "diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv"],
      ...["--no-color", "--full-index", "--src-prefix=a/", "--dst-prefix=b/", ...args, from, to, "--"]
    ]
  })

/** A path in which two trees differ. */
export interface RawChange {
  readonly path: ByteString
  readonly status: string
  readonly old_mode: string
  readonly new_mode: string
  readonly old_id: string
  readonly new_id: string
}

/** Records of facts and paths, by turns. */
const rawChanges = (records: ReadonlyArray<ByteString>): ReadonlyArray<RawChange> => {
  const changes: Array<RawChange> = []
  for (let at = 0; at + 1 < records.length; at += 2) {
    const [old_mode = "", new_mode = "", old_id = "", new_id = "", status = ""] = (records[at] ?? "")
      .slice(1)
      .split(" ")
    const path = records[at + 1] ?? ""
    changes.push({ path, old_mode, new_mode, old_id, new_id, status: status[0] ?? "" })
  }
  return changes
}

/** The paths in which two trees differ. */
export const changesBetween = (git_dir: string, from: string, to: string) =>
  Effect.map(diffTree(git_dir, from, to, ["--raw", "-z"]), (raw) => rawChanges(splitNul(raw)))

/** A tree against another, as a patch. */
export const patchBetween = (git_dir: string, from: string, to: string) =>
  diffTree(git_dir, from, to, ["-p", "--binary", "-U3"])
