import { execFileSync, spawn } from "node:child_process"
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"
import { CommitId, TreeId } from "../../../src/domain/Ids.ts"
import type { PatchSource } from "../../../src/services/UserTree.ts"
import { gitEnvironment, writeFiles, type Files, type Repo } from "../../support/Repo.ts"
import { diffTrees, snapshotTree, type Snapshot } from "../../support/Leaks.ts"
import { about } from "./trees.ts"

export interface Change {
  readonly files?: Files
  readonly removed?: ReadonlyArray<string>
}

/** The patch that turns the repository's HEAD into HEAD plus the change, made beside it. */
export const sourceOf = (repo: Repo, change: Change): PatchSource => {
  const copy = join(repo.folder, "patched")
  cpSync(repo.root, copy, { recursive: true, verbatimSymlinks: true })
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", args, { cwd: copy, env: gitEnvironment(repo.folder) })
  const base = repo.head
  git("reset", "--quiet", "--hard")
  for (const path of change.removed ?? []) rmSync(join(copy, path), { recursive: true })
  writeFiles(copy, change.files ?? {})
  git("add", "--all", "--force")
  const patch = git("diff", "--cached", "--binary", "--full-index", "--no-renames", base)
  const tree = git("write-tree").toString().trim()
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

/** What the user sees of the tree: everything but the git directory, and what git says of it. */
export const look = (root: string): Snapshot =>
  new Map([...snapshotTree(root)].filter(([path]) => path !== ".git" && !path.startsWith(".git/")))
export const sameLook = (before: Snapshot, after: Snapshot): boolean => diffTrees(before, after).length === 0

/** Records that are not whole, and what else an apply could leave. */
export const remains = (root: string): ReadonlyArray<string> => {
  const records = join(root, ".git", "looplane", "applied")
  return existsSync(records) ? readdirSync(records) : []
}

/** The driver as one file, which starts several times faster than its sources do. */
export const bundleDriver = async (folder: string): Promise<string> => {
  const file = join(folder, "driver.mjs")
  const build = await rolldown({
    input: fileURLToPath(new URL("./driver.ts", import.meta.url)),
    platform: "node"
  })
  await build.write({ file, format: "esm", codeSplitting: false })
  await build.close()
  return file
}

/** Runs the driver to its end; the signal that ended it, or its exit code. */
export const drive = (driver: string, args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [driver, ...args], { stdio: ["ignore", "pipe", "inherit"] })
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
