/**
 * The dependency layer: what a clone lacks, copied from where it was installed. Never linked: a link would let a check
 * change the source, or test the source's code.
 */
import { Effect, FileSystem, Path } from "effect"
import { createHash } from "node:crypto"
import { Digest } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import { bytesAt, isDirectory } from "../fs/Files.ts"
import { displayName, textOf } from "../git/GitBinary.ts"
import { Sandbox } from "../../services/Sandbox.ts"
import { copyTrees } from "./Copy.ts"
import { dependencyDirectories, dependencyTable, isLockFile, locksFor } from "./DependencyTable.ts"
import { failed } from "./Failure.ts"
import type { WorkspaceRecord } from "./Record.ts"
import { nowhere, relocate, type Relocation } from "./Relocate.ts"
import { isSealed, sealOf } from "./Seal.ts"
import { ignored, ignoredMatching, type Store, type TreeEntry } from "./Trees.ts"

/** What the run wrote down of the layer, and where that is on this machine. */
export interface DependencyLayer extends Readonly<WorkspaceRecord["layer"]> {
  /** The root below which the originals lie. */
  readonly origin: string
  /** The root below which those that `--include` named lie. */
  readonly included_from: string
  /** The root that the originals were installed for. */
  readonly installed_at: string
  readonly pointers: Relocation["pointers"]
  /** Where commands see the place that the layer is brought to; null: where it is. */
  readonly shown_at: string | null
  /** Its directories are shown to commands where they are, and never copied. */
  readonly mounted: boolean
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

/** Of a lock file whatever its line ends are. */
const lockDigest = (bytes: Uint8Array): string =>
  createHash("sha256")
    .update(Buffer.from(bytes).toString("latin1").replaceAll("\r\n", "\n"), "latin1")
    .digest("hex")

/** The first of the base's lock files that the checkout has otherwise, or null. */
export const differingInSource = Effect.fnUntraced(function* (
  source: string,
  locks: WorkspaceRecord["layer"]["locks"]
) {
  const path = yield* Path.Path
  for (const lock of locks) {
    const bytes = (yield* bytesAt(path.join(source, lock.path))) ?? new Uint8Array()
    if (lockDigest(bytes) !== lock.digest) return lock.path
  }
  return null
})

/** Why the checkout's dependencies are not those of the base. */
export const otherLock = (name: string): string =>
  `${name} in the checkout differs from the base: use --setup to install, or --deps copy`

/** The lock files at base that speak for the directories: their digest, and the first that the checkout has otherwise. */
const compareLocks = Effect.fnUntraced(function* (
  source: string,
  workspace: string,
  entries: ReadonlyArray<TreeEntry>,
  directories: ReadonlyArray<string>
) {
  const path = yield* Path.Path
  const names = lockLines(entries, directories)
    .map((line) => textOf(line.slice(line.indexOf(" ") + 1)))
    .filter((name) => name !== undefined)
  const hash = createHash("sha256")
  const locks: Array<{ readonly path: string; readonly digest: string }> = []
  for (const name of names.toSorted()) {
    const atBase = (yield* bytesAt(path.join(workspace, name))) ?? new Uint8Array()
    hash.update(`${name}\0${atBase.length}\0`).update(atBase)
    locks.push({ path: name, digest: lockDigest(atBase) })
  }
  return {
    lock_digest: locks.length === 0 ? null : Digest.make(hash.digest("hex")),
    locks,
    differing: yield* differingInSource(source, locks)
  }
})

const tableNames = dependencyTable.map((row) => row.name)

/** The root of a directory that the user named: what holds it, when it is a dependency directory itself. */
export const namedRoot = (path: Path.Path, named: string): string =>
  tableNames.includes(path.basename(named)) ? path.dirname(named) : named

/** Dependency directories directly below a directory that the user named, or that directory itself. */
const namedDirectories = Effect.fnUntraced(function* (named: string) {
  const path = yield* Path.Path
  if (!(yield* isDirectory(named))) return yield* failed(`--deps ${named} is not a directory`)
  const origin = namedRoot(path, named)
  if (origin !== named) return { origin, directories: [path.basename(named)] }
  const directories = yield* Effect.filter(tableNames, (name) => isDirectory(path.join(named, name)))
  return { origin, directories }
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
  const { overlays } = yield* Sandbox
  const free = standsFree(entries)
  const included =
    task.include.length === 0
      ? []
      : (yield* ignoredMatching(store, task.include))
          .map(textOf)
          .filter((name) => name !== undefined)
          .filter(free)
  const layer: DependencyLayer = {
    from: "source",
    copied: included,
    lock_digest: null,
    reason: null,
    locks: [],
    origin: source,
    included,
    included_from: source,
    installed_at: source,
    pointers: "report",
    shown_at: overlays ? source : null,
    // Set-up changes what it finds: it gets a copy.
    mounted: overlays && task.setup.length === 0,
    seal: null
  }
  if (task.dependencies.mode === "none") return layer
  if (task.dependencies.mode === "path") {
    const { directories, origin } = yield* namedDirectories(path.resolve(source, task.dependencies.path))
    const { lock_digest, locks } = yield* compareLocks(source, workspace, entries, directories)
    const copied = [...directories, ...included]
    const named = { from: "named" as const, origin, installed_at: origin, mounted: false }
    return { ...layer, ...named, copied, lock_digest, locks }
  }
  if (hints !== null && dependencyDirectories(hints).length === 0) return layer
  const directories = dependencyDirectories((yield* ignored(store)).map(displayName)).filter(free)
  if (directories.length === 0) return layer
  const { differing, lock_digest, locks } = yield* compareLocks(source, workspace, entries, directories)
  if (task.dependencies.mode === "auto" && differing !== null)
    return { ...layer, lock_digest, locks, reason: otherLock(differing) }
  return { ...layer, copied: [...directories, ...included], lock_digest, locks }
})

/** A directory to fill, and the root that its content is to belong to: another one while it is made aside. */
export interface Filled {
  readonly at: string
  readonly to: string
}

const demandSeal = Effect.fnUntraced(function* ({ origin, seal }: DependencyLayer) {
  if (seal !== null && !(yield* isSealed(origin, seal)))
    return yield* failed(
      "something else changed what set-up had installed, so no check of it can be believed"
    )
})

/** What of the layer is shown in a place, and where it is. */
export const shownDependencies = Effect.fnUntraced(function* (
  layer: DependencyLayer,
  wanted: (name: string) => boolean
) {
  const path = yield* Path.Path
  const names = layer.mounted
    ? layer.copied.filter((name) => !layer.included.includes(name) && wanted(name))
    : []
  if (names.length > 0) yield* demandSeal(layer)
  return names.map((name) => ({ from: path.join(layer.origin, name), path: name }))
})

/**
 * Puts the layer into a place, as far as it is copied. `wanted` says which of its paths the place gets. Returns why what was copied could not be
 * believed, or null.
 */
export const provideDependencies = Effect.fnUntraced(function* (
  layer: DependencyLayer,
  { at, to }: Filled,
  wanted: (name: string) => boolean
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const included = new Set(layer.included)
  const names = layer.copied.filter((name) => (included.has(name) || !layer.mounted) && wanted(name))
  if (names.length === 0) return null
  yield* demandSeal(layer)
  const reasons = yield* Effect.forEach(
    names,
    (name) =>
      Effect.gen(function* () {
        const from = path.join(included.has(name) ? layer.included_from : layer.origin, name)
        const copy = path.join(at, name)
        if (!(yield* isDirectory(from))) {
          yield* fs.makeDirectory(path.dirname(copy), { recursive: true })
          yield* fs.copyFile(from, copy)
          return null
        }
        yield* copyTrees([from], path.dirname(copy))
        return yield* relocate(copy, {
          at,
          from: layer.installed_at,
          to: layer.shown_at ?? to,
          pointers: layer.pointers
        })
      }),
    { concurrency: 2 }
  ).pipe(
    Effect.catchTag("PlatformError", (cause) => Effect.fail(failed("dependencies cannot be copied", cause)))
  )
  return reasons.find((reason) => reason !== null) ?? null
})

/** A package that a tree no longer holds gets no dependencies: `present` says which directories there are. */
export const wantedWhere =
  (path: Path.Path, present: (directory: string) => boolean) =>
  (name: string): boolean =>
    path.dirname(name) === "." ||
    dependencyDirectories([`${name}/`]).length === 0 ||
    present(path.dirname(name))

/**
 * The layer after set-up ran: every dependency directory that the workspace has now, put aside before an agent can touch
 * it. It is whole when it appears: `made` is where it is until then.
 */
export const captureDependencies = Effect.fnUntraced(function* (
  before: DependencyLayer,
  workspace: Store,
  made: string,
  aside: string
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = workspace.work_tree
  const directories = dependencyDirectories((yield* ignored(workspace)).map(displayName))
  const copied = [...directories, ...before.included]
  yield* fs.makeDirectory(made, { recursive: true, mode: 0o700 })
  yield* Effect.forEach(
    copied,
    (name) =>
      Effect.gen(function* () {
        const copy = path.join(made, name)
        yield* copyTrees([path.join(root, name)], path.dirname(copy))
        if (yield* isDirectory(copy))
          yield* relocate(copy, {
            at: made,
            from: before.shown_at ?? root,
            to: before.shown_at ?? nowhere,
            pointers: "rewrite"
          })
      }),
    { concurrency: 2, discard: true }
  ).pipe(
    Effect.catchTag("PlatformError", (cause) =>
      Effect.fail(failed("the set-up's outputs cannot be kept", cause))
    )
  )
  const layer: DependencyLayer = {
    ...before,
    from: "setup",
    copied,
    reason: null,
    origin: aside,
    included_from: aside,
    installed_at: before.shown_at ?? nowhere,
    pointers: "rewrite",
    mounted: before.shown_at !== null,
    seal: yield* sealOf(made)
  }
  return layer
})
