import { assert, describe, it } from "vitest"
import { addFix, addRepo } from "../support/repos/add.ts"
import { cutAfter, raw, stall, status, turn } from "../support/ModelServer.ts"
import { assertComplete, bodyOf, call, calls, checkArgs, execOn, says } from "./support.ts"

const fix = call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })
const wrongFix = call("replace_text", {
  path: addFix.path,
  old_text: addFix.old_text,
  new_text: "left * right"
})
const wait = { headers: { "retry-after-ms": "1" } }
const page = raw({
  status: 502,
  headers: { "content-type": "text/html", "retry-after-ms": "1" },
  body: "<html><body><h1>Bad gateway</h1></body></html>"
})

describe("how a run ends", () => {
  it("without an edit: no_changes, nothing verified", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [says("It is done.")], checkArgs)
    assert.strictEqual(ran.result.code, 0)
    assert.strictEqual(ran.json["terminal_reason"], "no_changes")
    assert.deepStrictEqual(ran.json["verification"], [])
    assert.deepStrictEqual(ran.json["changed_files"], [])
    assertComplete(ran)
    assert.strictEqual(ran.readArtifact("patch"), "")
  })

  it("with a check that stays red: checks_failed, the failure fed back once", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [calls(wrongFix), says("Fixed."), says("It is right.")], checkArgs)
    assert.strictEqual(ran.result.code, 1)
    assert.strictEqual(ran.json["terminal_reason"], "checks_failed")
    assertComplete(ran)
    const fedBack = bodyOf(ran, -1)
    assert.include(fedBack, "injected_context:verification")
    assert.include(ran.readArtifact("patch"), "left * right", "the patch is there to look at")
  })

  it("with a check that turns green on the second try: verified", async () => {
    await using repo = addRepo()
    const repair = call("replace_text", {
      path: addFix.path,
      old_text: "left * right",
      new_text: "left + right"
    })
    await using ran = await execOn(
      repo,
      [calls(wrongFix), says("Fixed."), calls(repair), says("Now.")],
      checkArgs
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
  })

  it("with the third identical call: repeated_action", async () => {
    await using repo = addRepo()
    const read = call("read_file", { path: "README.md" })
    await using ran = await execOn(repo, [calls(read), calls(read), calls(read), says("never")], checkArgs)
    assert.strictEqual(ran.result.code, 1)
    assert.strictEqual(ran.json["terminal_reason"], "repeated_action")
    assert.strictEqual(ran.eventTypes().filter((type) => type === "tool.completed").length, 2)
    assertComplete(ran)
  })

  it("with the steps used up: max_steps_exceeded, exit 4, after a summary without tools", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [calls(call("read_file", { path: "README.md" })), calls(wrongFix), says("I ran out of steps.")],
      [...checkArgs, "--max-steps", "2"]
    )
    assert.strictEqual(ran.result.code, 4)
    assert.strictEqual(ran.json["terminal_reason"], "max_steps_exceeded")
    assert.strictEqual(ran.json["summary"], "I ran out of steps.")
    assertComplete(ran)
  })

  it("with the time used up in a model that says nothing: wall_time_exceeded, exit 4", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [stall()], [...checkArgs, "--wall-time", "1"])
    assert.strictEqual(ran.result.code, 4)
    assert.strictEqual(ran.json["terminal_reason"], "wall_time_exceeded")
    assertComplete(ran)
  })

  it("with more tokens than allowed: token_budget_exceeded, exit 4, the turn that crossed the line not executed", async () => {
    await using repo = addRepo()
    const expensive = turn({ toolCalls: [fix], usage: { input: 150, output: 10 } })
    await using ran = await execOn(
      repo,
      [expensive, says("never")],
      [...checkArgs, "--max-total-tokens", "100"]
    )
    assert.strictEqual(ran.result.code, 4)
    assert.strictEqual(ran.json["terminal_reason"], "token_budget_exceeded")
    assert.include(String(ran.json["error"]), "160")
    assert.notInclude(ran.eventTypes(), "tool.started")
  })

  it("with a key that is refused: provider_auth, after one request, the key in no file", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [status(401)], checkArgs, {
      cli: { env: { OPENAI_API_KEY: "sk-very-secret-0123456789" } }
    })
    assert.strictEqual(ran.result.code, 1)
    assert.strictEqual(ran.json["terminal_reason"], "provider_auth")
    assert.strictEqual(ran.server.calls.length, 1)
    assertComplete(ran)
    for (const key of ["request", "session", "events", "result"]) {
      assert.notInclude(ran.readArtifact(key), "sk-very-secret")
    }
    assert.notInclude(ran.result.stderr, "sk-very-secret")
  })

  it("with an endpoint that comes back at the fifth attempt: every wait is an event", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [status(500, wait), status(529, wait), page, status(503, wait), says("Recovered.")],
      checkArgs
    )
    assert.strictEqual(ran.result.code, 0, ran.result.stderr)
    assert.strictEqual(ran.eventTypes().filter((type) => type === "model.retry").length, 4)
    assert.notInclude(ran.result.stderr, "<html")
  })

  it("with an endpoint that stays broken: five attempts, then its kind, all artifacts there", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      Array.from({ length: 5 }, () => status(500, wait)),
      checkArgs
    )
    assert.strictEqual(ran.result.code, 1)
    assert.strictEqual(ran.json["terminal_reason"], "provider_provider")
    assert.strictEqual(ran.server.calls.length, 5)
    assertComplete(ran)
  })

  it("with an answer that is cut in the middle, retried without doubling what was kept", async () => {
    await using repo = addRepo()
    const whole = turn({ text: "All of it.", toolCalls: [fix] })
    await using ran = await execOn(repo, [cutAfter(400, whole), whole, says("Done.")], checkArgs)
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    const completed = ran.events().filter((event) => event["event_type"] === "model.completed")
    assert.strictEqual(completed.length, 2)
    assert.strictEqual(JSON.stringify(completed).split("All of it.").length - 1, 1)
  })

  it("on the model that the fallback went to", async () => {
    await using repo = addRepo()
    const quota = status(402)
    await using ran = await execOn(
      repo,
      [quota, calls(fix), says("Done.")],
      [...checkArgs, "--fallback-model", "openai-compatible/second"]
    )
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    const models = ran.server.calls.map((request) => JSON.parse(String(request.rawBody)).model)
    assert.deepStrictEqual(models, ["m", "second", "second"])
    assert.include(ran.eventTypes(), "model.fallback")
  })

  it("with --no-check: unverified counts as completed; through -p it does not", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [calls(fix), says("Done.")], ["--no-check"])
    assert.strictEqual(ran.result.code, 0, ran.result.stderr)
    assert.strictEqual(ran.json["terminal_reason"], "unverified")
    assert.strictEqual(ran.json["status"], "completed")
  })

  it("with a check whose program is not there: said before anything is asked", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [says("never")],
      ["--check", "no-such-program-here", "--unsafe-local-exec"]
    )
    assert.strictEqual(ran.result.code, 2)
    assert.match(ran.result.stderr, /no-such-program-here/)
    assert.strictEqual(ran.server.calls.length, 0)
  })

  it("with a check that runs no tests: could_not_verify", async () => {
    await using repo = addRepo()
    await using ran = await execOn(
      repo,
      [calls(fix), says("Done.")],
      ["--check", "node --test --test-name-pattern=none", "--unsafe-local-exec"]
    )
    assert.strictEqual(ran.result.code, 1)
    assert.strictEqual(ran.json["terminal_reason"], "could_not_verify", JSON.stringify(ran.json))
  })

  it("after an empty answer, which is asked for once more", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, [says(""), calls(fix), says("Done.")], checkArgs)
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.include(bodyOf(ran, 1), "empty-answer")
  })

  it("after a truncated answer, which is gone on with, for every provider", async () => {
    for (const provider of ["openai-compatible", "anthropic"] as const) {
      await using repo = addRepo()
      await using ran = await execOn(
        repo,
        [turn({ text: "I will", finish: "length" }), calls(fix), says("Done.")],
        checkArgs,
        { provider }
      )
      assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    }
  })
})
