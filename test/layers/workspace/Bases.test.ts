/**
 * Repositories in every state that git knows, as the base of a run.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { CommitId } from "../../../src/domain/Ids.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, scratch, write } from "./support.ts"

const git = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", args, {
    cwd,
    env: gitEnvironment(cwd),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  }).trim()

it.live("starts from the commit and names what it leaves out", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a.txt": "a\n", "b.txt": "b\n" },
      dirty: { "a.txt": "dirty\n" },
      untracked: { "c.txt": "c\n" }
    })
    const before = snapshotTree(repo.root)
    const { directory, workspace } = yield* openFor(repo)
    assert.strictEqual(workspace.prepared.tree, repo.git("rev-parse", "HEAD^{tree}"))
    assert.deepStrictEqual(workspace.prepared.left_out, ["a.txt", "c.txt"])
    assert.strictEqual(readFileSync(join(workspace.root, "a.txt"), "utf8"), "a\n")
    assert.isFalse(existsSync(join(workspace.root, "c.txt")))
    assertUntouched(before, snapshotTree(repo.root))
    for (const name of ["git", "workspace", "staging"])
      assert.strictEqual(statSync(join(directory, name)).mode & 0o777, 0o700)
    assert.notInclude(readFileSync(join(directory, "git/config"), "utf8"), repo.root)
  }).pipe(Effect.provide(live))
)

it.live("starts from the working tree, and the patch is relative to it", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a.txt": "a\n", "gone.txt": "g\n", "mode.sh": "x\n", ".gitignore": "*.log\n" },
      dirty: { "a.txt": "dirty\n", ".gitignore": "*.log\n*.tmp\n", "mode.sh": { text: "x\n", mode: 0o755 } },
      untracked: { "new/c.txt": "c\n" },
      ignored: { "x.log": "x\n", "y.tmp": "y\n" }
    })
    execFileSync("rm", [join(repo.root, "gone.txt")])
    const before = snapshotTree(repo.root)
    const { workspace } = yield* openFor(repo, {
      base: { kind: "working_tree", commit: CommitId.make(repo.head) }
    })
    assertUntouched(before, snapshotTree(repo.root))
    assert.strictEqual(workspace.prepared.base_sha, repo.head)
    assert.deepStrictEqual(yield* workspace.list(""), [".gitignore", "a.txt", "mode.sh", "new/c.txt"])
    assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
    const { files } = yield* workspace.diff(yield* workspace.apply([write("a.txt", "agent\n")]))
    assert.deepStrictEqual(files, [{ path: "a.txt", change: "modified" }])
    writeFileSync(join(workspace.root, "z.tmp"), "ignored by the base, which is the working tree")
    assert.strictEqual((yield* workspace.diff(yield* workspace.scan)).files.length, 1)
  }).pipe(Effect.provide(live))
)

it.live("takes linked worktrees, borrowed objects, cut histories and another hash", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a.txt": "a\n" },
      commits: [{ files: { "a.txt": "b\n" }, message: "b" }]
    })
    const folder = yield* scratch
    const first = repo.git("rev-parse", "HEAD^")
    repo.git("worktree", "add", "-q", "--detach", join(folder, "linked"), first)
    git(folder, "clone", "-q", "--shared", repo.root, "borrowing")
    git(folder, "clone", "-q", "--depth=1", `file://${repo.root}`, "cut")
    git(folder, "-c", "init.defaultBranch=main", "init", "-q", "--object-format=sha256", "long")
    writeFileSync(join(folder, "long/a.txt"), "long\n")
    git(join(folder, "long"), "add", "-A")
    git(join(folder, "long"), "commit", "-qm", "x")
    for (const [name, text] of [
      ["linked", "a\n"],
      ["borrowing", "b\n"],
      ["cut", "b\n"],
      ["long", "long\n"]
    ] as const) {
      const root = join(folder, name)
      const before = snapshotTree(root)
      const { directory, workspace } = yield* openFor({ root, head: git(root, "rev-parse", "HEAD") })
      assert.strictEqual(readFileSync(join(workspace.root, "a.txt"), "utf8"), text, name)
      const tree = yield* workspace.apply([write("b.txt", "b\n")])
      const place = yield* workspace.materialise(tree)
      for (const at of [workspace.root, place.root]) {
        assert.include(git(at, "log", "--oneline"), "", name)
        assert.isFalse(existsSync(join(at, ".git/objects/info/alternates")))
      }
      assert.isFalse(existsSync(join(directory, "git/objects/info/alternates")))
      assertUntouched(before, snapshotTree(root))
    }
  }).pipe(Effect.provide(live))
)

it.live("shares no file with the source, not by any kind of link", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n" } })
    repo.git("gc", "-q")
    const { directory, workspace } = yield* openFor(repo)
    for (const root of [join(directory, "git"), workspace.root]) {
      for (const [path, entry] of snapshotTree(root)) {
        assert.strictEqual(entry.links, 1, path)
        assert.notStrictEqual(entry.kind, "symlink", path)
      }
    }
  }).pipe(Effect.provide(live))
)

it.live("fills submodules from the source's own copy and says which it could not", () =>
  Effect.gen(function* () {
    const inner = yield* repository({ files: { "in.txt": "in\n" } })
    const repo = yield* repository({ files: { "a.txt": "a\n" } })
    for (const name of ["mod", "empty"]) {
      repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.root, name)
    }
    repo.git("commit", "-qm", "submodules")
    execFileSync("rm", ["-r", join(repo.root, ".git/modules/empty")])
    const before = snapshotTree(repo.root)
    const { workspace } = yield* openFor({ root: repo.root, head: repo.git("rev-parse", "HEAD") })
    assert.strictEqual(readFileSync(join(workspace.root, "mod/in.txt"), "utf8"), "in\n")
    assert.deepStrictEqual(readdirSync(join(workspace.root, "empty")), [])
    assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
    const place = yield* workspace.materialise(workspace.prepared.tree)
    assert.strictEqual(readFileSync(join(place.root, "mod/in.txt"), "utf8"), "in\n")
    assert.deepStrictEqual(yield* place.wrote, [])
    writeFileSync(join(workspace.root, "mod/in.txt"), "changed\n")
    assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
    assert.deepStrictEqual(yield* workspace.unrecorded, [
      "submodule empty: left empty, the source has no copy of it",
      "submodule mod: changes inside of it are not recorded"
    ])
    assertUntouched(before, snapshotTree(repo.root))
  }).pipe(Effect.provide(live))
)

it.live("refuses edits inside of a submodule, whose files no patch of this repository can hold", () =>
  Effect.gen(function* () {
    const inner = yield* repository({ files: { "in.txt": "in\n" } })
    const repo = yield* repository({ files: { "a.txt": "a\n" } })
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.root, "mod")
    repo.git("commit", "-qm", "submodule")
    const { workspace } = yield* openFor({ root: repo.root, head: repo.git("rev-parse", "HEAD") })
    for (const path of ["mod/in.txt", "mod/new.txt"]) {
      const error = yield* Effect.flip(workspace.apply([write("a.txt", "b\n"), write(path, "changed\n")]))
      assert.strictEqual(error.reason, "refused_path")
      assert.include(error.message, "submodule")
    }
    assert.strictEqual(readFileSync(join(workspace.root, "mod/in.txt"), "utf8"), "in\n")
    assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
    // Where a command put files of its own in a submodule's place, a fresh place holds those and no others.
    execFileSync("rm", ["-r", join(workspace.root, "mod")])
    yield* workspace.scan
    mkdirSync(join(workspace.root, "mod"))
    writeFileSync(join(workspace.root, "mod/in.txt"), "changed\n")
    const place = yield* workspace.materialise(yield* workspace.scan)
    assert.deepStrictEqual(readdirSync(join(place.root, "mod")), ["in.txt"])
    assert.strictEqual(readFileSync(join(place.root, "mod/in.txt"), "utf8"), "changed\n")
  }).pipe(Effect.provide(live))
)

it.live("takes a sparse checkout as what it is: what it leaves out is not deleted", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a/x.txt": "a\n", "b/y.txt": "b\n", "top.txt": "t\n" } })
    repo.git("sparse-checkout", "set", "a")
    for (const sparse of ["--no-sparse-index", "--sparse-index"]) {
      repo.git("sparse-checkout", "reapply", sparse)
      repo.write({ "a/x.txt": "changed\n" })
      const before = snapshotTree(repo.root)
      const commit = CommitId.make(repo.head)
      const { workspace } = yield* openFor(repo, { base: { kind: "working_tree", commit } })
      assert.deepStrictEqual(yield* workspace.list(""), ["a/x.txt", "b/y.txt", "top.txt"])
      assert.strictEqual(readFileSync(join(workspace.root, "a/x.txt"), "utf8"), "changed\n")
      const clean = yield* openFor(repo)
      assert.deepStrictEqual(clean.workspace.prepared.left_out, ["a/x.txt"])
      assertUntouched(before, snapshotTree(repo.root))
    }
  }).pipe(Effect.provide(live))
)

it.live("refuses a commit that is not there, and says so", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n" } })
    const missing = yield* Effect.flip(openFor({ root: repo.root, head: "1".repeat(40) }))
    assert.strictEqual(missing.reason, "failed")
    assert.include(missing.message, "1".repeat(40))
  }).pipe(Effect.provide(live))
)
