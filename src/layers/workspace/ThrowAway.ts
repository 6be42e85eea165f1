/**
 * An ordinary `.git` for tools that expect one. looplane never reads it: whatever happens to it changes no tree.
 */
import { Effect, FileSystem, Path } from "effect"
import { git } from "../git/GitBinary.ts"
import { copyObjects, makeGitDirectory, type NewGitDirectory } from "../git/GitDirectory.ts"

export interface Identity {
  /** Our own git directory. */
  readonly git_dir: string
  readonly commit: string
  readonly branch: string | null
  readonly shallow: string | null
}

/** Up to this many bytes of objects the whole history comes along; beyond it, the one commit. */
const wholeHistoryBytes = 64 * 1024 * 1024

const packedBytes = Effect.fnUntraced(function* (git_dir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const packs = path.join(git_dir, "objects", "pack")
  const names = (yield* fs.readDirectory(packs)).filter((name) => name.endsWith(".pack"))
  const infos = yield* Effect.forEach(names, (name) => fs.stat(path.join(packs, name)), { concurrency: 8 })
  return infos.reduce((sum, info) => sum + Number(info.size), 0)
})

/** Makes the directory and fills its objects. The index comes with `finishThrowAway`. */
export const makeThrowAway = Effect.fnUntraced(function* (
  root: string,
  identity: Identity,
  limit: number = wholeHistoryBytes
) {
  const path = yield* Path.Path
  const at = path.join(root, ".git")
  const whole = (yield* packedBytes(identity.git_dir)) <= limit
  const directory: NewGitDirectory = { ...identity, at, bare: false }
  yield* makeGitDirectory(whole ? directory : { ...directory, shallow: `${identity.commit}\n` })
  if (whole) return yield* copyObjects(identity.git_dir, path.join(at, "objects"))
  yield* git({
    cwd: identity.git_dir,
    env: { GIT_ALLOW_PROTOCOL: "file" },
    timeout_ms: 1_800_000,
    args: [
      ...[
        `--git-dir=${at}`,
        "-c",
        "core.bare=true",
        "fetch",
        "-q",
        "--depth=1",
        "--no-tags",
        "--no-write-fetch-head"
      ],
      ...[`file://${identity.git_dir}`, identity.commit]
    ]
  })
})

/** Gives it the index of what was checked out, so that `git status` is quick and says what changed. */
export const finishThrowAway = Effect.fnUntraced(function* (root: string, index: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.copyFile(index, path.join(root, ".git", "index"))
})
