/**
 * The user's repository, by the git program. Nothing that the repository planted runs, and no byte of it changes.
 */
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { CommitId } from "../../domain/Ids.ts"
import { Git, GitError, type Source } from "../../services/Git.ts"
import { isDirectory } from "../fs/Files.ts"
import { complaint, displayName, git, type GitOutput, runGit, splitNul } from "./GitBinary.ts"
import { locateGit } from "./GitDirectory.ts"

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")

/** Why git found no work tree with a commit, in one line that says what to do. */
const explain = (directory: string, output: GitOutput, lines: ReadonlyArray<string>): GitError => {
  const said = complaint(output)
  if (lines[0] === "true") {
    return new GitError({
      reason: "bare",
      message: `${directory} is in a bare repository: looplane needs one with a work tree`
    })
  }
  if (lines[1] === "true") {
    return new GitError({
      reason: "not_a_repository",
      message: `${directory} is inside a .git directory: run looplane in the work tree`
    })
  }
  if (lines[2] === "true") {
    return new GitError({
      reason: "no_commits",
      message: `the repository at ${directory} has no commits: commit something first`
    })
  }
  return /not a git repository/i.test(said)
    ? new GitError({
        reason: "not_a_repository",
        message: `${directory} is not in a git repository: run git init there, or use -C`
      })
    : new GitError({ reason: "failed", message: `git cannot read the repository at ${directory}: ${said}` })
}

const source = Effect.fn("Git.source")(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const real = yield* fs
    .realPath(directory)
    .pipe(
      Effect.catchTag("PlatformError", (cause) =>
        Effect.fail(
          new GitError({ reason: "not_a_repository", message: `${directory} does not exist`, cause })
        )
      )
    )
  if (!(yield* isDirectory(real))) {
    return yield* new GitError({ reason: "not_a_repository", message: `${directory} is not a directory` })
  }
  const output = yield* runGit({
    cwd: real,
    // HEAD comes last: whatever fails before it has already said where we stand.
    args: [
      ...[
        "rev-parse",
        "--is-bare-repository",
        "--is-inside-git-dir",
        "--is-inside-work-tree",
        "--show-toplevel"
      ],
      "HEAD^{commit}"
    ]
  })
  const lines = text(output.stdout).split("\n").slice(0, -1)
  const head = lines.at(-1) ?? ""
  if (output.exit_code !== 0 || !/^[0-9a-f]{40,64}$/.test(head))
    return yield* explain(directory, output, lines)
  const root = yield* fs
    .realPath(lines.slice(3, -1).join("\n"))
    .pipe(
      Effect.catchTag("PlatformError", (cause) =>
        Effect.fail(
          new GitError({ reason: "failed", message: `the work tree of ${directory} cannot be read`, cause })
        )
      )
    )
  const subdirectory = path.relative(root, real)
  // A repository may name any directory as its work tree. Only one that holds the repository is taken at its word.
  const own = yield* fs.exists(path.join(root, ".git")).pipe(Effect.orElseSucceed(() => false))
  if (!own || subdirectory === ".." || subdirectory.startsWith("../")) {
    return yield* new GitError({
      reason: "failed",
      message: `the repository at ${directory} keeps its work tree elsewhere (core.worktree): run looplane there`
    })
  }
  const found: Source = { root, subdirectory, head: CommitId.make(head) }
  return found
})

/** Runs git on the source's own objects and refs, which starts nothing and writes nothing. */
const inSource = Effect.fnUntraced(function* (root: string, args: ReadonlyArray<string>) {
  const { git_dir } = yield* locateGit(root)
  return yield* runGit({ cwd: root, args: [`--git-dir=${git_dir}`, ...args] })
})

const resolve = Effect.fn("Git.resolve")(function* (root: string, revision: string) {
  const output = yield* inSource(root, [
    "rev-parse",
    "--verify",
    "--quiet",
    "--end-of-options",
    `${revision}^{commit}`
  ])
  const id = text(output.stdout).trim()
  if (output.exit_code === 0 && /^[0-9a-f]{40,64}$/.test(id)) return CommitId.make(id)
  return yield* new GitError({
    reason: "unknown_commit",
    message: `${JSON.stringify(revision)} is not a commit of the repository at ${root}`
  })
})

const paths = Effect.fn("Git.paths")(function* (root: string, commit: CommitId) {
  const { git_dir } = yield* locateGit(root)
  const listed = yield* git({
    cwd: root,
    args: [`--git-dir=${git_dir}`, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]
  })
  return splitNul(listed).map(displayName).toSorted()
})

const file = Effect.fn("Git.file")(function* (
  root: string,
  commit: CommitId,
  name: string,
  max_bytes: number
) {
  const { git_dir } = yield* locateGit(root)
  const at = `--git-dir=${git_dir}`
  const listed = yield* git({
    cwd: root,
    args: [at, "ls-tree", "-z", "-l", "--full-tree", commit, "--", name]
  })
  const found = /^100[0-7]{3} blob ([0-9a-f]+) +(\d+)\t/.exec(splitNul(listed)[0] ?? "")
  const [, id, size] = found ?? []
  if (id === undefined || Number(size) > max_bytes) return null
  return yield* git({ cwd: root, args: [at, "cat-file", "blob", id] })
})

export const layer: Layer.Layer<
  Git,
  never,
  ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path
> = Layer.effect(
  Git,
  Effect.gen(function* () {
    const services = yield* Effect.map(
      Effect.context<ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path>(),
      Context.pick(ChildProcessSpawner.ChildProcessSpawner, FileSystem.FileSystem, Path.Path)
    )
    return Git.of({
      source: (directory) => Effect.provideContext(source(directory), services),
      resolve: (root, revision) => Effect.provideContext(resolve(root, revision), services),
      file: (root, commit, name, max_bytes) =>
        Effect.provideContext(file(root, commit, name, max_bytes), services),
      paths: (root, commit) => Effect.provideContext(paths(root, commit), services)
    })
  })
)
