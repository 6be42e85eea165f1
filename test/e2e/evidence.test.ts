/**
 * Attempts to get `verified` for something else than the patch, to lose what happened, or to leave a mark on the source.
 * Checks run on the host here, so they can write anywhere: what they break must be found out, never handed over.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, startCli, type Home } from "../support/Cli.ts"
import { assertUntouched, heldLocks, snapshotTree } from "../support/Leaks.ts"
import { startModelServer } from "../support/ModelServer.ts"
import { makeRepo, type Repo } from "../support/Repo.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { call, calls, checkArgs, execOn, providerArgs, says, uncontained } from "./support.ts"

const fix = call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })
const create = (path: string, content: string) => call("create_file", { path, content })

/** A repository whose only check loads what the model writes, and then looks at a file that the model may not touch. */
const guardedRepo = () =>
  makeRepo({
    files: {
      "package.json": '{"type":"module"}\n',
      "rule.txt": "forbidden\n",
      "check.js":
        'import { existsSync, readFileSync } from "node:fs"\nif (existsSync("plugin.js")) await import("./plugin.js")\nprocess.exit(readFileSync("rule.txt", "utf8").startsWith("allowed") ? 0 : 1)\n'
    }
  })
const guarded = ["--check", "node check.js", ...uncontained]

/** Code that finds the run's own directory from where a check runs, as any process of the same user can. */
const inRun = (body: string) =>
  `import fs from "node:fs"\nimport path from "node:path"\nimport zlib from "node:zlib"\nimport crypto from "node:crypto"\nconst run = path.resolve("..")\nif (fs.existsSync(path.join(run, "events.jsonl"))) {\n${body}\n}\n`

const forgeRule = inRun(`
  const of = (text) => Buffer.from("blob " + text.length + "\\0" + text)
  const id = crypto.createHash("sha1").update(of("forbidden\\n")).digest("hex")
  const at = path.join(run, "git/objects", id.slice(0, 2), id.slice(2))
  fs.mkdirSync(path.dirname(at), { recursive: true })
  fs.rmSync(at, { force: true })
  fs.writeFileSync(at, zlib.deflateSync(of("allowed\\n")))
`)

const plantFilter = inRun(`
  fs.writeFileSync(path.join(run, "git/info/attributes"), "rule.txt filter=x\\n")
  fs.appendFileSync(path.join(run, "git/config"), '[filter "x"]\\n\\tsmudge = "echo allowed"\\n\\tclean = "echo forbidden"\\n')
`)

const runsOf = (home: Home): ReadonlyArray<string> => {
  const root = join(home.env["XDG_STATE_HOME"] ?? "", "looplane", "runs")
  return existsSync(root)
    ? readdirSync(root).filter((run) => existsSync(join(root, run, "session.json")))
    : []
}

/** Every run below the home's run root can be read, its chain whole; how each of them ended, null for one that did not. */
const endings = async (home: Home, cwd: string): Promise<ReadonlyArray<string | null>> => {
  const found: Array<string | null> = []
  for (const run of runsOf(home)) {
    const shown = await runCli(["sessions", "--show", run, "--output", "json"], { cwd, home })
    assert.strictEqual(shown.code, 0, shown.stderr)
    found.push(/"terminal_reason": ?"([a-z_]+)"/.exec(shown.stdout)?.[1] ?? null)
  }
  return found
}

describe("a check that reaches into its own run", () => {
  it.each([
    ["rewrites an object of the store", forgeRule],
    ["plants a filter in the store", plantFilter],
    [
      "plants a rule in the workspace",
      inRun('  fs.writeFileSync(path.join(run, "workspace/rule.txt"), "allowed\\n")')
    ],
    [
      "plants a rule in the next place",
      inRun(
        '  for (const name of fs.readdirSync(run)) if (name.startsWith("verify-")) fs.writeFileSync(path.join(run, name, "left.txt"), "x")'
      )
    ]
  ])("and %s: no verified without the patch to show for it", async (_, plugin) => {
    await using repo = guardedRepo()
    await using ran = await execOn(
      repo,
      [
        calls(create("plugin.js", plugin)),
        calls(call("run_check", { name: "check-1" })),
        calls(call("replace_text", { path: "plugin.js", old_text: plugin, new_text: "export {}\n" })),
        says("Done."),
        says("Done."),
        says("Done.")
      ],
      guarded
    )
    const patch = ran.readArtifact("patch")
    const verified = ran.json["terminal_reason"] === "verified"
    assert.strictEqual(verified, patch.includes("+allowed"), JSON.stringify(ran.json, null, 1))
  })

  it.each([
    ["empties the journal", inRun('  fs.writeFileSync(path.join(run, "events.jsonl"), "")')],
    ["forges a line of it", inRun('  fs.appendFileSync(path.join(run, "events.jsonl"), "{}\\n")')],
    ["takes the journal away", inRun('  fs.rmSync(path.join(run, "events.jsonl"))')]
  ])("and %s: no result is announced", async (_, plugin) => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [calls(fix), calls(create("src/more.js", plugin)), says("Done.")],
      ["--check", "node src/more.js", ...uncontained, "--no-baseline"]
    )
    assert.notStrictEqual(ran.result.code, 0)
    assert.notInclude(ran.result.stdout, "verified")
    assert.include(ran.result.stderr, "events.jsonl")
  })

  it("and kills looplane: nothing is left locked, the journal opens, the source is as it was", async () => {
    await using repo = addRepo()
    await using server = await startModelServer([calls(fix), says("Done.")])
    await using home = makeHome()
    const before = snapshotTree(repo.root)
    const result = await runCli(
      ["exec", "Fix add.", "-C", repo.root, ...providerArgs(server), "--no-baseline"].concat([
        "--check",
        "sh -c 'kill -9 $PPID; sleep 1'",
        ...uncontained
      ]),
      { cwd: repo.root, home, env: { OPENAI_API_KEY: "x" } }
    )
    assert.strictEqual(result.signal, "SIGKILL")
    assertUntouched(before, snapshotTree(repo.root))
    assert.deepStrictEqual(heldLocks(home.folder), [])
    assert.deepStrictEqual(await endings(home, repo.root), [null])
  })
})

describe("a run that dies at any moment", () => {
  it("leaves the source as it was, no lock, and a journal that opens", async () => {
    await using repo = addRepo()
    const before = snapshotTree(repo.root)
    for (const moment of ["run.created", "tool.started", "verification.started"]) {
      await using server = await startModelServer([calls(fix), says("Done.")])
      await using home = makeHome()
      await using running = startCli(
        ["exec", "Fix add.", "-C", repo.root, ...providerArgs(server), ...checkArgs, "--output", "jsonl"],
        { cwd: repo.root, home, env: { OPENAI_API_KEY: "x" } }
      )
      await running.stdoutLine((line) => line.includes(`"event_type":"${moment}"`))
      running.signal("SIGKILL")
      const result = await running.done
      assertUntouched(before, snapshotTree(repo.root))
      home.kill()
      const ended = await endings(home, repo.root)
      if (result.signal === null) assert.deepStrictEqual(ended, ["verified"])
      else assert.include([[null], ["verified"]].map(String), String(ended), `${moment}: ${result.stderr}`)
      const locks = home
        .leftovers()
        .filter((line) => line.startsWith("lock") && line.includes(".writer.lock"))
      assert.deepStrictEqual(locks, [])
    }
  }, 120_000)
})

describe("runs beside each other", () => {
  it("on one source and one run root end as each would alone", async () => {
    await using repo = addRepo()
    await using home = makeHome()
    const before = snapshotTree(repo.root)
    const all = await Promise.all(
      [1, 2].map(async () => {
        await using server = await startModelServer([calls(fix), says("Done.")])
        return await runCli(["exec", "Fix add.", "-C", repo.root, ...providerArgs(server), ...checkArgs], {
          cwd: repo.root,
          home,
          env: { OPENAI_API_KEY: "x" }
        })
      })
    )
    assert.deepStrictEqual(
      all.map((one) => one.json()["terminal_reason"]),
      ["verified", "verified"]
    )
    assertUntouched(before, snapshotTree(repo.root))
    assert.deepStrictEqual(await endings(home, repo.root), ["verified", "verified"])
    assert.deepStrictEqual(home.leftovers(), [])
  })
})

describe("a source in the middle of something", () => {
  const conflict = (repo: Repo, how: ReadonlyArray<string>) => {
    repo.git("checkout", "-q", "-b", "side")
    repo.write({ "README.md": "side\n" })
    repo.git("commit", "-qam", "side")
    repo.git("checkout", "-q", "main")
    repo.write({ "README.md": "main\n" })
    repo.git("commit", "-qam", "main")
    try {
      repo.git(...how)
      assert.fail("there should be a conflict")
    } catch (cause) {
      assert.include(String(cause), "Command failed")
    }
  }
  const states: ReadonlyArray<readonly [name: string, arrange: (repo: Repo) => void]> = [
    ["a rebase that stopped at a conflict", (repo) => conflict(repo, ["rebase", "side"])],
    [
      "a detached HEAD with staged changes, packed refs and a split index",
      (repo) => {
        repo.git("checkout", "-q", "--detach")
        repo.git("pack-refs", "--all")
        repo.git("gc", "-q")
        repo.git("update-index", "--split-index")
        repo.write({ "README.md": "staged\n", "staged.txt": "x\n" })
        repo.git("add", "-A")
        repo.write({ "README.md": "and changed again\n" })
      }
    ],
    ["a read-only tree", (repo) => execFileSync("chmod", ["-R", "a-w", repo.root])]
  ]
  it.each(states)("is a base like any other: %s", async (_, arrange) => {
    await using repo = addRepo()
    arrange(repo)
    await using ran = await execOn(
      repo,
      [calls(fix), says("Done.")],
      [...checkArgs, "--base", "working-tree"]
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr + JSON.stringify(ran.json))
    assert.deepStrictEqual(ran.json["changed_files"], [addFix.path])
    execFileSync("chmod", ["-R", "u+w", repo.root])
  })
})

describe("a runner that says nothing or too much", () => {
  const withTest = (text: string) => addRepo({ files: { "test/add.test.js": text } })
  it.each([
    [
      "a test that ends the process",
      "import test from 'node:test'\ntest('x', () => process.exit(0))\n",
      ["--test-isolation=none"]
    ],
    ["a file that prints a count", "console.log('\u2139 tests 5\\n# tests 5\\n\u2139 skipped 0')\n", []],
    [
      "a file that prints a count at the end",
      "process.on('exit', () => console.log('\u2139 tests 5'))\n",
      ["--test-isolation=none"]
    ]
  ])("%s: could_not_verify", async (_, text, flags) => {
    await using repo = withTest(text)
    await using ran = await execOn(
      repo,
      [calls(fix), says("Done.")],
      ["--check", ["node", "--test", ...flags].join(" "), "--unsafe-local-exec"]
    )
    assert.strictEqual(ran.json["terminal_reason"], "could_not_verify", JSON.stringify(ran.json))
  })

  it("prints more than anybody can read, or waits for input, and is judged all the same", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [calls(fix), says("Done.")],
      [
        ...["--check", "sh -c 'yes line | head -c 20000000; true'", "--check", "sh -c 'cat; read x; true'"],
        ...["--unsafe-local-exec", "--no-baseline"]
      ]
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.isBelow(ran.readArtifact("test_log").length, 1_000_000)
  })
})
