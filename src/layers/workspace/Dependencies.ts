/**
 * The dependency layer: what a clone lacks, copied from where it was installed. Never linked: a link would let a check
 * change the source, or test the source's code.
 */
import { Effect, FileSystem, Path } from "effect"
import { createHash } from "node:crypto"
import { Digest } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import { displayName, textOf } from "../git/GitBinary.ts"
import { copyTrees } from "./Copy.ts"
import { dependencyDirectories, dependencyTable, isLockFile, locksFor } from "./DependencyTable.ts"
import { failed } from "./Failure.ts"
import { relocate, type Relocation } from "./Relocate.ts"
import { sealOf } from "./Seal.ts"
import { ignored, ignoredMatching, type Store, type TreeEntry } from "./Trees.ts"

export interface DependencyLayer {
  /** Directories and files, relative to the root. */
  readonly copied: ReadonlyArray<string>
  readonly lock_digest: Digest | null
  /** Why nothing came along, when something was there. */
  readonly reason: string | null
  /** The root below which the originals lie. */
  readonly origin: string
  /** Those of `copied` that `--include` named; they lie below `included_from`. */
  readonly included: ReadonlyArray<string>
  readonly included_from: string
  /** The root that the originals were installed for. */
  readonly installed_at: string
  readonly pointers: Relocation["pointers"]
  /** What set-up's outputs looked like when they were put aside; null when the originals are the user's own. */
  readonly seal: string | null
}

/** A lock file's path and the id of its bytes, as one line. */
const lockLines = (
  entries: ReadonlyArray<TreeEntry>,
  directories: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const names = locksFor(directories)
  return entries
    .filter(
      (entry) =>
        entry.mode !== "040000" &&
        isLockFile(entry.path) &&
        names.has(entry.path.slice(entry.path.lastIndexOf("/") + 1))
    )
    .map((entry) => `${entry.id} ${entry.path}`)
}

/** The lock file that speaks for the layer and differs between two trees, or null. */
export const differingLock = (
  layer: DependencyLayer,
  base: ReadonlyArray<TreeEntry>,
  other: ReadonlyArray<TreeEntry>
): string | null => {
  const before = lockLines(base, layer.copied)
  const after = lockLines(other, layer.copied)
  const line = before.find((one) => !after.includes(one)) ?? after.find((one) => !before.includes(one))
  return line === undefined ? null : displayName(line.slice(line.indexOf(" ") + 1))
}

const isDirectory = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.stat(at).pipe(
    Effect.map((info) => info.type === "Directory"),
    Effect.catchTag("PlatformError", () => Effect.succeed(false))
  )
})

const withoutCarriageReturns = (bytes: Uint8Array): string =>
  Buffer.from(bytes).toString("latin1").replaceAll("\r\n", "\n")

/** The lock files at base that speak for the directories: their digest, and the first that the checkout has otherwise. */
const compareLocks = Effect.fnUntraced(function* (
  source: string,
  workspace: string,
  entries: ReadonlyArray<TreeEntry>,
  directories: ReadonlyArray<string>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const locks = lockLines(entries, directories)
  if (locks.length === 0) return { lock_digest: null, differing: null }
  const names = locks
    .map((line) => textOf(line.slice(line.indexOf(" ") + 1)))
    .filter((name) => name !== undefined)
  const hash = createHash("sha256")
  let differing: string | null = null
  for (const name of names.toSorted()) {
    const read = (at: string) => fs.readFile(at).pipe(Effect.orElseSucceed(() => new Uint8Array()))
    const atBase = yield* read(path.join(workspace, name))
    const atSource = yield* read(path.join(source, name))
    hash.update(`${name}\0${atBase.length}\0`).update(atBase)
    if (differing === null && withoutCarriageReturns(atBase) !== withoutCarriageReturns(atSource))
      differing = name
  }
  return { lock_digest: Digest.make(hash.digest("hex")), differing }
})

/** Dependency directories directly below a directory that the user named, or that directory itself. */
const namedDirectories = Effect.fnUntraced(function* (named: string) {
  const path = yield* Path.Path
  if (!(yield* isDirectory(named))) return yield* failed(`--deps ${named} is not a directory`)
  const names = dependencyTable.map((row) => row.name)
  if (names.includes(path.basename(named)))
    return { origin: path.dirname(named), directories: [path.basename(named)] }
  const directories = yield* Effect.filter(names, (name) => isDirectory(path.join(named, name)))
  return { origin: named, directories }
})

/**
 * Whether a path of the source can be put into a checkout of the base: where the base has a symlink, a file or a
 * submodule in the place of one of its directories, writing there would leave the checkout.
 */
const standsFree = (entries: ReadonlyArray<TreeEntry>) => {
  const taken = new Set(
    entries.filter((entry) => entry.mode !== "040000").map((entry) => displayName(entry.path))
  )
  return (name: string): boolean => ![...parentsOf(name), name].some((at) => taken.has(at))
}

/**
 * Decides what comes along. `store` has the source as its work tree and knows the base's paths and ignore rules:
 * directories that the base does not ignore would enter the tree, so they stay. `hints` are the paths that the user's
 * own rules ignore, where they are known: without a candidate among them nobody needs to ask the base's.
 */
export const planDependencies = Effect.fnUntraced(function* (
  task: Task,
  store: Store,
  workspace: string,
  entries: ReadonlyArray<TreeEntry>,
  hints: ReadonlyArray<string> | null
) {
  const path = yield* Path.Path
  const source = task.repository
  const free = standsFree(entries)
  const included =
    task.include.length === 0
      ? []
      : (yield* ignoredMatching(store, task.include))
          .map(textOf)
          .filter((name) => name !== undefined)
          .filter(free)
  const layer: DependencyLayer = {
    copied: included,
    lock_digest: null,
    reason: null,
    origin: source,
    included,
    included_from: source,
    installed_at: source,
    pointers: "report",
    seal: null
  }
  if (task.dependencies.mode === "none") return layer
  if (task.dependencies.mode === "path") {
    const { directories, origin } = yield* namedDirectories(path.resolve(source, task.dependencies.path))
    const { lock_digest } = yield* compareLocks(source, workspace, entries, directories)
    return { ...layer, origin, installed_at: origin, copied: [...directories, ...included], lock_digest }
  }
  if (hints !== null && dependencyDirectories(hints).length === 0) return layer
  const directories = dependencyDirectories((yield* ignored(store)).map(displayName)).filter(free)
  if (directories.length === 0) return layer
  const { differing, lock_digest } = yield* compareLocks(source, workspace, entries, directories)
  if (task.dependencies.mode === "auto" && differing !== null) {
    const reason = `${differing} in the checkout differs from the base: use --setup to install, or --deps copy`
    return { ...layer, lock_digest, reason }
  }
  return { ...layer, copied: [...directories, ...included], lock_digest }
})

/**
 * Puts the layer into a place. `present` says which directories the place has: a package that a tree no longer holds
 * gets no dependencies. Returns why what was copied could not be believed, or null.
 */
export const provideDependencies = Effect.fnUntraced(function* (
  layer: DependencyLayer,
  root: string,
  present: (directory: string) => boolean
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const wanted = layer.copied.filter(
    (name) =>
      path.dirname(name) === "." ||
      dependencyDirectories([`${name}/`]).length === 0 ||
      present(path.dirname(name))
  )
  if (layer.seal !== null && layer.seal !== (yield* sealOf(layer.origin)))
    return yield* failed(
      "something else changed what set-up had installed, so no check of it can be believed"
    )
  const included = new Set(layer.included)
  const reasons = yield* Effect.forEach(
    wanted,
    (name) =>
      Effect.gen(function* () {
        const from = path.join(included.has(name) ? layer.included_from : layer.origin, name)
        const to = path.join(root, name)
        if (!(yield* isDirectory(from))) {
          yield* fs.makeDirectory(path.dirname(to), { recursive: true })
          yield* fs.copyFile(from, to)
          return null
        }
        yield* copyTrees([from], path.dirname(to))
        return yield* relocate(to, { from: layer.installed_at, to: root, pointers: layer.pointers })
      }),
    { concurrency: 2 }
  ).pipe(
    Effect.catchTag("PlatformError", (cause) => Effect.fail(failed("dependencies cannot be copied", cause)))
  )
  return reasons.find((reason) => reason !== null) ?? null
})

/**
 * The layer after set-up ran: every dependency directory that the workspace has now, put aside before an agent can touch
 * it.
 */
export const captureDependencies = Effect.fnUntraced(function* (
  before: DependencyLayer,
  workspace: Store,
  aside: string
) {
  const path = yield* Path.Path
  const directories = dependencyDirectories((yield* ignored(workspace)).map(displayName))
  const copied = [...directories, ...before.included]
  yield* Effect.forEach(
    copied,
    (name) => copyTrees([path.join(workspace.work_tree, name)], path.dirname(path.join(aside, name))),
    { concurrency: 2, discard: true }
  ).pipe(
    Effect.catchTag("PlatformError", (cause) =>
      Effect.fail(failed("the set-up's outputs cannot be kept", cause))
    )
  )
  const layer: DependencyLayer = {
    ...before,
    copied,
    reason: null,
    origin: aside,
    included_from: aside,
    installed_at: workspace.work_tree,
    pointers: "rewrite",
    seal: yield* sealOf(aside)
  }
  return layer
})
