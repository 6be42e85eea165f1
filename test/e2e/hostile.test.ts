import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { addFix, addRepo } from "../support/repos/add.ts"
import { hostileRepo } from "../support/repos/hostile.ts"
import { call, calls, execOn, says } from "./support.ts"

const create = (path: string, content: string) => call("create_file", { path, content })
/** A check that passes as soon as a file of the model's choosing is there. */
const wants = (path: string) => ["--check", `test -e ${path}`, "--no-baseline", "--unsafe-local-exec"]
const twice = [says("Done."), says("It is done.")]

describe("a check that only passes by a trick is not verified", () => {
  it("a file under .git, outside the clone, or at an absolute path", async () => {
    await using repo = addRepo()
    const places = [".git/trick", ".git/info/trick", "../trick.txt", "/tmp/looplane-trick.txt"]
    await using ran = await execOn(
      repo,
      [calls(...places.map((path) => create(path, "x\n"))), calls(create("visible.txt", "x\n")), ...twice],
      [
        "--check",
        `sh -c '${places.map((path) => `test -e ${path}`).join(" || ")}'`,
        "--no-baseline",
        "--unsafe-local-exec"
      ]
    )
    assert.strictEqual(ran.json["terminal_reason"], "checks_failed", ran.result.stderr)
    assert.notInclude(ran.readArtifact("patch"), "trick")
    assert.isFalse(existsSync("/tmp/looplane-trick.txt"))
  })

  it("what is handed over is what was checked: a file in an ignored place, made by a tool, is in the patch", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [calls(create("dist/made.js", "x\n")), says("Done.")],
      wants("dist/made.js")
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.include(ran.readArtifact("patch"), "dist/made.js")
  })

  it("an edited .gitignore hides nothing", async () => {
    await using repo = addRepo()
    const hide = call("replace_text", {
      path: ".gitignore",
      old_text: "*.log",
      new_text: "*.log\nsrc/\nhidden.txt"
    })
    await using ran = await execOn(
      repo,
      [calls(hide), calls(create("hidden.txt", "x\n")), says("Done.")],
      wants("hidden.txt")
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.include(ran.readArtifact("patch"), "hidden.txt")
  })

  it("a nested repository is not handed over, and does not count", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [
        calls(create("inner/.git/HEAD", "ref: refs/heads/main\n")),
        calls(create("visible.txt", "x\n")),
        ...twice
      ],
      wants("inner/.git/HEAD")
    )
    assert.notStrictEqual(ran.json["terminal_reason"], "verified")
    assert.notInclude(ran.readArtifact("patch"), "inner")
  })

  it("line endings are bytes: a CRLF file is checked as it is handed over", async () => {
    await using repo = addRepo({
      files: { ".gitattributes": "*.txt text eol=crlf\n", "data.txt": "one\ntwo\n" }
    })
    const edit = call("replace_text", { path: "data.txt", old_text: "two\n", new_text: "three\n" })
    const same = [
      "--check",
      `node -e "process.exit(require('node:fs').readFileSync('data.txt','utf8') === 'one\\\\nthree\\\\n' ? 0 : 1)"`,
      "--unsafe-local-exec"
    ]
    await using ran = await execOn(repo, [calls(edit), says("Done.")], same)
    assert.strictEqual(ran.json["terminal_reason"], "verified", JSON.stringify(ran.json["verification"]))
  })

  it("what a check writes is thrown away with its place and named in the journal", async () => {
    await using repo = addRepo()
    const fix = call("replace_text", {
      path: addFix.path,
      old_text: addFix.old_text,
      new_text: addFix.new_text
    })
    await using ran = await execOn(
      repo,
      [calls(fix), says("Done.")],
      ["--check", `sh -c 'echo litter > litter.txt; node --test'`, "--unsafe-local-exec"]
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.notInclude(ran.readArtifact("patch"), "litter")
    assert.include(ran.readArtifact("events"), "litter.txt")
  })
})

describe("a hostile repository", () => {
  it("runs nothing of what it planted, and comes out as it went in", async () => {
    const place = mkdtempSync(join(tmpdir(), "looplane-marker-"))
    try {
      const marker = join(place, "ran")
      await using repo = hostileRepo(marker)
      await using ran = await execOn(
        repo,
        [calls(create("new.txt", "x\n")), says("Done.")],
        ["--check", "true", "--unsafe-local-exec"]
      )
      assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
      assert.deepStrictEqual(repo.ran(), [], existsSync(marker) ? readFileSync(marker, "utf8") : "")
    } finally {
      chmodSync(place, 0o700)
      rmSync(place, { recursive: true, force: true })
    }
  })

  it("with --base working-tree, neither", async () => {
    const place = mkdtempSync(join(tmpdir(), "looplane-marker-"))
    try {
      await using repo = hostileRepo(join(place, "ran"))
      await using ran = await execOn(
        repo,
        [calls(create("new.txt", "x\n")), says("Done.")],
        ["--check", "true", "--unsafe-local-exec", "--base", "working-tree"]
      )
      assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
      assert.deepStrictEqual(repo.ran(), [])
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })
})
