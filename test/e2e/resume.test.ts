import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync
} from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, startCli, type Home, type RunningCli } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { startModelServer, stall, type ModelServer, type Script, type Step } from "../support/ModelServer.ts"
import { assertReplays } from "../support/replay.ts"
import type { Repo } from "../support/Repo.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { hasBubblewrap } from "../support/sandbox.ts"
import { isRecord } from "../support/wire/types.ts"
import { call, calls, checkArgs, providerArgs, says, uncontained, type ProviderName } from "./support.ts"

const fix = call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })
const look = call("read_file", { path: addFix.path })
const story = [calls(look), calls(fix), says("It subtracted.")]

/** How many turns of the model a request's history holds. */
const turnsIn = (json: unknown): number => {
  const messages = isRecord(json) && Array.isArray(json["messages"]) ? json["messages"] : []
  return messages.filter((message) => isRecord(message) && message["role"] === "assistant").length
}

/** Answers by how far the conversation has come, whoever asks and however often. */
const byTurn = (steps: ReadonlyArray<Step>, once: ReadonlyMap<number, Step> = new Map()): Script =>
  (() => {
    const left = new Map(once)
    return (request) => {
      const turn = turnsIn(request.json)
      const first = left.get(turn)
      left.delete(turn)
      return first ?? steps[turn]
    }
  })()

interface World extends AsyncDisposable {
  readonly repo: Repo
  readonly home: Home
  readonly server: ModelServer
  readonly exec: (args?: ReadonlyArray<string>) => RunningCli
  readonly looplane: (...args: ReadonlyArray<string>) => ReturnType<typeof runCli>
  /** The run's directory. */
  readonly directory: () => string
  readonly lines: () => ReadonlyArray<Readonly<Record<string, unknown>>>
}

const world = async (script: Script, provider: ProviderName = "openai-compatible"): Promise<World> => {
  const repo = addRepo()
  const home = makeHome()
  const server = await startModelServer(script)
  const env = { OPENAI_API_KEY: "x", ANTHROPIC_API_KEY: "x" }
  const before = snapshotTree(repo.root)
  const directory = () => join(home.runRoot, readdirSync(home.runRoot).toSorted()[0] ?? "")
  return {
    repo,
    home,
    server,
    exec: (args = checkArgs) =>
      startCli(
        [
          ...["exec", "Fix add.", "-C", repo.root, "--run-root", home.runRoot],
          ...[...providerArgs(server, provider), ...args]
        ],
        { cwd: repo.root, home, env }
      ),
    looplane: (...args) => runCli([...args, "--run-root", home.runRoot], { cwd: repo.root, home, env }),
    directory,
    lines: () =>
      readFileSync(join(directory(), "events.jsonl"), "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line): Readonly<Record<string, unknown>> => {
          const value: unknown = JSON.parse(line)
          return isRecord(value) ? value : {}
        }),
    [Symbol.asyncDispose]: async () => {
      assertUntouched(before, snapshotTree(repo.root))
      await assertReplays(home.runRoot)
      await server.close()
      home.dispose()
      await repo[Symbol.asyncDispose]()
    }
  }
}

/** Some of many, other ones with another seed. */
const seeded = (all: ReadonlyArray<number>, count: number): ReadonlyArray<number> => {
  const seed = Number(process.env["LOOPLANE_TEST_SEED"] ?? "0")
  return Array.from(
    { length: count },
    (_, i) => all[(seed + i * Math.ceil(all.length / count)) % all.length] ?? 3
  )
}

/** Ends a command as nothing else does. */
const kill9 = async (running: RunningCli) => {
  running.signal("SIGKILL", "group")
  await running.done
}

const types = (lines: ReturnType<World["lines"]>) => lines.map((line) => String(line["event_type"]))
const patchOf = (directory: string) => readFileSync(join(directory, "changes.patch"), "utf8")

/** Resolves when the journal holds so many lines. */
const journalled = async (it: World, count: number): Promise<void> => {
  const enough = () => {
    try {
      return it.lines().length >= count
    } catch {
      return false
    }
  }
  const changed = Promise.withResolvers<void>()
  const watcher = watch(it.home.runRoot, { recursive: true }, () => {
    if (enough()) changed.resolve()
  })
  if (enough()) changed.resolve()
  await changed.promise
  watcher.close()
}

const resumedWell = async (it: World, resumed: Awaited<ReturnType<World["looplane"]>>) => {
  assert.strictEqual(resumed.code, 0, resumed.stderr)
  assert.strictEqual(resumed.json()["terminal_reason"], "verified")
  assert.strictEqual(patchOf(it.directory()).split(addFix.new_text).length - 1, 1)
  assert.deepStrictEqual(resumed.leftovers(), [])
  assert.deepStrictEqual(it.server.violations, [])
  const closed = new Set(
    "request.json session.json events.jsonl checkpoint.json verification.json test.log changes.patch receipt.json result.json blobs git workspace .writer.lock".split(
      " "
    )
  )
  assert.deepStrictEqual(
    readdirSync(it.directory()).filter((name) => !closed.has(name)),
    []
  )
}

describe("kill -9", () => {
  it("against a stalled endpoint, then resume: verified, each edit once", async () => {
    await using it = await world(byTurn(story, new Map([[2, stall()]])))
    const running = it.exec()
    await it.server.received(3)
    await kill9(running)
    const resumed = await it.looplane("resume", "last")
    await resumedWell(it, resumed)
    const edits = it.lines().filter((line) => line["event_type"] === "tool.completed")
    assert.lengthOf(edits, 2)
    assert.include(types(it.lines()), "session.resumed")
  })

  // An uninterrupted run of this story writes 30 lines and sends 3 requests.
  const lines = seeded([3, 6, 9, 12, 15, 18, 21, 24, 27], 3)
  it.each(lines)("when journal line %i appears, then resume: the result it would have had", async (count) => {
    await using it = await world(byTurn(story))
    const running = it.exec()
    await journalled(it, count)
    await kill9(running)
    await resumedWell(it, await it.looplane("resume"))
  })
})

describe("resume", () => {
  it("answers every call of a turn that was cut off, in order, for a provider that checks it", async () => {
    const slow = call("run_check", { name: "check-1" })
    const steps = [calls(look, slow), calls(fix), says("Done."), says("Done again.")]
    await using it = await world(byTurn(steps), "anthropic")
    const running = it.exec([
      "--no-baseline",
      "--check",
      `node -e "setTimeout(() => {}, 1e6)"`,
      "--check-timeout",
      "2",
      "--unsafe-local-exec"
    ])
    await journalled(it, 12)
    running.signal("SIGINT")
    assert.strictEqual((await running.done).code, 130)
    const resumed = await it.looplane("resume")
    assert.strictEqual(resumed.json()["terminal_reason"], "checks_failed", resumed.stderr)
    assert.deepStrictEqual(it.server.violations, [])
  })

  it("takes a follow-up task in the same conversation and workspace, kept or rebuilt", async () => {
    const more = call("create_file", { path: "NOTES.md", content: "notes\n" })
    await using it = await world(byTurn([...story, calls(more), says("Noted.")]))
    await it.exec().done
    const first = await it.looplane("resume", "last")
    assert.strictEqual(first.code, 2)
    assert.match(first.stderr, /follow-up task/)
    rmSync(join(it.directory(), "workspace"), { recursive: true })
    const continued = await it.looplane("resume", "last", "Add notes.")
    assert.strictEqual(continued.code, 0, continued.stderr)
    assert.deepStrictEqual(continued.json()["changed_files"], ["NOTES.md", addFix.path])
    assert.strictEqual(continued.json()["terminal_reason"], "verified")
    assert.include(JSON.stringify(it.server.calls.at(-1)?.json), "Add notes.")
  })

  it("refuses a follow-up that has nothing to work in, and the patch of before is still there", async () => {
    await using it = await world(byTurn([...story, says("Noted.")]))
    await it.exec().done
    const away = join(it.home.tmp, "git")
    renameSync(join(it.directory(), "git"), away)
    rmSync(join(it.directory(), "workspace"), { recursive: true })
    const evidence = ["result.json", "receipt.json", "changes.patch", "verification.json", "test.log"]
    const bytes = () => evidence.map((name) => readFileSync(join(it.directory(), name), "utf8"))
    const before = [...bytes(), readFileSync(join(it.directory(), "events.jsonl"), "utf8")]
    const refused = await it.looplane("resume", "last", "Add notes.")
    assert.strictEqual(refused.code, 2)
    assert.match(refused.stderr, /cannot be gone on with/)
    assert.deepStrictEqual([...bytes(), readFileSync(join(it.directory(), "events.jsonl"), "utf8")], before)
    rmSync(join(it.directory(), "git"), { recursive: true, force: true })
    renameSync(away, join(it.directory(), "git"))
    const continued = await it.looplane("resume", "last", "Add notes.")
    assert.strictEqual(continued.json()["terminal_reason"], "verified", continued.stderr)
  })

  it("goes on with another model when told so, and the result says it", async () => {
    await using it = await world(byTurn(story, new Map([[1, stall()]])))
    const running = it.exec()
    await it.server.received(2)
    await kill9(running)
    const resumed = await it.looplane("resume", "--model", "other")
    await resumedWell(it, resumed)
    assert.match(String(resumed.json()["notes"]), /goes on with openai-compatible\/other/)
  })

  it("of a run that somebody is writing is refused in one line, exit 2", async () => {
    await using it = await world(byTurn(story, new Map([[0, stall()]])))
    const running = it.exec()
    await it.server.received(1)
    const second = await it.looplane("resume")
    assert.strictEqual(second.code, 2)
    assert.match(second.stderr, /another process is working/)
    assert.lengthOf(second.stderr.trimEnd().split("\n"), 1)
    await kill9(running)
  })

  it("works in a bundle that was moved, and refuses one behind a symbolic link", async () => {
    await using it = await world(byTurn(story, new Map([[2, stall()]])))
    const running = it.exec(["--check", "node --test", ...uncontained])
    await it.server.received(3)
    await kill9(running)
    const moved = join(it.home.tmp, "moved-run")
    renameSync(it.directory(), moved)
    const link = join(it.home.tmp, "link")
    symlinkSync(moved, link)
    const refused = await it.looplane("resume", link)
    assert.strictEqual(refused.code, 2)
    assert.match(refused.stderr, /symbolic link/)
    const unsaid = await it.looplane("resume", moved)
    assert.strictEqual(unsaid.code, 2)
    assert.match(unsaid.stderr, /outside the run root.*--unsafe-local-exec/)
    const resumed = await it.looplane("resume", moved, "--unsafe-local-exec")
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.isTrue(existsSync(join(moved, "result.json")))
  })

  it.skipIf(!hasBubblewrap)(
    "in a bundle from elsewhere opens no network that nobody here has allowed",
    async () => {
      await using it = await world(byTurn(story, new Map([[2, stall()]])))
      const running = it.exec(["--check", "node --test", "--check-network", "host"])
      await it.server.received(3)
      await kill9(running)
      const moved = join(it.home.tmp, "moved-run")
      renameSync(it.directory(), moved)
      const refused = await it.looplane("resume", moved)
      assert.strictEqual(refused.code, 2)
      assert.match(refused.stderr, /would use this machine's network: add --unsafe-local-exec/)
      const resumed = await it.looplane("resume", moved, "--unsafe-local-exec")
      assert.strictEqual(resumed.code, 0, resumed.stderr)
    }
  )

  it("of a journal that lost events is refused with their number; --accept-loss goes on", async () => {
    await using it = await world(byTurn(story, new Map([[2, stall()]])))
    const running = it.exec()
    await it.server.received(3)
    await kill9(running)
    const file = join(it.directory(), "events.jsonl")
    const kept = it.lines().length - 4
    const text = readFileSync(file, "utf8").split("\n").slice(0, kept).join("\n")
    writeFileSync(file, `${text}\n`)
    const refused = await it.looplane("resume")
    assert.strictEqual(refused.code, 2)
    assert.match(refused.stderr, /events are lost.*--accept-loss/)
    await resumedWell(it, await it.looplane("resume", "--accept-loss"))
  })
})

describe("a fork", () => {
  it("begins at any event of a run, and asks nothing before its own first turn", async () => {
    await using it = await world(byTurn([...story.slice(0, 2), says("Done."), says("Never asked.")]))
    await it.exec().done
    const events = types(it.lines())
    const requests = it.server.calls.length
    const at = events.indexOf("tool.completed")
    const source = basename(it.directory())
    const forked = await it.looplane(
      "sessions",
      "--fork-from-event",
      source,
      "--sequence",
      String(at),
      "--output",
      "json"
    )
    assert.strictEqual(forked.code, 0, forked.stderr)
    assert.strictEqual(it.server.calls.length, requests)
    const resumed = await it.looplane("resume", String(forked.json()["run_id"]))
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.strictEqual(resumed.json()["terminal_reason"], "verified")
    assert.strictEqual(it.server.calls.length, requests + 2)
  })
})

describe("a closed stdout", () => {
  it("ends no run: its bundle is complete", async () => {
    await using it = await world(byTurn(story))
    const running = it.exec([...checkArgs, "--output", "jsonl"])
    running.closeStdout()
    const result = await running.done
    assert.strictEqual(result.code, 0, result.stderr)
    assert.isTrue(existsSync(join(it.directory(), "result.json")))
  })
})
