import { writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, startCli } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { startModelServer, stall, turn } from "../support/ModelServer.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { bodyOf, call, calls, checkArgs, execOn, inRepo, providerArgs, says } from "./support.ts"

const fix = call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })

describe("interruption", () => {
  it("in the model's answer ends within two seconds with 130, the journal intact, the run not ended", async () => {
    await using repo = addRepo()
    await using home = makeHome()
    await using server = await startModelServer([stall()])
    const before = snapshotTree(repo.root)
    await using running = startCli(
      [
        "exec",
        "Fix add.",
        "-C",
        repo.root,
        ...providerArgs(server),
        ...checkArgs,
        "--run-root",
        home.runRoot
      ],
      {
        cwd: repo.root,
        home,
        env: { OPENAI_API_KEY: "x" }
      }
    )
    await server.received(1)
    const asked = performance.now()
    running.signal("SIGINT", "group")
    const result = await running.done
    assert.isBelow(performance.now() - asked, 2000)
    assert.strictEqual(result.code, 130, result.stderr)
    assert.deepStrictEqual(result.leftovers(), [])
    assertUntouched(before, snapshotTree(repo.root))
    await using listed = await runCli(["sessions", "--run-root", home.runRoot, "--output", "json"], {
      cwd: repo.root,
      home
    })
    const runs: unknown = JSON.parse(listed.stdout)
    assert.isArray(runs)
    assert.include(listed.stdout, '"terminal_reason": null')
    assert.include(listed.stdout, "result.json")
  })

  it("in a check ends the check and its children at once", async () => {
    await using repo = addRepo()
    await using home = makeHome()
    await using server = await startModelServer([calls(fix), says("Done.")])
    await using running = startCli(
      [
        "exec",
        "Fix add.",
        "-C",
        repo.root,
        ...providerArgs(server),
        "--no-baseline",
        "--check",
        `sh -c 'trap "" TERM; sleep 100 & sleep 100'`,
        "--unsafe-local-exec",
        "--run-root",
        home.runRoot
      ],
      { cwd: repo.root, home, env: { OPENAI_API_KEY: "x" } }
    )
    await running.stderrLine(/^checking:/)
    const asked = performance.now()
    running.signal("SIGINT", "group")
    const result = await running.done
    assert.isBelow(performance.now() - asked, 2000)
    assert.strictEqual(result.code, 130, result.stderr)
    assert.deepStrictEqual(result.leftovers(), [])
  })
})

describe("what stdout carries", () => {
  it("jsonl: events line by line, the result last", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [calls(fix), says("Done.")], [...checkArgs, "--output", "jsonl"])
    const lines = ran.result.jsonLines()
    assert.strictEqual(lines[0]?.["event_type"], "run.created")
    assert.deepStrictEqual(
      lines.slice(0, -1).map((line) => line["sequence"]),
      lines.slice(0, -1).map((_, i) => i)
    )
    assert.strictEqual(lines.at(-1)?.["type"], "result")
    assert.strictEqual(lines.at(-1)?.["terminal_reason"], "verified")
  })

  it("text: the answer for people, the progress on stderr", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [calls(fix), says("It subtracted.")],
      [...checkArgs, "--output", "text"]
    )
    assert.include(ran.result.stdout, "It subtracted.")
    assert.include(ran.result.stdout, "completed: verified")
    assert.match(ran.result.stdout, /patch: +\/.*changes\.patch/)
    assert.match(ran.result.stderr, /step 1: replace_text src\/add\.js/)
  })

  it("through -p in a pipe: JSON; an edit without a check ends unverified with 1", async () => {
    await using repo = addRepo()
    await using server = await startModelServer([calls(fix), says("Done.")])
    await using result = await runCli(["-p", "Fix add.", "-C", repo.root, ...providerArgs(server)], {
      cwd: repo.root,
      env: { OPENAI_API_KEY: "x" }
    })
    assert.strictEqual(result.code, 1, result.stderr)
    assert.strictEqual(result.json()["terminal_reason"], "unverified")
  })

  it("the default command answers a question in plain lines", async () => {
    await using repo = addRepo()
    await using server = await startModelServer([says("It adds two numbers, wrongly.")])
    await using result = await runCli(["What does add do?", ...providerArgs(server)], {
      cwd: repo.root,
      env: { OPENAI_API_KEY: "x" }
    })
    assert.strictEqual(result.code, 0, result.stderr)
    assert.include(result.stdout, "It adds two numbers, wrongly.")
    assert.include(result.stdout, "completed: no_changes")
  })
})

describe("stdin", () => {
  it("is not waited for when the prompt is an argument", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [says("Nothing to do.")], checkArgs, { cli: { stdin: "pipe-open" } })
    assert.strictEqual(ran.json["terminal_reason"], "no_changes")
  })

  it("is the prompt when the prompt is -", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [says("Nothing to do.")], checkArgs, {
      cli: { stdin: { text: "Explain the\nbug.\n" } },
      prompt: "-"
    })
    assert.include(bodyOf(ran, 0), "Explain the\\nbug.")
  })
})

describe("the source", () => {
  it("may be dirty: the paths left out are said once, and --base working-tree takes them along", async () => {
    await using repo = addRepo()
    writeFileSync(inRepo(repo, "draft.txt"), "not committed\n")
    writeFileSync(inRepo(repo, "README.md"), "# changed\n")
    await using ran = await execOn(repo, [calls(fix), says("Done.")], checkArgs)
    assert.strictEqual(ran.json["terminal_reason"], "verified")
    assert.strictEqual(ran.result.stderr.split("draft.txt").length - 1, 1, ran.result.stderr)
    assert.notInclude(ran.readArtifact("patch"), "draft.txt")
    const seen = [
      "--check",
      `node -e "process.exit(require('node:fs').existsSync('draft.txt') ? 0 : 1)"`,
      "--unsafe-local-exec",
      "--base",
      "working-tree"
    ]
    await using along = await execOn(repo, [calls(fix), says("Done.")], seen)
    assert.strictEqual(along.json["terminal_reason"], "verified", along.result.stderr)
    assert.deepStrictEqual(along.json["changed_files"], [addFix.path])
  })

  it("the first request does not wait for the clone, and holds the files of the base commit", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [says("Hello.")], checkArgs)
    assert.include(bodyOf(ran, 0), "src/add.js")
  })
})

describe("parallel reads and broken arguments", () => {
  it("are answered in call order, each exactly once", async () => {
    await using repo = addRepo()
    const reads = ["README.md", "package.json", "src/add.js"].map((path) => call("read_file", { path }))
    await using ran = await execOn(repo, [calls(...reads), says("Read.")], checkArgs)
    const completed = ran.events().filter((event) => event["event_type"] === "tool.completed")
    assert.strictEqual(completed.length, 3)
    assert.include(ran.eventTypes(), "tool.batch_started")
    assert.match(bodyOf(ran, 1), /# add[\s\S]*\\"private\\"[\s\S]*left - right/)
  })

  it("that are no JSON come back as an observation, and an unknown tool names the known ones", async () => {
    await using repo = addRepo()
    const broken = turn({ toolCalls: [{ name: "read_file", arguments: "}{ not json" }] })
    await using ran = await execOn(
      repo,
      [broken, calls(call("teleport", {})), calls(call("read_file", { file: "x" })), says("Sorry.")],
      checkArgs
    )
    assert.include(bodyOf(ran, 1), "valid JSON")
    assert.include(bodyOf(ran, 2), "there is no tool named")
    assert.match(bodyOf(ran, 3), /path/)
  })
})
