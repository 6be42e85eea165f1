/**
 * Ways to make a check pass with something that is not in the patch, and bytes that git likes to change.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, textOf, write } from "./support.ts"

const git = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", args, { cwd, env: gitEnvironment(cwd), encoding: "utf8" })

it.live(
  "records a file that the agent hides with an edited .gitignore, and not one that the base ignores",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({
        files: { "a.txt": "a\n", ".gitignore": "*.log\n/build/\n", "sub/.gitignore": "local\n" }
      })
      const { workspace } = yield* openFor(repo)
      appendFileSync(join(workspace.root, ".gitignore"), "hidden.txt\n")
      writeFileSync(join(workspace.root, "sub/.gitignore"), "")
      writeFileSync(join(workspace.root, "hidden.txt"), "hidden\n")
      writeFileSync(join(workspace.root, "sub/local"), "ignored at base\n")
      writeFileSync(join(workspace.root, "x.log"), "ignored at base\n")
      mkdirSync(join(workspace.root, "build"))
      writeFileSync(join(workspace.root, "build/out"), "ignored at base\n")
      const { files } = yield* workspace.diff(yield* workspace.scan)
      assert.deepStrictEqual(files, [
        { path: ".gitignore", change: "modified" },
        { path: "hidden.txt", change: "added" },
        { path: "sub/.gitignore", change: "modified" }
      ])
      assert.deepStrictEqual(yield* workspace.unrecorded, [
        "ignored: build/",
        "ignored: sub/local",
        "ignored: x.log"
      ])
      const place = yield* workspace.materialise(yield* workspace.tree)
      assert.isTrue(existsSync(join(place.root, "hidden.txt")))
      for (const name of ["x.log", "build", "sub/local"])
        assert.isFalse(existsSync(join(place.root, name)), name)
    }).pipe(Effect.provide(live))
)

it.live(
  "does not read the workspace's own .git: excludes, commits, attributes and filters there change nothing",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({ files: { "a.txt": "a\n" } })
      const { workspace } = yield* openFor(repo)
      assert.strictEqual(git(workspace.root, "status", "--porcelain"), "")
      assert.strictEqual(git(workspace.root, "rev-parse", "HEAD").trim(), repo.head)
      mkdirSync(join(workspace.root, ".git/info"), { recursive: true })
      writeFileSync(join(workspace.root, ".git/info/exclude"), "secret.txt\n")
      writeFileSync(join(workspace.root, ".git/info/attributes"), "* filter=x\n")
      git(workspace.root, "config", "filter.x.clean", "sed s/one/two/")
      writeFileSync(join(workspace.root, "secret.txt"), "one\n")
      writeFileSync(join(workspace.root, "a.txt"), "one\n")
      git(workspace.root, "add", "-A", "-f")
      git(workspace.root, "commit", "-qm", "hide it")
      const { files, patch } = yield* workspace.diff(yield* workspace.scan)
      assert.deepStrictEqual(
        files.map((file) => file.path),
        ["a.txt", "secret.txt"]
      )
      assert.include(textOf(patch), "+one")
      assert.notInclude(textOf(patch), "two")
    }).pipe(Effect.provide(live))
)

it.live("reports nested repositories and special files, and puts none of them in the tree", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n", "lib/index.js": "1\n" } })
    const { workspace } = yield* openFor(repo)
    mkdirSync(join(workspace.root, "nested"))
    git(workspace.root, "-c", "init.defaultBranch=main", "init", "-q", "nested")
    writeFileSync(join(workspace.root, "nested/trick.js"), "1\n")
    git(join(workspace.root, "nested"), "add", "-A")
    git(join(workspace.root, "nested"), "commit", "-qm", "x")
    execFileSync("mkfifo", [join(workspace.root, "pipe")])
    unlinkSync(join(workspace.root, "a.txt"))
    execFileSync("mkfifo", [join(workspace.root, "a.txt")])
    const tree = yield* workspace.scan
    assert.deepStrictEqual((yield* workspace.diff(tree)).files, [{ path: "a.txt", change: "deleted" }])
    assert.deepStrictEqual(yield* workspace.unrecorded, [
      "nested repository: nested/",
      "special file: a.txt (FIFO)",
      "special file: pipe (FIFO)"
    ])
    const place = yield* workspace.materialise(tree)
    assert.isFalse(existsSync(join(place.root, "nested")))
  }).pipe(Effect.provide(live))
)

it.live("keeps raw bytes, modes and symlinks, and its patch applies to the source", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: {
        ".gitattributes": "*.txt text eol=lf\n*.crlf text eol=crlf\n",
        "crlf.txt": "one\r\ntwo\r\n",
        "id.txt": "$Id$\n",
        "run.sh": "#!/bin/sh\n",
        link: { symlink: "id.txt" },
        "bin.dat": { b64: Buffer.from([0, 1, 2]).toString("base64") }
      }
    })
    const { workspace } = yield* openFor(repo)
    const at = (name: string) => join(workspace.root, name)
    writeFileSync(at("crlf.txt"), "one\r\nTWO\r\nthree")
    chmodSync(at("run.sh"), 0o755)
    unlinkSync(at("link"))
    symlinkSync("crlf.txt", at("link"))
    writeFileSync(at("bin.dat"), Buffer.from([0, 255, 254, 3]))
    writeFileSync(at("new.txt"), "mixed\r\nends\n")
    const tree = yield* workspace.scan
    const { files, patch } = yield* workspace.diff(tree)
    assert.deepStrictEqual(
      files.map((file) => file.path),
      ["bin.dat", "crlf.txt", "link", "new.txt", "run.sh"]
    )
    const place = yield* workspace.materialise(tree)
    assert.strictEqual(readFileSync(join(place.root, "crlf.txt"), "utf8"), "one\r\nTWO\r\nthree")
    assert.strictEqual(readFileSync(join(place.root, "new.txt"), "utf8"), "mixed\r\nends\n")
    // The patch speaks of the bytes that were committed: it is applied where nothing converts them.
    mkdirSync(join(repo.root, ".git/info"))
    writeFileSync(join(repo.root, ".git/info/attributes"), "* -text -eol\n")
    writeFileSync(join(repo.root, "crlf.txt"), "one\ntwo\n")
    execFileSync("git", ["apply", "--whitespace=nowarn", "-"], {
      cwd: repo.root,
      input: patch,
      env: gitEnvironment(repo.folder)
    })
    assert.strictEqual(repo.read("crlf.txt"), "one\r\nTWO\r\nthree")
    assert.strictEqual(repo.read("link"), "one\r\nTWO\r\nthree")
    assert.deepStrictEqual([...readFileSync(join(repo.root, "bin.dat"))], [0, 255, 254, 3])
  }).pipe(Effect.provide(live))
)

it.live("does not lose or stumble over a name that is not UTF-8", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n" } })
    const { workspace } = yield* openFor(repo)
    writeFileSync(
      Buffer.concat([Buffer.from(`${workspace.root}/`), Buffer.from([0x66, 0xff, 0x6f])]),
      "odd\n"
    )
    const { files, patch } = yield* workspace.diff(yield* workspace.scan)
    assert.deepStrictEqual(files, [{ path: '"f\\377o"', change: "added" }])
    assert.deepStrictEqual(yield* workspace.list(""), ['"f\\377o"', "a.txt"].toSorted())
    execFileSync("git", ["apply", "-"], { cwd: repo.root, input: patch, env: gitEnvironment(repo.folder) })
    assert.include(repo.git("status", "--porcelain"), "f\\377o")
  }).pipe(Effect.provide(live))
)

it.live("sees a file of a tool's that became a directory, a repository even, as gone", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n", "d/b.txt": "b\n" } })
    const { workspace } = yield* openFor(repo)
    yield* workspace.apply([write("new", "n\n"), write("nested", "n\n"), write("d/b.txt", "edited\n")])
    for (const name of ["new", "nested", "d/b.txt"]) {
      unlinkSync(join(workspace.root, name))
      mkdirSync(join(workspace.root, name))
    }
    writeFileSync(join(workspace.root, "new/in.txt"), "in\n")
    writeFileSync(join(workspace.root, "nested/in.txt"), "in\n")
    git(workspace.root, "-c", "init.defaultBranch=main", "init", "-q", "nested")
    git(join(workspace.root, "nested"), "add", "-A")
    git(join(workspace.root, "nested"), "commit", "-qm", "x")
    assert.include(yield* workspace.list(""), "new/in.txt")
    const tree = yield* workspace.scan
    assert.deepStrictEqual((yield* workspace.diff(tree)).files, [
      { path: "d/b.txt", change: "deleted" },
      { path: "new/in.txt", change: "added" }
    ])
    assert.include(yield* workspace.unrecorded, "nested repository: nested/")
    yield* workspace.materialise(tree)
  }).pipe(Effect.provide(live))
)

it.live("sees what lay behind a directory that became a symlink as gone, edited before or not", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a/b.txt": "b\n", "a/c.txt": "c\n", "other/b.txt": "different\n" }
    })
    for (const target of ["other", "nowhere", "/etc"]) {
      const { workspace } = yield* openFor(repo)
      yield* workspace.apply([write("a/c.txt", "edited\n"), write("a/n.txt", "new\n")])
      execFileSync("rm", ["-r", join(workspace.root, "a")])
      symlinkSync(target, join(workspace.root, "a"))
      const tree = yield* workspace.scan
      assert.deepStrictEqual((yield* workspace.diff(tree)).files, [
        { path: "a", change: "added" },
        { path: "a/b.txt", change: "deleted" },
        { path: "a/c.txt", change: "deleted" }
      ])
      yield* workspace.materialise(tree)
    }
  }).pipe(Effect.provide(live))
)

it.live("sees a directory that became a symlink out of the workspace as that symlink", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a/b.txt": "b\n", "c/b.txt": "b\n" } })
    const { workspace } = yield* openFor(repo)
    execFileSync("rm", ["-r", join(workspace.root, "a")])
    symlinkSync("c", join(workspace.root, "a"))
    const { files } = yield* workspace.diff(yield* workspace.scan)
    assert.deepStrictEqual(files, [
      { path: "a", change: "added" },
      { path: "a/b.txt", change: "deleted" }
    ])
  }).pipe(Effect.provide(live))
)
