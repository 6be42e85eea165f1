import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { makeHome, startCli, type RunningCli } from "../support/Cli.ts"
import { startModelServer, stall, status, type ModelServer, type Script } from "../support/ModelServer.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { call, calls, providerArgs, says } from "./support.ts"

const fix = call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })
const stubborn = `sh -c 'trap "" TERM INT HUP; sleep 100 & sleep 100'`

/** Starts a run, signals it at a moment of its own, and checks what every interrupted run owes. */
const interrupted = async (
  script: Script,
  args: ReadonlyArray<string>,
  signals: ReadonlyArray<NodeJS.Signals>,
  moment: (running: RunningCli, server: ModelServer) => Promise<unknown>
) => {
  await using repo = addRepo()
  await using home = makeHome()
  await using server = await startModelServer(script)
  const place = ["-C", repo.root, "--run-root", home.runRoot]
  await using running = startCli(["exec", "Fix add.", ...place, ...providerArgs(server), ...args], {
    cwd: repo.root,
    home,
    env: { OPENAI_API_KEY: "x" }
  })
  await moment(running, server)
  const asked = performance.now()
  for (const signal of signals) running.signal(signal)
  const result = await running.done
  assert.isBelow(performance.now() - asked, 2000)
  assert.deepStrictEqual(result.leftovers(), [])
  assert.strictEqual(result.stdout, "")
  const [run = ""] = readdirSync(home.runRoot)
  const files = readdirSync(join(home.runRoot, run))
  assert.notInclude(files, "result.json")
  assert.include(files, "checkpoint.json")
  const events = readFileSync(join(home.runRoot, run, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
  assert.include(events.at(-1), '"event_type":"run.interrupted"')
  return result.code
}

const codes = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129]
] as const

describe("a signal ends a run with its own exit code, and the run can be resumed", () => {
  it.each(codes)("%s while the model is silent", async (signal, code) => {
    const ended = await interrupted([stall()], ["--no-check"], [signal], (_, server) => server.received(1))
    assert.strictEqual(ended, code)
  })

  it.each(codes)("%s while a stubborn check runs", async (signal, code) => {
    const args = ["--no-baseline", "--check", stubborn, "--unsafe-local-exec"]
    const ended = await interrupted([calls(fix), says("Done.")], args, [signal], (running) =>
      running.stderrLine(/^checking:/)
    )
    assert.strictEqual(ended, code)
  })

  it("while it waits to try again", async () => {
    const busy = status(429, { headers: { "retry-after": "60" } })
    const ended = await interrupted([busy], ["--no-check"], ["SIGTERM"], (running) =>
      running.stderrLine(/trying again/)
    )
    assert.strictEqual(ended, 143)
  })

  it("that arrives twice, from the terminal and from npm, counts once", async () => {
    const twice = ["SIGINT", "SIGINT"] as const
    const ended = await interrupted([stall()], ["--no-check"], twice, (_, server) => server.received(1))
    assert.strictEqual(ended, 130)
  })
})
