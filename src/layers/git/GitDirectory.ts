/**
 * Git directories without git: where a repository keeps what we read, and the making of our own. No git process ever
 * reads the source's settings for this: a planted transport, filter or include has nobody to run it.
 */
import { Effect, FileSystem, Path } from "effect"
import { copyTrees } from "../workspace/Copy.ts"
import { GitError } from "../../services/Git.ts"
import { textAt, typeAt } from "../fs/Files.ts"

export interface GitLocation {
  /** Holds HEAD and the index. */
  readonly git_dir: string
  /** Holds objects and refs; differs in a linked worktree. */
  readonly common_dir: string
}

const refuse = (message: string, cause?: unknown) =>
  new GitError({ reason: "failed", message, ...(cause === undefined ? {} : { cause }) })

/** The git directory of a work tree: `.git`, or what a `.git` file points at. */
export const locateGit = Effect.fnUntraced(
  function* (root: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const dotGit = path.join(root, ".git")
    const pointer = (yield* fs.stat(dotGit)).type === "Directory" ? null : ((yield* textAt(dotGit)) ?? "")
    const target = pointer === null ? dotGit : /^gitdir: (.+)$/m.exec(pointer)?.[1]
    if (target === undefined) return yield* refuse(`${dotGit} does not name a git directory`)
    const git_dir = yield* fs.realPath(path.resolve(root, target.trimEnd()))
    const common = (yield* textAt(path.join(git_dir, "commondir"))) ?? "."
    const common_dir = yield* fs.realPath(path.resolve(git_dir, common.trimEnd()))
    const location: GitLocation = { git_dir, common_dir }
    return location
  },
  (effect, root) =>
    effect.pipe(
      Effect.catchTag("PlatformError", (error) =>
        Effect.fail(refuse(`${root} has no readable git directory: ${error.message}`, error))
      )
    )
)

/** The object stores of a repository: its own and the ones that it borrows from, nearest first. */
const objectStores = Effect.fnUntraced(function* (common_dir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const found: Array<string> = []
  const queue = [path.join(common_dir, "objects")]
  for (let next = queue.shift(); next !== undefined && found.length < 16; next = queue.shift()) {
    const store = yield* fs.realPath(next)
    if (found.includes(store)) continue
    found.push(store)
    const borrowed = (yield* textAt(path.join(store, "info", "alternates"))) ?? ""
    for (const line of borrowed.split("\n")) {
      if (line !== "" && !line.startsWith("#")) queue.push(path.resolve(store, line))
    }
  }
  return found
})

/** Copies every object of a repository, never by link, and only what git keeps objects in. */
export const copyObjects = Effect.fnUntraced(function* (common_dir: string, into: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const store of yield* objectStores(common_dir)) {
    const entries = yield* fs.readDirectoryEntries(store)
    // A symlink among these would let our own writes leave our directory: it is not followed, and not copied.
    const parts = entries.filter(
      (entry) => entry.type === "Directory" && (entry.name === "pack" || /^[0-9a-f]{2}$/.test(entry.name))
    )
    yield* copyTrees(
      parts.map((entry) => path.join(store, entry.name)),
      into
      // Whoever writes objects meanwhile has temporary files among them, which may be gone when their turn comes.
    ).pipe(Effect.retry({ times: 2 }))
  }
})

export interface NewGitDirectory {
  readonly at: string
  readonly commit: string
  /** The branch that HEAD names, `refs/heads/...`; null: HEAD is the commit itself. */
  readonly branch: string | null
  readonly bare: boolean
  /** The source's, when its history is cut. */
  readonly shallow: string | null
}

/** One of ours that keeps objects for us: no branch, no work tree of its own. */
export const bareDirectory = (at: string, commit: string, shallow: string | null): NewGitDirectory => ({
  at,
  commit,
  branch: null,
  bare: true,
  shallow
})

const configOf = (options: NewGitDirectory): string =>
  [
    "[core]",
    `\trepositoryformatversion = ${options.commit.length === 64 ? 1 : 0}`,
    `\tbare = ${options.bare}`,
    "\tfilemode = true",
    "\tsymlinks = true",
    "\tignorecase = false",
    "\tautocrlf = false",
    "\tlogallrefupdates = false",
    // A journal cites the trees: they must outlive a power loss when it does.
    ...(options.bare ? ["\tfsync = loose-object", "\tfsyncMethod = batch"] : []),
    "[gc]",
    "\tauto = 0",
    ...(options.commit.length === 64 ? ["[extensions]", "\tobjectformat = sha256"] : []),
    ...(options.bare ? [] : ["[user]", "\tname = looplane", "\temail = looplane@localhost"]),
    ""
  ].join("\n")

/**
 * What makes every tree one of raw bytes and every diff a plain one. `!diff` and not `-diff`: unset, git would call
 * every file binary; unspecified, it looks at the bytes, and no driver of the repository is asked.
 */
const rawAttributes = "* -filter !diff -merge -ident -text -working-tree-encoding\n"

/** The files that decide what git does in a directory of ours. */
const controlFiles = (options: NewGitDirectory): ReadonlyArray<readonly [name: string, content: string]> => [
  ["HEAD", options.branch === null ? `${options.commit}\n` : `ref: ${options.branch}\n`],
  ["config", configOf(options)],
  ["info/exclude", ""],
  ...(options.bare ? [["info/attributes", rawAttributes] as const] : []),
  ...(options.shallow === null ? [] : [["shallow", options.shallow] as const])
]

/** Files that would send git elsewhere for its settings or objects. A directory of ours has none of them. */
const detours = ["commondir", "config.worktree", "objects/info/alternates"]

/** The first file of a git directory of ours that is not as we made it, or null. */
export const changedControl = Effect.fnUntraced(function* (options: NewGitDirectory) {
  const path = yield* Path.Path
  for (const [name, content] of controlFiles(options)) {
    if ((yield* textAt(path.join(options.at, name))) !== content) return name
  }
  for (const name of detours) {
    if ((yield* typeAt(path.join(options.at, name))) !== null) return name
  }
  return null
})

/** Directories of a git directory of ours, outer ones first. */
const directories = [
  ".",
  "objects",
  "objects/info",
  "objects/pack",
  "info",
  "refs",
  "refs/heads",
  "refs/tags",
  "refs/looplane",
  "refs/looplane/trees"
]

/** Whether a git directory of ours is there and made of directories: through a link our writes would go elsewhere. */
export const isPlainGitDirectory = Effect.fnUntraced(function* (at: string) {
  const path = yield* Path.Path
  const kinds = yield* Effect.forEach(directories, (name) => typeAt(path.join(at, name)), {
    concurrency: "unbounded"
  })
  return kinds[0] !== null && kinds.every((kind) => kind === null || kind === "Directory")
})

/** Makes a git directory of ours, if it is none, again what we made: a planted or torn setting never reaches git. */
export const resetControl = Effect.fnUntraced(function* (options: NewGitDirectory) {
  if ((yield* changedControl(options)) === null) return
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.forEach(
    [...controlFiles(options).map(([name]) => name), ...detours],
    (name) => fs.remove(path.join(options.at, name), { recursive: true, force: true }),
    { concurrency: "unbounded", discard: true }
  )
  yield* makeGitDirectory(options)
})

/** Makes a git directory with no objects in it yet. */
export const makeGitDirectory = Effect.fnUntraced(function* (options: NewGitDirectory) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(options.at, { recursive: true, mode: 0o700 })
  const head = options.branch ?? "refs/looplane/base"
  yield* Effect.forEach(
    [...directories, path.dirname(head)],
    (directory) => fs.makeDirectory(path.join(options.at, directory), { recursive: true, mode: 0o700 }),
    { concurrency: "unbounded", discard: true }
  )
  const files = [...controlFiles(options), [head, `${options.commit}\n`] as const]
  yield* Effect.forEach(
    files,
    ([name, content]) => fs.writeFileString(path.join(options.at, name), content, { mode: 0o600 }),
    { concurrency: "unbounded", discard: true }
  )
})

/** A branch with an ordinary name: none that git or a path would read as something else. */
export const branchPattern =
  /^(?!.*\.\.)(?!.*\.lock$)refs\/heads\/[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/

/** What a repository's HEAD names, when it is a branch with an ordinary name, and where its history is cut. */
export const headOf = Effect.fnUntraced(function* (location: GitLocation) {
  const path = yield* Path.Path
  const head = (yield* textAt(path.join(location.git_dir, "HEAD"))) ?? ""
  const shallow = (yield* textAt(path.join(location.common_dir, "shallow"))) ?? ""
  const branch = /^ref: (\S+)\s*$/.exec(head)?.[1] ?? ""
  return {
    branch: branchPattern.test(branch) ? branch : null,
    shallow: shallow === "" ? null : shallow
  }
})
