import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CommitId } from "../../../src/domain/Ids.ts"
import { sourceState } from "../../../src/layers/git/Dirty.ts"
import { layer } from "../../../src/layers/git/Git.ts"
import { displayName } from "../../../src/layers/git/GitBinary.ts"
import { bareDirectory, locateGit, makeGitDirectory } from "../../../src/layers/git/GitDirectory.ts"
import { HostEnvironment } from "../../../src/layers/sandbox/Environment.ts"
import { Git } from "../../../src/services/Git.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { gitEnvironment, makeRepo, type RepoSpec } from "../../support/Repo.ts"
import { hostileRepo } from "../../support/repos/hostile.ts"

const live = layer.pipe(Layer.provide(NodeServices.layer))

const scratch = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "looplane-test-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)
const repository = (spec: RepoSpec) =>
  Effect.acquireRelease(
    Effect.sync(() => makeRepo(spec)),
    (repo) => Effect.sync(() => repo.dispose())
  )
const git = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", args, {
    cwd,
    env: gitEnvironment(cwd),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  })

/** What a source's work tree holds beside its HEAD, as a workspace asks for it. */
const dirty = (root: string) =>
  Effect.gen(function* () {
    const at = yield* scratch
    const location = yield* locateGit(root)
    const head = git(root, "rev-parse", "HEAD").trim()
    yield* makeGitDirectory(bareDirectory(at, head, null))
    writeFileSync(join(at, "objects", "info", "alternates"), `${join(location.common_dir, "objects")}\n`)
    const state = yield* sourceState({ git_dir: at, work_tree: root, index: join(at, "index") }, location)
    return state.dirty.map(displayName)
  }).pipe(Effect.provide(NodeServices.layer))

const spec: RepoSpec = { files: { "a.txt": "a\n", "sub/dir/b.txt": "b\n" } }

it.live("finds the root, the subdirectory and the commit, through a symlink too", () =>
  Effect.gen(function* () {
    const repo = yield* repository(spec)
    const service = yield* Git
    symlinkSync(join(repo.root, "sub"), join(repo.folder, "door"))
    for (const start of [join(repo.root, "sub/dir"), join(repo.folder, "door/dir")]) {
      assert.deepStrictEqual(yield* service.source(start), {
        root: repo.root,
        subdirectory: "sub/dir",
        head: CommitId.make(repo.head)
      })
    }
    assert.strictEqual((yield* service.source(repo.root)).subdirectory, "")
  }).pipe(Effect.provide(live))
)

it.live("says in one line why a directory is no source", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const repo = yield* repository(spec)
    const service = yield* Git
    mkdirSync(join(folder, "plain"))
    git(folder, "init", "-q", "unborn")
    git(folder, "init", "-q", "--bare", "bare")
    git(folder, "clone", "-q", "--bare", repo.root, "bare-full")
    writeFileSync(join(folder, "file"), "")
    const reasons = {
      [join(folder, "plain")]: "not_a_repository",
      [join(folder, "missing")]: "not_a_repository",
      [join(folder, "file")]: "not_a_repository",
      [join(folder, "unborn")]: "no_commits",
      [join(folder, "bare")]: "bare",
      [join(folder, "bare-full")]: "bare",
      [join(repo.root, ".git")]: "not_a_repository",
      [join(repo.root, ".git/objects")]: "not_a_repository"
    }
    for (const [start, reason] of Object.entries(reasons)) {
      const error = yield* Effect.flip(service.source(start))
      assert.strictEqual(error.reason, reason, start)
      assert.notInclude(error.message, "\n")
      assert.include(error.message, start)
    }
    const elsewhere = yield* repository(spec)
    elsewhere.git("config", "core.worktree", "/")
    assert.strictEqual((yield* Effect.flip(service.source(elsewhere.root))).reason, "failed")
  }).pipe(Effect.provide(live))
)

it.live.skipIf(process.getuid?.() !== 0)("reads a repository that belongs to somebody else", () =>
  Effect.gen(function* () {
    const repo = yield* repository(spec)
    execFileSync("chown", ["-R", "65534:65534", repo.root])
    const service = yield* Git
    assert.strictEqual((yield* service.source(repo.root)).head, CommitId.make(repo.head))
  }).pipe(Effect.provide(live))
)

it.live("says that git is missing", () =>
  Effect.gen(function* () {
    const repo = yield* repository(spec)
    const service = yield* Git
    const error = yield* Effect.flip(service.source(repo.root)).pipe(
      Effect.provideService(HostEnvironment, { PATH: "/nonexistent:relative" })
    )
    assert.strictEqual(error.reason, "missing_git")
  }).pipe(Effect.provide(live))
)

it.live("takes a detached HEAD, a rebase in progress, a linked worktree and a submodule as they are", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ ...spec, commits: [{ files: { "a.txt": "two\n" }, message: "two" }] })
    const service = yield* Git
    const first = repo.git("rev-parse", "HEAD^")
    repo.git("worktree", "add", "-q", "--detach", join(repo.folder, "linked"), first)
    assert.deepStrictEqual(yield* service.source(join(repo.folder, "linked/sub")), {
      root: join(repo.folder, "linked"),
      subdirectory: "sub",
      head: CommitId.make(first)
    })
    repo.git("checkout", "-q", "-b", "side", first)
    repo.commit({ "a.txt": "side\n" }, "side")
    const side = repo.git("rev-parse", "HEAD")
    const rebased = Result.try(() => repo.git("rebase", "main"))
    assert.isTrue(Result.isFailure(rebased), "the conflict is what is wanted")
    assert.strictEqual((yield* service.source(repo.root)).head, CommitId.make(repo.git("rev-parse", "HEAD")))
    assert.include(yield* dirty(repo.root), "a.txt")
    assert.strictEqual(yield* service.resolve(repo.root, "side"), CommitId.make(side))
    const parent = yield* repository({ files: { "p.txt": "p\n" } })
    parent.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", repo.root, "mod")
    assert.strictEqual((yield* service.source(join(parent.root, "mod/sub"))).root, join(parent.root, "mod"))
  }).pipe(Effect.provide(live))
)

it.live("resolves revisions of commits only, and reads files and paths of a commit", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { ...spec.files, link: { symlink: "a.txt" }, "big.txt": "0123456789" },
      dirty: { "a.txt": "dirty\n" }
    })
    const service = yield* Git
    const head = CommitId.make(repo.head)
    assert.strictEqual(yield* service.resolve(repo.root, "main~0"), head)
    for (const revision of ["nope", "--help", "", "0".repeat(40), "HEAD:a.txt"]) {
      assert.strictEqual(
        (yield* Effect.flip(service.resolve(repo.root, revision))).reason,
        "unknown_commit",
        revision
      )
    }
    assert.deepStrictEqual(yield* service.paths(repo.root, head), [
      "a.txt",
      "big.txt",
      "link",
      "sub/dir/b.txt"
    ])
    const read = (path: string) =>
      Effect.map(service.file(repo.root, head, path, 5), (bytes) =>
        bytes === null ? null : Buffer.from(bytes).toString()
      )
    assert.strictEqual(yield* read("a.txt"), "a\n")
    for (const path of ["link", "big.txt", "sub", "missing", "*.txt"]) assert.isNull(yield* read(path), path)
  }).pipe(Effect.provide(live))
)

it.live("lists what is dirty, sorted, and changes no byte of the repository", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { ...spec.files, "c.txt": "c\n", "d.txt": "d\n", ".gitignore": "*.log\n" },
      dirty: { "a.txt": "changed\n" },
      untracked: { "new/one.txt": "1\n", "new/two.txt": "2\n" },
      ignored: { "x.log": "x\n" }
    })
    repo.write({ "staged.txt": "s\n" })
    repo.git("add", "staged.txt")
    repo.git("rm", "-q", "--cached", "c.txt")
    rmSync(join(repo.root, "d.txt"))
    // Touched, and still the same: git would refresh its index for that.
    repo.write({ "sub/dir/b.txt": "b\n" })
    const before = snapshotTree(repo.root)
    const all = ["a.txt", "c.txt", "d.txt", "new/one.txt", "new/two.txt", "staged.txt"]
    assert.deepStrictEqual(yield* dirty(repo.root), all)
    assertUntouched(before, snapshotTree(repo.root))
  }).pipe(Effect.provide(live))
)

it.live("runs nothing that a hostile repository planted", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const repo = yield* Effect.acquireRelease(
      Effect.sync(() => hostileRepo(join(folder, "marker"))),
      (made) => Effect.sync(() => made.dispose())
    )
    repo.write({ "README.md": "other\n", "src/more.js": "1\n" })
    const before = snapshotTree(repo.root)
    const service = yield* Git
    const source = yield* service.source(repo.root)
    yield* service.resolve(repo.root, "HEAD")
    yield* service.paths(repo.root, source.head)
    yield* service.file(repo.root, source.head, "long.txt", 1000)
    assert.includeMembers([...(yield* dirty(repo.root))], ["README.md", "src/more.js"])
    assert.deepStrictEqual(repo.ran(), [])
    assertUntouched(before, snapshotTree(repo.root))
  }).pipe(Effect.provide(live))
)
