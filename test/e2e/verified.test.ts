import { readFileSync } from "node:fs"
import { isAbsolute } from "node:path"
import { assert, describe, it } from "vitest"
import { addFix, addRepo } from "../support/repos/add.ts"
import { workspacesFix, workspacesRepo } from "../support/repos/workspaces.ts"
import {
  applyPatch,
  assertComplete,
  call,
  calls,
  testArgs,
  execOn,
  inRepo,
  runTests,
  says,
  uncontained,
  type ProviderName
} from "./support.ts"

const fixing = (fix: { readonly path: string; readonly old_text: string; readonly new_text: string }) => [
  calls(call("read_file", { path: fix.path })),
  calls(call("replace_text", { path: fix.path, old_text: fix.old_text, new_text: fix.new_text })),
  says("Fixed: it subtracted.")
]

describe("a verified patch", () => {
  it.each<ProviderName>(["openai-compatible", "anthropic", "ollama"])(
    "comes home through %s",
    async (provider) => {
      await using repo = addRepo()
      await using ran = await execOn(repo, fixing(addFix), testArgs, { provider })
      assert.strictEqual(ran.result.code, 0, ran.result.stderr)
      assert.strictEqual(ran.json["status"], "completed")
      assert.strictEqual(ran.json["terminal_reason"], "verified")
      assert.deepStrictEqual(ran.json["changed_files"], [addFix.path])
      assert.strictEqual(ran.json["summary"], "Fixed: it subtracted.")
      assert.isArray(ran.json["verification"])
      assert.isObject(ran.json["usage"])
      assert.match(String(ran.json["run_id"]), /./)
      assertComplete(ran)
      assert.isTrue(isAbsolute(ran.artifact("patch")))
      assert.strictEqual(ran.eventTypes().at(-1), "run.ended")

      assert.strictEqual(runTests(repo.root), 1, "the source still has its bug")
      applyPatch(repo, ran.artifact("patch"))
      assert.strictEqual(readFileSync(inRepo(repo, addFix.path), "utf8"), addFix.fixed)
      assert.strictEqual(runTests(repo.root), 0)
    }
  )

  it("stores names relative to the bundle, so that it can be moved", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, fixing(addFix), testArgs)
    const stored = readFileSync(ran.artifact("result"), "utf8")
    assert.notInclude(stored, ran.result.home.folder)
    assert.include(stored, '"patch": "changes.patch"')
  })

  it("of an npm workspace is proved on the patched package, with the user's node_modules unchanged", async () => {
    await using repo = workspacesRepo()
    const args = ["--check", "node --test", ...uncontained]
    await using ran = await execOn(repo, fixing(workspacesFix), args)
    assert.strictEqual(
      ran.json["terminal_reason"],
      "verified",
      ran.result.stderr + JSON.stringify(ran.json, null, 1)
    )
    const log = ran.readArtifact("test_log")
    const loaded = [...log.matchAll(/lib is (file:\/\/\S+)/g)].map((match) => match[1] ?? "")
    assert.isNotEmpty(loaded)
    for (const url of loaded) assert.notInclude(url, repo.root, "the check loaded the source's package")
  })

  it("runs in the subdirectory that -C names, and finds the root by itself", async () => {
    await using repo = addRepo({
      files: { "nested/only-here.test.js": "import test from 'node:test'\ntest('here', () => {})\n" }
    })
    await using ran = await execOn(
      repo,
      [calls(call("create_file", { path: "nested/new.txt", content: "x\n" })), says("Done.")],
      ["--check", "node --test only-here.test.js", "--unsafe-local-exec"],
      { directory: inRepo(repo, "nested"), prompt: "Add a file." }
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.deepStrictEqual(ran.json["changed_files"], ["nested/new.txt"])
  })
})
