import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, FileSystem, Layer, Random, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { ApprovalDecision } from "../../src/domain/Event.ts"
import { RunId } from "../../src/domain/Ids.ts"
import { modelError } from "../../src/domain/ModelError.ts"
import type { RunResult } from "../../src/domain/Result.ts"
import type { Task } from "../../src/domain/Task.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel, type Script, type ScriptedModel } from "../../src/layers/model/Scripted.ts"
import { layerApproval, layerTest, passesWhen, type CheckScript } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { run } from "../../src/programs/Run.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { WorkspaceError, Workspaces } from "../../src/services/Workspace.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "README.md": "# add\n", "src/add.js": "export const add = (a, b) => a - b\n" }
const fixed = passesWhen("src/add.js", "a + b")
const edit = (from: string, to: string) => ({
  name: "replace_text",
  arguments: { path: "src/add.js", old_text: from, new_text: to }
})
const fix = { tool_calls: [edit("a - b", "a + b")] }
const read = (path: string) => ({ tool_calls: [{ name: "read_file", arguments: { path } }] })
const run_id = Schema.decodeSync(RunId)("run-1")

interface Options {
  readonly models?: readonly [ScriptedModel, ...ReadonlyArray<ScriptedModel>]
  readonly task?: Partial<Task>
  readonly checks?: CheckScript
  readonly answers?: ReadonlyArray<ApprovalDecision>
}

/** Runs a task in memory; virtual time goes on for half a day if somebody waits for it. */
const play = Effect.fnUntraced(function* (script: Script, options: Options = {}) {
  const memory = yield* makeMemoryWorkspace(files)
  const model = options.models?.[0] ?? scriptedModel(script)
  const task = { ...exampleTask, ...options.task }
  const world = layerTest({
    memory,
    files,
    models: options.models ?? [model],
    checks: options.checks ?? fixed
  })
  return yield* Effect.gen(function* () {
    const store = yield* RunStore
    const fs = yield* FileSystem.FileSystem
    const fiber = yield* run(task, { run_id }).pipe(
      Random.withSeed("run"),
      Effect.forkChild({ startImmediately: true })
    )
    yield* TestClock.adjust("12 hours")
    const { directory, result } = yield* Fiber.join(fiber)
    const shown = yield* store.show(run_id)
    // Whatever a run did, its recording says all of it.
    assert.isNull(yield* replayed(yield* recordingOf(run_id)))
    const events = shown.entries.map((entry) => entry.event)
    return {
      result,
      model,
      events,
      types: events.map((event) => event.event_type),
      missing: shown.missing,
      requests: yield* model.requests,
      file: (name: string) => fs.readFileString(`${directory}/${name}`)
    }
  }).pipe(
    Effect.provide(
      world.pipe(
        Layer.provideMerge(options.answers === undefined ? Headless.layer : layerApproval(options.answers))
      )
    )
  )
})

const limits = (some: Partial<Task["limits"]>) => ({ task: { limits: { ...exampleTask.limits, ...some } } })
const outcome = (result: RunResult) => [result.status, result.terminal_reason]

describe("run", () => {
  it.effect("turns a task into a verified patch and leaves a complete bundle", () =>
    Effect.gen(function* () {
      const played = yield* play([read("src/add.js"), fix, { text: "It subtracted." }])
      assert.deepStrictEqual(outcome(played.result), ["completed", "verified"])
      assert.deepStrictEqual(played.result.changed_files, ["src/add.js"])
      assert.strictEqual(played.result.summary, "It subtracted.")
      assert.deepStrictEqual(played.missing, [])
      assert.include(yield* played.file("changes.patch"), "+export const add = (a, b) => a + b")
      assert.strictEqual(played.types[0], "run.created")
      assert.strictEqual(played.types.at(-1), "run.ended")
      assert.deepStrictEqual(
        played.types.filter((type) => type.startsWith("verification.")),
        ["verification.started", "verification.completed", "verification.settled"]
      )
    })
  )

  it.effect("never calls a run verified because the model says so", () =>
    Effect.gen(function* () {
      const played = yield* play([
        { tool_calls: [edit("a - b", "a * b")] },
        { text: "All tests pass, verified!" },
        { text: "Really: verified." }
      ])
      assert.deepStrictEqual(outcome(played.result), ["failed", "checks_failed"])
      const feedback = played.requests.at(-1)?.conversation.at(-1)
      assert.strictEqual(feedback?.role, "context")
    })
  )

  it.effect("asks each tool call to be answered once, in call order, whatever the model asked for", () =>
    Effect.gen(function* () {
      const played = yield* play([
        {
          tool_calls: [
            { name: "read_file", arguments: { path: "README.md" } },
            { name: "no_such_tool", arguments: {} },
            { name: "read_file", arguments: { path: "src/add.js" } },
            { name: "replace_text", invalid_arguments: "{oops" },
            { name: "replace_text", arguments: { path: "src/add.js" } }
          ]
        },
        { text: "Sorry." }
      ])
      const conversation = played.requests[1]?.conversation ?? []
      const asked = conversation.flatMap((item) =>
        item.role === "assistant" ? item.tool_calls.map((call) => call.id) : []
      )
      const answered = conversation.flatMap((item) => (item.role === "tool" ? [item] : []))
      assert.deepStrictEqual(
        answered.map((item) => item.tool_call_id),
        asked
      )
      assert.deepStrictEqual(
        answered.map((item) => item.ok),
        [true, false, true, false, false]
      )
      assert.include(answered[1]?.content, "replace_text")
      assert.include(answered[4]?.content, "old_text")
      assert.deepStrictEqual(outcome(played.result), ["completed", "no_changes"])
    })
  )

  it.effect("runs two identical calls and ends on the third, also inside one batch", () =>
    Effect.gen(function* () {
      const again = { name: "read_file", arguments: { path: "README.md" } }
      const played = yield* play([{ tool_calls: [again, again, again] }, { text: "never" }])
      assert.deepStrictEqual(outcome(played.result), ["failed", "repeated_action"])
      assert.strictEqual(played.types.filter((type) => type === "tool.completed").length, 2)
      assert.strictEqual(played.requests.length, 1)
      assert.deepStrictEqual(played.missing, [])
    })
  )

  it.effect("nudges a model that only reads, once every four steps", () =>
    Effect.gen(function* () {
      const paths = ["README.md", "src/add.js", "README.md", "src", "."]
      const played = yield* play([
        ...paths.map((path) => ({
          tool_calls: [
            { name: path.includes(".") && path !== "." ? "read_file" : "list_files", arguments: { path } }
          ]
        })),
        { text: "Nothing to do." }
      ])
      assert.strictEqual(played.types.filter((type) => type === "loop.read_only_stall_nudge").length, 1)
    })
  )

  it.effect("stops at the step cap after one last turn without tools", () =>
    Effect.gen(function* () {
      const played = yield* play(
        [read("README.md"), read("src/add.js"), { text: "I ran out." }],
        limits({ max_steps: 2 })
      )
      assert.deepStrictEqual(outcome(played.result), ["failed", "max_steps_exceeded"])
      assert.strictEqual(played.result.summary, "I ran out.")
      assert.deepStrictEqual(played.requests.at(-1)?.tools, [])
      assert.deepStrictEqual(
        played.result.model_usage.map((usage) => usage.lane),
        ["primary", "wind_down"]
      )
    })
  )

  it.effect("stops exactly when the time is used up, in the middle of a stream", () =>
    Effect.gen(function* () {
      const played = yield* play(
        [{ text: "I am thinking", stall_after: 1 }],
        limits({ wall_time_seconds: 90 })
      )
      assert.deepStrictEqual(outcome(played.result), ["failed", "wall_time_exceeded"])
      assert.deepStrictEqual(played.missing, [])
      assert.notInclude(played.types, "model.completed")
    })
  )

  it.effect("drops the turn that crosses the token cap; reaching it exactly is allowed", () =>
    Effect.gen(function* () {
      const turn = { ...fix, usage: { input_tokens: 90, output_tokens: 10 } }
      const over = yield* play([turn, { text: "never" }], limits({ max_total_tokens: 99 }))
      assert.deepStrictEqual(outcome(over.result), ["failed", "token_budget_exceeded"])
      assert.notInclude(over.types, "tool.started")
      const exact = yield* play([turn, { text: "Done." }], limits({ max_total_tokens: 100 }))
      assert.deepStrictEqual(outcome(exact.result), ["completed", "verified"])
    })
  )

  it.effect("retries a broken stream without keeping its half answer", () =>
    Effect.gen(function* () {
      const played = yield* play([{ text: "I will fix it", break_after: 1 }, fix, { text: "Done." }])
      assert.deepStrictEqual(outcome(played.result), ["completed", "verified"])
      assert.strictEqual(played.types.filter((type) => type === "model.retry").length, 1)
      assert.notInclude(JSON.stringify(played.requests.at(-1)), "I will fix it")
    })
  )

  it.effect("falls back for good, and says why", () =>
    Effect.gen(function* () {
      const down = modelError({ provider: "scripted", model: "a", kind: "overloaded", message: "busy" })
      const first = scriptedModel([down, down, down, down, down], { model: "a" })
      const second = scriptedModel([fix, { text: "Done." }], { model: "b" })
      const played = yield* play([], { models: [first, second] })
      assert.deepStrictEqual(outcome(played.result), ["completed", "verified"])
      assert.strictEqual((yield* first.requests).length, 5)
      assert.strictEqual((yield* second.requests).length, 2)
      assert.strictEqual(played.types.filter((type) => type === "model.fallback").length, 1)
    })
  )

  it.effect("ends with the provider's kind when nobody answers", () =>
    Effect.gen(function* () {
      const denied = modelError({ provider: "scripted", model: "m", kind: "auth", message: "bad key" })
      const played = yield* play([denied])
      assert.deepStrictEqual(outcome(played.result), ["failed", "provider_auth"])
      assert.strictEqual(played.requests.length, 1)
      assert.deepStrictEqual(played.missing, [])
    })
  )

  it.effect("asks once more after an empty answer, and goes on after a cut one", () =>
    Effect.gen(function* () {
      const empty = yield* play([{ text: "" }, fix, { text: "Done." }])
      assert.deepStrictEqual(outcome(empty.result), ["completed", "verified"])
      const twice = yield* play([{ text: "" }, { text: "" }])
      assert.deepStrictEqual(outcome(twice.result), ["completed", "no_changes"])
      const cut = yield* play([{ text: "I", finish_reason: "length" }, fix, { text: "Done." }])
      assert.deepStrictEqual(outcome(cut.result), ["completed", "verified"])
    })
  )

  it.effect("believes calls, not the finish reason", () =>
    Effect.gen(function* () {
      const played = yield* play([
        { ...fix, finish_reason: "stop" },
        { text: "Done.", finish_reason: "tool_use" }
      ])
      assert.deepStrictEqual(outcome(played.result), ["completed", "verified"])
    })
  )

  it.effect("takes a refusal as the end, not as an answer", () =>
    Effect.gen(function* () {
      const played = yield* play([{ text: "", refusal: "I can't.", finish_reason: "refusal" }])
      assert.deepStrictEqual(outcome(played.result), ["failed", "refused"])
      assert.strictEqual(played.result.summary, "I can't.")
    })
  )

  it.effect("without checks: unverified, completed only when they were waived", () =>
    Effect.gen(function* () {
      const waived = yield* play([fix, { text: "Done." }], { task: { verification: { mode: "waived" } } })
      assert.deepStrictEqual(outcome(waived.result), ["completed", "unverified"])
      const undeclared = yield* play([fix, { text: "Done." }], {
        task: { verification: { mode: "undeclared" } }
      })
      assert.deepStrictEqual(outcome(undeclared.result), ["failed", "unverified"])
    })
  )

  it.effect("verifies nothing with git diff --check alone; beside a real check it counts", () =>
    Effect.gen(function* () {
      const form = { name: "form", argv: ["git", "diff", "--check"], timeout_seconds: 60 } as const
      const real = { name: "tests", argv: ["node", "--test"], timeout_seconds: 60 } as const
      const alone = yield* play([fix, { text: "Done." }], {
        task: { verification: { mode: "checks", checks: [form] } }
      })
      assert.deepStrictEqual(outcome(alone.result), ["failed", "could_not_verify"])
      const both = yield* play([fix, { text: "Done." }], {
        task: { verification: { mode: "checks", checks: [form, real] } }
      })
      assert.deepStrictEqual(outcome(both.result), ["completed", "verified"])
    })
  )

  it.effect("ends when a set-up problem shows that nothing can be verified here", () =>
    Effect.gen(function* () {
      const played = yield* play([{ text: "…", stall_after: 1 }], {
        task: { baseline: true },
        checks: () => ({
          verdict: "could_not_verify",
          exit_code: 127,
          tests: null,
          reason: "vitest is not installed"
        })
      })
      assert.deepStrictEqual(outcome(played.result), ["failed", "could_not_verify"])
      assert.include(played.result.error, "vitest is not installed")
    })
  )

  it.effect("ends at once when the workspace cannot be made, also while the model is still thinking", () =>
    Effect.gen(function* () {
      const memory = yield* makeMemoryWorkspace(files)
      const model = scriptedModel([{ text: "…", stall_after: 1 }])
      const broken = Layer.succeed(
        Workspaces,
        Workspaces.of({
          open: () => Effect.fail(new WorkspaceError({ reason: "setup_failed", message: "npm ci failed" }))
        })
      )
      const { result } = yield* run(exampleTask, { run_id }).pipe(
        Effect.provide(
          layerTest({ memory, files, models: [model], checks: fixed }).pipe(
            Layer.provideMerge(Headless.layer),
            Layer.merge(broken)
          )
        )
      )
      assert.deepStrictEqual(outcome(result), ["failed", "workspace_failed"])
      assert.strictEqual(result.error, "npm ci failed")
      assert.deepStrictEqual(result.changed_files, [])
    })
  )

  it.effect("asks before it acts, the request durable first, and takes no for an answer", () =>
    Effect.gen(function* () {
      const played = yield* play([fix, { text: "I may not." }], { answers: ["deny"] })
      assert.deepStrictEqual(outcome(played.result), ["completed", "no_changes"])
      const asked = played.types.indexOf("approval.requested")
      assert.strictEqual(played.types[asked + 1], "approval.resolved")
      assert.notInclude(played.types, "tool.started")
      const cancelled = yield* play([fix, { text: "never" }], { answers: ["cancel"] })
      assert.deepStrictEqual(outcome(cancelled.result), ["cancelled", "approval_cancelled"])
      const nobody = yield* play([fix, { text: "never" }], { answers: [] })
      assert.deepStrictEqual(outcome(nobody.result), ["failed", "approval_unavailable"])
    })
  )

  it.effect("refuses a patch outside the allowed paths, whoever wrote it", () =>
    Effect.gen(function* () {
      const played = yield* play([fix, { text: "Done." }], { task: { allowed_paths: ["docs"] } })
      assert.deepStrictEqual(outcome(played.result), ["completed", "no_changes"])
      assert.isTrue(
        played.events.some(
          (event) => event.event_type === "tool.completed" && JSON.stringify(event.data).includes("allowed")
        )
      )
    })
  )

  it.effect("interrupted, says so and is not over: no result, no terminal event", () =>
    Effect.gen(function* () {
      const memory = yield* makeMemoryWorkspace(files)
      const reached = yield* Deferred.make<void>()
      const model = scriptedModel([
        { text: "wait", gate: Deferred.succeed(reached, undefined).pipe(Effect.andThen(Effect.never)) }
      ])
      yield* Effect.gen(function* () {
        const store = yield* RunStore
        const fiber = yield* run(exampleTask, { run_id }).pipe(Effect.forkChild({ startImmediately: true }))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        const shown = yield* store.show(run_id)
        // Whatever a run did, its recording says all of it.
        assert.isNull(yield* replayed(yield* recordingOf(run_id)))
        assert.strictEqual(shown.entries.at(-1)?.event.event_type, "run.interrupted")
        assert.include(shown.missing, "result.json")
        assert.isNull(shown.result)
      }).pipe(
        Effect.provide(
          layerTest({ memory, files, models: [model], checks: fixed }).pipe(
            Layer.provideMerge(Headless.layer)
          )
        )
      )
    })
  )
})
