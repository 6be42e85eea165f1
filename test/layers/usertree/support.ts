import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { planApply, decide, type MergedText, type Plan } from "../../../src/domain/Apply.ts"
import { CommitId, Digest, RunId, TreeId } from "../../../src/domain/Ids.ts"
import { ApplySteps } from "../../../src/layers/usertree/Fault.ts"
import * as UserTreeLayer from "../../../src/layers/usertree/UserTree.ts"
import * as Watcher from "../../../src/layers/usertree/Watcher.ts"
import { type OpenUserTree, type PatchSource, UserTree } from "../../../src/services/UserTree.ts"
import { gitEnvironment, writeFiles, type Files, type Repo } from "../../support/Repo.ts"
import { diffTrees, snapshotTree, type Snapshot } from "../../support/Leaks.ts"
import { execFileSync } from "node:child_process"

export const about = {
  run_id: RunId.make("run-1"),
  patch_digest: Digest.make("a".repeat(64)),
  unverified: false,
  conflicts: false
}

export interface Change {
  readonly files?: Files
  readonly removed?: ReadonlyArray<string>
}

/** The patch that turns the repository's HEAD into HEAD plus the change, made beside it. */
export const sourceOf = (repo: Repo, change: Change): PatchSource => {
  const copy = join(repo.folder, "patched")
  rmSync(copy, { recursive: true, force: true })
  execFileSync("git", ["clone", "--quiet", "--no-hardlinks", repo.root, copy], { stdio: "pipe" })
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", args, { cwd: copy, env: gitEnvironment(repo.folder), maxBuffer: 1 << 28 })
  const base = git("rev-parse", "HEAD").toString().trim()
  for (const path of change.removed ?? []) rmSync(join(copy, path), { recursive: true })
  writeFiles(copy, change.files ?? {})
  git("add", "--all", "--force")
  git("commit", "--quiet", "--allow-empty", "--message", "patched")
  const patch = git("diff", "--binary", "--full-index", "--no-renames", base, "HEAD")
  const tree = git("rev-parse", "HEAD^{tree}").toString().trim()
  rmSync(copy, { recursive: true, force: true })
  return {
    run_id: about.run_id,
    patch,
    base_commit: CommitId.make(base),
    base: CommitId.make(base),
    tree: TreeId.make(tree),
    run_directory: join(repo.folder, "run")
  }
}

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layerSecureRandom)

export interface TreeOptions {
  readonly steps?: (step: string) => Effect.Effect<void>
  readonly watcher?: readonly [string, ...ReadonlyArray<string>]
}

/** Opens the tree at a root for one program. */
export const withTree = <A, E>(
  root: string,
  use: (tree: OpenUserTree) => Effect.Effect<A, E>,
  options: TreeOptions = {}
) =>
  Effect.gen(function* () {
    const userTree = yield* UserTree
    return yield* use(yield* userTree.open(root, { write: true }))
  }).pipe(
    Effect.scoped,
    Effect.provide(
      UserTreeLayer.layer.pipe(
        Layer.provide(
          options.watcher === undefined ? Watcher.layerNone : Watcher.layerProcess(options.watcher)
        ),
        Layer.provide(Layer.succeed(ApplySteps, options.steps ?? (() => Effect.void))),
        Layer.provide(platform)
      )
    )
  )

/** The plan of a patch against the tree as it stands. */
export const planOf = Effect.fnUntraced(function* (tree: OpenUserTree, source: PatchSource, mark = false) {
  const surveyed = yield* tree.survey(source)
  const merged = new Map<string, MergedText | null>()
  for (const each of surveyed) {
    const decision = decide(each)
    if (decision._tag === "MergeText") merged.set(each.path, yield* tree.merge(decision.texts))
  }
  const plan: Plan = planApply(surveyed, (path) => merged.get(path) ?? null, mark)
  return plan
})

/** Applies a patch without conflicts. */
export const applySource = (root: string, source: PatchSource, options: TreeOptions = {}) =>
  withTree(
    root,
    (tree) =>
      Effect.gen(function* () {
        const plan = yield* planOf(tree, source)
        if (plan.conflicts.length > 0) return { plan, record: null }
        return { plan, record: yield* tree.write(plan.steps, about) }
      }),
    options
  )

/** What the user sees of the tree: everything but the git directory, and what git says of it. */
export const look = (root: string): Snapshot =>
  new Map([...snapshotTree(root)].filter(([path]) => path !== ".git" && !path.startsWith(".git/")))
export const sameLook = (before: Snapshot, after: Snapshot): boolean => diffTrees(before, after).length === 0

/** Records that are not whole, and what else an apply could leave. */
export const remains = (root: string): ReadonlyArray<string> => {
  const records = join(root, ".git", "looplane", "applied")
  return existsSync(records) ? readdirSync(records) : []
}

const driver = fileURLToPath(new URL("./driver.ts", import.meta.url))
export const driverArgv = (...args: ReadonlyArray<string>): readonly [string, ...ReadonlyArray<string>] => [
  process.execPath,
  "--no-warnings",
  driver,
  ...args
]

/** Runs the driver to its end; the signal that ended it, or its exit code. */
export const drive = (args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const [program, ...rest] = driverArgv(...args)
    const child = spawn(program, rest, { stdio: ["ignore", "pipe", "inherit"] })
    child.once("error", reject)
    child.once("exit", (code, signal) => resolve(signal ?? String(code)))
  })

/** A socket that tells when every process that was connected to it is gone. */
export const attendance = async (folder: string) => {
  const path = join(folder, "attendance")
  const gone = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    socket.on("error", () => undefined)
    socket.resume()
    socket.once("close", () => gone.resolve())
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    path,
    gone: gone.promise,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve()))
  }
}

export const copyRepo = (repo: Repo, name: string): string => {
  const root = join(repo.folder, name)
  cpSync(repo.root, root, { recursive: true, verbatimSymlinks: true })
  return root
}
