/**
 * An ordinary `.git` for tools that expect one. looplane never reads it: whatever happens to it changes no tree.
 */
import { Effect, FileSystem, Path } from "effect"
import { createHash } from "node:crypto"
import { typeAt } from "../fs/Files.ts"
import { git, type Repository } from "../git/GitBinary.ts"
import { copyObjects, makeGitDirectory, type NewGitDirectory } from "../git/GitDirectory.ts"
import { removeTree } from "./RemoveTree.ts"
import { sweepForeign } from "./Sweep.ts"
import { readIndex } from "./Trees.ts"

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
  const at = path.join(root, ".git", "index")
  // In the place of a file there may be a link by now: it is removed and not written through.
  yield* fs.remove(at, { recursive: true, force: true })
  yield* fs.copyFile(index, at)
})

/** The index of one that is made for a tree later than the base: what differs from the base is a change. */
export const finishLater = Effect.fnUntraced(function* (
  root: string,
  { git_dir, index }: Repository,
  base: string,
  tree: string
) {
  const path = yield* Path.Path
  yield* finishThrowAway(root, index)
  if (base === tree) return
  yield* readIndex({ git_dir, work_tree: root, index: path.join(root, ".git", "index") }, base)
})

/** Whether an index file is one to its last byte. Git itself believes whatever stands between header and end. */
export const isWholeIndex = Effect.fnUntraced(function* (file: string, digits: number) {
  const fs = yield* FileSystem.FileSystem
  if ((yield* typeAt(file)) !== "File") return false
  const bytes = Buffer.from(yield* fs.readFile(file).pipe(Effect.orElseSucceed(() => new Uint8Array())))
  const end = bytes.length - digits / 2
  if (end < 12 || bytes.toString("latin1", 0, 4) !== "DIRC") return false
  const sum = createHash(digits === 64 ? "sha256" : "sha1")
    .update(bytes.subarray(0, end))
    .digest()
  const said = bytes.subarray(end)
  // All zeros: whoever wrote it was told to spare the sum.
  return said.equals(sum) || said.every((byte) => byte === 0)
})

/** Whether a `.git` looks like one that git can open, by its files alone: no git process is shown its settings. */
const isSound = Effect.fnUntraced(function* (at: string, commit: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const expected = [
    [".", "Directory"],
    ["objects", "Directory"],
    ["refs", "Directory"],
    ["HEAD", "File"],
    ["config", "File"]
  ] as const
  for (const [name, type] of expected) if ((yield* typeAt(path.join(at, name))) !== type) return false
  const head = yield* fs.readFileString(path.join(at, "HEAD")).pipe(Effect.orElseSucceed(() => ""))
  if (!/^(?:ref: refs\/\S+|[0-9a-f]{40,64})\s*$/.test(head)) return false
  const loose = path.join(at, "objects", commit.slice(0, 2), commit.slice(2))
  if ((yield* typeAt(loose)) === "File") return true
  const packs = yield* fs
    .readDirectory(path.join(at, "objects", "pack"))
    .pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
  return packs.some((name) => name.endsWith(".pack"))
})

/**
 * Puts right what a dead process left of the workspace's `.git`: its locks go, an index that is torn is made again, and
 * one that git could not open is made anew, aside first. Whatever else somebody did there stays.
 */
export const mendThrowAway = Effect.fnUntraced(function* (
  store: Repository,
  identity: Identity,
  made: string,
  base: string,
  tree: string
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = store.work_tree
  const at = path.join(root, ".git")
  if (yield* isSound(at, identity.commit)) {
    yield* sweepForeign(at)
    if (!(yield* isWholeIndex(path.join(at, "index"), identity.commit.length)))
      yield* finishLater(root, store, base, tree)
    return
  }
  yield* makeThrowAway(made, identity)
  yield* finishLater(made, store, base, tree)
  yield* removeTree(at)
  yield* fs.rename(path.join(made, ".git"), at)
})
