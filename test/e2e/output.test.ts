import { execFile } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, type Home } from "../support/Cli.ts"
import { startModelServer } from "../support/ModelServer.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { call, calls, execOn, providerArgs, says } from "./support.ts"

const launcher = fileURLToPath(new URL("../../bin/looplane.js", import.meta.url))
const fix = call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })

/** Runs the command with its streams led elsewhere by a shell. */
const redirected = (args: ReadonlyArray<string>, redirection: string, home: Home, cwd: string) =>
  new Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>((resolve) => {
    const child = execFile(
      "sh",
      ["-c", `"$0" "$@" ${redirection}`, process.execPath, launcher, ...args],
      { cwd, env: { ...home.env, OPENAI_API_KEY: "x" }, timeout: 30_000 },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr })
    )
  })

describe.skipIf(!existsSync("/dev/full"))("a stream that cannot be written", () => {
  const run = async (redirection: string, output: "json" | "jsonl") => {
    await using repo = addRepo()
    await using home = makeHome()
    await using server = await startModelServer([calls(fix), says("Done.")])
    const place = ["-C", repo.root, "--run-root", home.runRoot, "--output", output]
    const args = ["exec", "Fix add.", ...place, ...providerArgs(server), "--no-check"]
    const ended = await redirected(args, redirection, home, repo.root)
    const [run = ""] = readdirSync(home.runRoot)
    assert.include(readdirSync(join(home.runRoot, run)), "result.json", ended.stderr)
    return ended
  }

  it("stderr: nothing is lost but the progress", async () => {
    const ended = await run("2>/dev/full", "json")
    assert.strictEqual(ended.code, 0)
    assert.include(ended.stdout, '"terminal_reason": "unverified"')
  })

  it.each(["json", "jsonl"] as const)(
    "stdout (%s): the bundle is whole, one line says so, exit 1",
    async (output) => {
      const ended = await run(">/dev/full", output)
      assert.strictEqual(ended.code, 1)
      assert.lengthOf(ended.stderr.match(/stdout cannot be written/g) ?? [], 1)
      assert.notMatch(ended.stderr, /\bat .*\.js/)
    }
  )

  it.each([">&-", "| head -c 1", ">&- 2>&- <&-"])("%s is no error", async (redirection) => {
    const ended = await run(redirection, "jsonl")
    assert.strictEqual(ended.code, 0)
    assert.notInclude(ended.stderr, "looplane:")
  })
})

describe("text of a model", () => {
  const hostile = "\u001b[2J\u001b]0;title\u0007Done\u0000 \u202egnorw\u202c"

  it("cannot steer the terminal, neither through the answer nor through the progress nor in a listing", async () => {
    await using repo = addRepo()
    await using home = makeHome()
    await using ran = await execOn(
      repo,
      [calls({ name: "read\u001b[31m_file", arguments: {} }), says(hostile)],
      ["--no-check", "--output", "text", "--run-root", home.runRoot],
      { prompt: `Say ${hostile.replaceAll("\0", "")}`, cli: { home } }
    )
    await using listed = await runCli(["sessions", "--run-root", home.runRoot], { cwd: repo.root, home })
    const [id = ""] = readdirSync(home.runRoot)
    const args = ["sessions", "--show", id, "--run-root", home.runRoot]
    await using shown = await runCli(args, { cwd: repo.root, home })
    for (const text of [ran.result.stdout, ran.result.stderr, listed.stdout, shown.stdout]) {
      assert.match(text, /Done/)
      assert.notMatch(text, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
    }
  })
})
