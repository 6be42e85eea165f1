import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import type { TreeId } from "../../../src/domain/Ids.ts"
import type { Task } from "../../../src/domain/Task.ts"
import { type OpenWorkspace, Workspaces } from "../../../src/services/Workspace.ts"
import { gitEnvironment, type RepoSpec } from "../../support/Repo.ts"
import { remove, textOf, write } from "./support.ts"

/** Every kind of thing that a tree can hold, with dependencies beside it. */
export const richSpec: RepoSpec = {
  files: {
    ".gitignore": "node_modules/\n*.log\n",
    "package-lock.json": "{}\n",
    "a.txt": "a\n",
    "dir/b.txt": "b\n",
    "dir/deep/c.txt": "c\n",
    "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
    "bin.dat": { b64: Buffer.from([0, 1, 2, 255]).toString("base64") },
    "crlf.txt": "one\r\ntwo\r\n",
    link: { symlink: "a.txt" }
  },
  commits: [{ files: { "a.txt": "a, later\n" }, message: "second" }],
  ignored: { "node_modules/dep/index.js": "1\n" }
}

const bytesOf = (name: string): Buffer => Buffer.from(name, "latin1")
const below = (root: string, name: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), bytesOf(name)])

/** Everything below a directory but its `.git`, by bytes: kind, executable bit and content. */
export const contentsOf = (root: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const walk = (directory: string): void => {
    for (const entry of readdirSync(below(root, directory), { encoding: "buffer" })) {
      const name = entry.toString("latin1")
      if (name === ".git") continue
      const path = directory === "" ? name : `${directory}/${name}`
      const at = below(root, path)
      const stats = lstatSync(at)
      if (stats.isDirectory()) walk(path)
      else if (stats.isSymbolicLink()) found.push(`${path} -> ${readlinkSync(at)}`)
      else found.push(`${path} ${stats.mode & 0o100 ? "x" : "-"} ${readFileSync(at).toString("base64")}`)
    }
  }
  walk("")
  return found.toSorted()
}

/** What a first process makes of the rich repository: edits by tools, ignored paths among them, and by a command. */
export const work = Effect.fnUntraced(function* (workspace: OpenWorkspace) {
  const at = (name: string) => join(workspace.root, name)
  yield* workspace.apply([write("a.txt", "edited\n"), remove("dir/b.txt"), write("new/x.txt", "x\n")])
  yield* workspace.apply([write("kept.log", "ignored and edited\n")])
  writeFileSync(
    Buffer.concat([Buffer.from(`${workspace.root}/`), Buffer.from([0x66, 0xff, 0xfe])]),
    "bytes\n"
  )
  chmodSync(at("crlf.txt"), 0o755)
  symlinkSync("../a.txt", at("new/up"))
  mkdirSync(at("added"))
  writeFileSync(at("added/bin"), Buffer.from([0, 255, 10]))
  return yield* workspace.scan
})

/** What must be the same whichever process says it. */
export const statement = Effect.fnUntraced(function* (workspace: OpenWorkspace, tree: TreeId) {
  const { files, patch } = yield* workspace.diff(tree)
  return {
    files,
    patch: textOf(patch),
    unrecorded: yield* workspace.unrecorded,
    listed: yield* workspace.list("")
  }
})

/** What a check would be given. */
export const place = (workspace: OpenWorkspace, tree: TreeId) =>
  Effect.scoped(
    Effect.map(workspace.materialise(tree), ({ distrust, root }) => ({
      distrust,
      contents: contentsOf(root)
    }))
  )

/** Opens, uses and closes a workspace, as one process does. */
export const inOneProcess = <A, E, R>(
  options: {
    readonly task: Task
    readonly directory: string
    readonly resume?: { readonly prepared: OpenWorkspace["prepared"]; readonly tree: TreeId }
  },
  use: (workspace: OpenWorkspace) => Effect.Effect<A, E, R>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const workspaces = yield* Workspaces
      return yield* use(yield* workspaces.open(options))
    })
  )

/** Git as a user's tool runs it, in a workspace. */
export const plainGit = (cwd: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, {
    cwd,
    env: gitEnvironment(cwd),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  })

/** The names that a run's directory may hold when nobody works in it. */
export const closedList = ["deps", "git", "modules", "workspace"]
