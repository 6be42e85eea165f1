/**
 * A git directory for one question: what a patch makes of its base. It has an index of its own, settings and attributes
 * of ours, and borrows objects from the repository and from the run.
 */
import { Effect, FileSystem, Path } from "effect"
import type { PatchedPath } from "../../domain/Apply.ts"
import type { FileNode } from "../../domain/patch/FileSet.ts"
import { checkWorkspacePath, quotePath } from "../../domain/WorkspacePath.ts"
import type { PatchSource } from "../../services/UserTree.ts"
import { displayName, git, type GitCommand, lineOf, textOf } from "../git/GitBinary.ts"
import { bareDirectory, type GitLocation, makeGitDirectory } from "../git/GitDirectory.ts"
import { changesBetween } from "../workspace/Trees.ts"
import { refused } from "./Fault.ts"

export interface Scratch {
  readonly git_dir: string
  readonly run: (
    args: ReadonlyArray<string>,
    options?: Omit<GitCommand, "args" | "cwd">
  ) => ReturnType<typeof git>
}

/** With `into`, new objects go to that object directory instead of being thrown away. */
export const makeScratch = Effect.fnUntraced(function* (options: {
  readonly location: GitLocation
  readonly commit: string
  /** The run's directory; null when none is asked. */
  readonly run_directory: string | null
  readonly into: string | null
}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const git_dir = yield* fs.makeTempDirectoryScoped({ prefix: "looplane-" })
  yield* makeGitDirectory(bareDirectory(git_dir, options.commit, null))
  const own = options.run_directory === null ? null : path.join(options.run_directory, "git", "objects")
  const stores = [
    path.join(options.location.common_dir, "objects"),
    ...(own !== null && (yield* fs.exists(own)) ? [own] : [])
  ]
  // Both places of this list take names in double quotes.
  const names = stores.map((store) => JSON.stringify(store))
  yield* fs.writeFileString(path.join(git_dir, "objects", "info", "alternates"), `${names.join("\n")}\n`)
  const env = {
    GIT_INDEX_FILE: path.join(git_dir, "index"),
    ...(options.into === null
      ? {}
      : {
          GIT_OBJECT_DIRECTORY: options.into,
          GIT_ALTERNATE_OBJECT_DIRECTORIES: names.join(":"),
          // A record of ours will name them, and must not outlive them.
          GIT_CONFIG_COUNT: "1",
          GIT_CONFIG_KEY_0: "core.fsync",
          GIT_CONFIG_VALUE_0: "loose-object"
        })
  }
  const scratch: Scratch = {
    git_dir,
    run: (args, extra = {}) =>
      git({ ...extra, cwd: git_dir, args: [`--git-dir=${git_dir}`, ...args], env: { ...env, ...extra.env } })
  }
  return scratch
})

/** Base plus patch in the scratch index. Returns the tree, which must be the one that the run handed over. */
export const applyToBase = Effect.fnUntraced(function* (scratch: Scratch, source: PatchSource) {
  yield* scratch
    .run(["read-tree", source.base])
    .pipe(
      Effect.mapError((cause) =>
        refused(
          `what the run began from is neither in the repository nor in ${source.run_directory}: ${cause.message}`,
          cause
        )
      )
    )
  yield* scratch
    .run(["apply", "--cached", "--whitespace=nowarn", "-p1", "-"], { stdin: source.patch })
    .pipe(
      Effect.mapError((cause) =>
        refused(`the patch of run ${source.run_id} does not fit its own base: ${cause.message}`, cause)
      )
    )
  const tree = lineOf(yield* scratch.run(["write-tree", "--missing-ok"]))
  if (source.tree !== null && tree !== source.tree)
    return yield* refused(
      `the patch of run ${source.run_id} does not give the tree that was checked: it is not applied`
    )
  return tree
})

interface Side {
  readonly mode: string
  readonly id: string
}

const nobody = /^0+$/

/** The contents of blobs, by id. */
export const readBlobs = Effect.fnUntraced(function* (scratch: Scratch, ids: ReadonlyArray<string>) {
  const blobs = new Map<string, Uint8Array>()
  if (ids.length === 0) return blobs
  const bytes = Buffer.from(
    yield* scratch.run(["cat-file", "--batch"], { stdin: Buffer.from(`${ids.join("\n")}\n`) })
  )
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf("\n", at)
    const [id = "", kind, size] = bytes.toString("latin1", at, end).split(" ")
    if (kind !== "blob") return yield* refused(`the repository does not have the object ${id}`)
    const start = end + 1
    blobs.set(id, bytes.subarray(start, start + Number(size)))
    at = start + Number(size) + 1
  }
  return blobs
})

export const nodeOf = Effect.fnUntraced(function* (
  { id, mode }: Side,
  path: string,
  blobs: ReadonlyMap<string, Uint8Array>
) {
  if (mode === "000000" || nobody.test(id)) return undefined
  const bytes = blobs.get(id) ?? new Uint8Array()
  if (mode.startsWith("100")) return { _tag: "File", bytes, executable: mode === "100755" } satisfies FileNode
  const target = mode === "120000" ? textOf(Buffer.from(bytes).toString("latin1")) : undefined
  if (target !== undefined) return { _tag: "Symlink", target } satisfies FileNode
  return yield* refused(
    mode === "160000"
      ? `the patch moves the submodule ${quotePath(path)}: that is not applied, do it by hand`
      : `the patch makes ${quotePath(path)} a link to a name that is not UTF-8: use git apply`
  )
})

const checkedPath = Effect.fnUntraced(function* (name: string) {
  const path = textOf(name)
  if (path === undefined)
    return yield* refused(`the patch names ${displayName(name)}, which is not UTF-8: use git apply`)
  const checked = checkWorkspacePath(path)
  if (checked._tag === "Failure") return yield* refused(`the patch is refused: ${checked.failure}`)
  if (checked.success !== path)
    return yield* refused(`the patch names ${quotePath(path)}, which is no plain path`)
  return path
})

/** Every path that the patch changes, before and after, in byte order. */
export const patchedPaths = Effect.fnUntraced(function* (scratch: Scratch, base: string, tree: string) {
  const found = yield* Effect.forEach(yield* changesBetween(scratch.git_dir, base, tree), (change) =>
    Effect.map(checkedPath(change.path), (path) => ({
      path,
      before: { mode: change.old_mode, id: change.old_id },
      after: { mode: change.new_mode, id: change.new_id }
    }))
  )
  const ids = found
    .flatMap(({ after, before }) => [before, after])
    .filter(({ id, mode }) => mode !== "160000" && !nobody.test(id))
    .map(({ id }) => id)
  const blobs = yield* readBlobs(scratch, [...new Set(ids)])
  return yield* Effect.forEach(found, ({ after, before, path }) =>
    Effect.gen(function* () {
      const patched: PatchedPath = {
        path,
        base: yield* nodeOf(before, path, blobs),
        patched: yield* nodeOf(after, path, blobs)
      }
      return patched
    })
  )
})
