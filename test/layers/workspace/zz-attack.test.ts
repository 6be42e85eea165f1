import { assert, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { CommitId } from "../../../src/domain/Ids.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, textOf, write, remove, scratch } from "./support.ts"

const git = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", args, { cwd, env: gitEnvironment(cwd), encoding: "utf8" , stdio: ["ignore", "pipe", "pipe"]})

it.live("submodule edit", () => Effect.gen(function* () {
  const inner = yield* repository({ files: { "lib.js": "1\n", "other.js": "2\n" } })
  const repo = yield* repository({ files: { "a.txt": "a\n" } })
  git(repo.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.root, "sub")
  git(repo.root, "commit", "-qm", "sub")
  const head = git(repo.root, "rev-parse", "HEAD").trim()
  const { workspace } = yield* openFor({ root: repo.root, head })
  const r = yield* Effect.result(workspace.apply([write("sub/lib.js", "evil\n")]))
  console.log("sub edit", r)
  if (Result.isSuccess(r)) {
    const d = yield* workspace.diff(r.success)
    console.log(d.files, textOf(d.patch))
    const place = yield* workspace.materialise(r.success)
    console.log(fs.readdirSync(join(place.root, "sub")), fs.readFileSync(join(place.root, "sub/lib.js"), "utf8"))
  }
}).pipe(Effect.provide(live)))

it.live("tracked file -> nested repo", () => Effect.gen(function* () {
  const repo = yield* repository({ files: { "a": "a\n", "b": "b\n", "d/x": "x\n" } })
  const { workspace } = yield* openFor(repo)
  for (const n of ["a", "d"]) {
    fs.rmSync(join(workspace.root, n), { recursive: true })
    fs.mkdirSync(join(workspace.root, n))
    git(join(workspace.root, n), "init", "-q")
    fs.writeFileSync(join(workspace.root, n, "trick"), "x")
    git(join(workspace.root, n), "add", "-A")
    git(join(workspace.root, n), "commit", "-qm", "x")
  }
  const d = yield* workspace.diff(yield* workspace.scan)
  console.log("nested", d.files, textOf(d.patch), yield* workspace.unrecorded)
}).pipe(Effect.provide(live)))

it.live("setup writes tracked and untracked", () => Effect.gen(function* () {
  const repo = yield* repository({ files: { "a": "a\n", "package-lock.json": "{}\n", ".gitignore": "node_modules\ndist\n" } })
  const { workspace } = yield* openFor(repo, { setup: [["sh", "-c", "echo b > a; echo gen > gen.txt; echo '{ }' > package-lock.json; mkdir -p node_modules/x dist; echo 1 > node_modules/x/i.js; echo 1 > dist/o.js; mkfifo pipe"]] })
  const tree = yield* workspace.scan
  const d = yield* workspace.diff(tree)
  console.log("setup", d.files, yield* workspace.unrecorded)
  const place = yield* workspace.materialise(tree)
  console.log(place.distrust, fs.readdirSync(place.root))
}).pipe(Effect.provide(live)))

it.live("deps path + include", () => Effect.gen(function* () {
  const repo = yield* repository({ files: { "a": "a\n", ".gitignore": ".env\n" }, ignored: { ".env": "K=1\n" } })
  const other = yield* scratch
  fs.mkdirSync(join(other, "node_modules/x"), { recursive: true })
  fs.writeFileSync(join(other, "node_modules/x/i.js"), "1\n")
  const r = yield* Effect.result(openFor(repo, { dependencies: { mode: "path", path: other }, include: [".env"] }))
  console.log("deps path include", Result.isFailure(r) ? r.failure : "ok")
  const { workspace } = yield* openFor(repo, { dependencies: { mode: "path", path: other } })
  console.log((yield* workspace.diff(yield* workspace.scan)).files, yield* workspace.unrecorded)
}).pipe(Effect.provide(live)))

it.live("sparse working tree", () => Effect.gen(function* () {
  const repo = yield* repository({ files: { "a/x": "a\n", "b/y": "b\n", "top": "t\n" } })
  git(repo.root, "sparse-checkout", "set", "a")
  const { workspace } = yield* openFor(repo, { base: { kind: "working_tree", commit: CommitId.make(repo.head) } })
  console.log("sparse wt", yield* workspace.list(""), workspace.prepared.left_out)
  const { workspace: w2 } = yield* openFor(repo)
  console.log("sparse commit", yield* w2.list(""), w2.prepared.left_out)
  git(repo.root, "sparse-checkout", "set", "--sparse-index", "a")
  const { workspace: w3 } = yield* openFor(repo)
  console.log("sparse index commit", yield* w3.list(""), w3.prepared.left_out)
}).pipe(Effect.provide(live)))

it.live("sha256 fifo", () => Effect.gen(function* () {
  const folder = yield* scratch
  git(folder, "init", "-q", "--object-format=sha256", "r")
  const root = join(folder, "r")
  fs.writeFileSync(join(root, "a"), "a\n"); fs.writeFileSync(join(root, "b"), "b\n")
  git(root, "add", "-A"); git(root, "commit", "-qm", "x")
  const head = git(root, "rev-parse", "HEAD").trim()
  const { workspace } = yield* openFor({ root, head })
  fs.unlinkSync(join(workspace.root, "a")); execFileSync("mkfifo", [join(workspace.root, "a")])
  const r = yield* Effect.result(workspace.scan)
  console.log("sha256", r)
  const t = yield* Effect.result(workspace.apply([write("b", "c\n")]))
  console.log(t)
}).pipe(Effect.provide(live)))

it.live("long component", () => Effect.gen(function* () {
  const repo = yield* repository({ files: { "a": "a\n" } })
  const blob = git(repo.root, "rev-parse", "HEAD:a").trim()
  const tree = execFileSync("git", ["mktree"], { cwd: repo.root, env: gitEnvironment(repo.root), input: `100644 blob ${blob}\t${"n".repeat(300)}\n100644 blob ${blob}\ta\n`, encoding: "utf8" }).trim()
  const commit = git(repo.root, "commit-tree", "-m", "x", tree).trim()
  const r = yield* Effect.result(openFor({ root: repo.root, head: commit }))
  console.log("long", Result.isFailure(r) ? r.failure.message : "ok")
}).pipe(Effect.provide(live)))

it.live("symlinked include parent", () => Effect.gen(function* () {
  const outside = yield* scratch
  const repo = yield* repository({ files: { "a": "a\n", ".gitignore": "*.env\nnode_modules\n", dir: { symlink: outside } } })
  fs.unlinkSync(join(repo.root, "dir")); fs.mkdirSync(join(repo.root, "dir")); fs.writeFileSync(join(repo.root, "dir/x.env"), "X")
  fs.mkdirSync(join(repo.root, "dir/node_modules/p"), { recursive: true }); fs.writeFileSync(join(repo.root, "dir/node_modules/p/i"), "X")
  const r = yield* Effect.result(openFor(repo, { include: ["dir/*.env"] }))
  console.log("include parent", Result.isFailure(r) ? r.failure.message : "ok", fs.readdirSync(outside))
}).pipe(Effect.provide(live)))

it.live("unreadable, special bits", () => Effect.gen(function* () {
  const repo = yield* repository({ files: { "a": "a\n", "b": "b\n" } })
  const { workspace } = yield* openFor(repo)
  fs.symlinkSync("x".repeat(4000), join(workspace.root, "biglink"))
  fs.symlinkSync("/dev/zero", join(workspace.root, "zero"))
  fs.writeFileSync(join(workspace.root, "new\nline\t\"q\".txt"), "x\n")
  fs.writeFileSync(join(workspace.root, " lead"), "x\n")
  fs.writeFileSync(join(workspace.root, "trail "), "x\n")
  fs.writeFileSync(join(workspace.root, "back\\slash"), "x\n")
  const tree = yield* workspace.scan
  const d = yield* workspace.diff(tree)
  console.log(d.files)
  const place = yield* workspace.materialise(tree)
  console.log(fs.readdirSync(place.root))
  execFileSync("git", ["apply", "-"], { cwd: repo.root, input: d.patch, env: gitEnvironment(repo.folder) })
  console.log(repo.git("status", "--porcelain"))
}).pipe(Effect.provide(live)))
