import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { RunId } from "../../src/domain/Ids.ts"
import type { CheckOutcome } from "../../src/domain/Result.ts"
import type { Task } from "../../src/domain/Task.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel, type Script } from "../../src/layers/model/Scripted.ts"
import { layerTest, type CheckScript } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { run, type FinishedRun } from "../../src/programs/Run.ts"
import { Checks } from "../../src/services/Checks.ts"
import { RunStore, StoreError } from "../../src/services/RunStore.ts"
import { type OpenWorkspace, Workspaces } from "../../src/services/Workspace.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }
const run_id = Schema.decodeSync(RunId)("run-1")
const fix = {
  tool_calls: [
    { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
  ]
}

/** A check that runs until the run's time is up and is then ended, as the real ones are. */
const endless = Layer.succeed(
  Checks,
  Checks.of({
    run: (check, _place, { remaining_ms }) =>
      Effect.as(Effect.sleep(remaining_ms), {
        name: check.name,
        argv: check.argv,
        verdict: "could_not_verify",
        exit_code: 124,
        duration_seconds: remaining_ms / 1000,
        tests: null,
        reason: "the run's time was up",
        output: ""
      } satisfies CheckOutcome)
  })
)

interface World {
  readonly script: Script
  readonly task?: Partial<Task>
  readonly checks?: CheckScript
  readonly endless?: boolean
  readonly workspace?: (real: OpenWorkspace) => Partial<OpenWorkspace>
}

/** A world in memory, and the model that was asked in it. */
const makeWorld = Effect.fnUntraced(function* (options: World) {
  const memory = yield* makeMemoryWorkspace(files)
  const model = scriptedModel(options.script)
  const workspace = { ...memory.workspace, ...options.workspace?.(memory.workspace) }
  const layer = layerTest({ memory, files, models: [model], checks: options.checks ?? (() => ({})) }).pipe(
    Layer.provideMerge(Headless.layer),
    Layer.merge(Layer.succeed(Workspaces, Workspaces.of({ open: () => Effect.succeed(workspace) }))),
    (world) => (options.endless === true ? Layer.merge(world, endless) : world)
  )
  return { model, layer, task: { ...exampleTask, ...options.task } }
})

const eventsOf = Effect.gen(function* () {
  const store = yield* RunStore
  return (yield* store.show(run_id)).entries.map((entry) => entry.event)
})

const play = Effect.fnUntraced(function* (options: World) {
  const { layer, model, task } = yield* makeWorld(options)
  return yield* Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(run(task, { run_id }), { startImmediately: true })
    yield* TestClock.adjust("12 hours")
    const { result } = yield* Fiber.join(fiber)
    assert.isNull(yield* replayed(yield* recordingOf(run_id)))
    return { result, events: yield* eventsOf, requests: yield* model.requests }
  }).pipe(Effect.provide(layer))
})

const limits = (some: Partial<Task["limits"]>) => ({ limits: { ...exampleTask.limits, ...some } })

describe("when the run's time is up", () => {
  it.effect("a final check ends as timed out and is in the result; the run ends wall_time_exceeded", () =>
    Effect.gen(function* () {
      const task = limits({ wall_time_seconds: 60 })
      const { events, result } = yield* play({ script: [fix, { text: "Done." }], endless: true, task })
      assert.strictEqual(result.terminal_reason, "wall_time_exceeded")
      assert.deepStrictEqual(
        result.verification.map((outcome) => [outcome.name, outcome.exit_code]),
        [["check-1", 124]]
      )
      const started = events.filter((event) => event.event_type === "verification.started")
      assert.lengthOf(
        events.filter((event) => event.event_type === "verification.completed"),
        started.length
      )
      assert.deepStrictEqual(result.changed_files, ["src/add.js"])
    })
  )

  it.effect("so does one that the model asked for, and nobody is asked afterwards", () =>
    Effect.gen(function* () {
      const call = { tool_calls: [{ name: "run_check", arguments: { name: "check-1" } }] }
      const task = limits({ wall_time_seconds: 60 })
      const { events, requests, result } = yield* play({ script: [call, call], endless: true, task })
      assert.strictEqual(result.terminal_reason, "wall_time_exceeded")
      assert.lengthOf(requests, 1)
      assert.lengthOf(
        events.filter((event) => event.event_type === "model.requested"),
        1,
        "a request that is never sent is not announced"
      )
      assert.include(
        events.map((event) => event.event_type),
        "tool.completed"
      )
    })
  )

  it.effect("a preflight that it cut off proves no set-up problem", () =>
    Effect.gen(function* () {
      const { result } = yield* play({
        script: [{ text: "…", stall_after: 1 }],
        endless: true,
        task: { baseline: true, ...limits({ wall_time_seconds: 60 }) }
      })
      assert.strictEqual(result.terminal_reason, "wall_time_exceeded")
    })
  )
})

describe("what a run says of itself", () => {
  it.effect("a check that failed and passed on the same files is named", () =>
    Effect.gen(function* () {
      let runs = 0
      const { result } = yield* play({
        script: [fix, { text: "Done." }, { text: "It is done." }],
        checks: () => {
          runs += 1
          return runs === 1 ? { verdict: "failed", exit_code: 1, reason: "exit 1" } : {}
        }
      })
      assert.strictEqual(result.terminal_reason, "verified")
      assert.match(result.notes.join("\n"), /check-1 failed before on exactly these files/)
    })
  )

  it.effect("no summary is asked for when no token is left for it", () =>
    Effect.gen(function* () {
      const turn = { ...fix, usage: { input_tokens: 90, output_tokens: 10 } }
      const { requests, result } = yield* play({
        script: [turn, { text: "never" }],
        task: limits({ max_steps: 1, max_total_tokens: 100 })
      })
      assert.strictEqual(result.terminal_reason, "max_steps_exceeded")
      assert.lengthOf(requests, 1)
    })
  )

  it.effect("a place that cannot keep it is a refusal, before anything ran", () =>
    Effect.gen(function* () {
      const { layer, model, task } = yield* makeWorld({ script: [{ text: "never" }] })
      const full = new StoreError({ reason: "no_space", path: "/runs", message: "no space left" })
      const store = RunStore.of({
        create: () => Effect.fail(full),
        open: () => Effect.fail(full),
        fork: () => Effect.fail(full),
        entries: () => Stream.fail(full),
        unfinished: Effect.succeed(null),
        find: () => Effect.fail(full),
        list: () => Effect.succeed([]),
        show: () => Effect.fail(full)
      })
      const error = yield* run(task, { run_id }).pipe(
        Effect.provideService(RunStore, store),
        Effect.provide(layer),
        Effect.flip
      )
      assert.strictEqual(error._tag, "Refusal")
      assert.match(error.message, /no space left.*--run-root/)
      assert.lengthOf(yield* model.requests, 0)
    })
  )
})

describe("an interruption", () => {
  it.effect("while the patch is collected: the run says so and is not over", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const hanging = { handOver: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never) }
      const { layer, task } = yield* makeWorld({ script: [{ text: "Done." }], workspace: () => hanging })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(run(task, { run_id }), { startImmediately: true })
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual((yield* eventsOf).at(-1)?.event_type, "run.interrupted")
        assert.isNull(yield* replayed(yield* recordingOf(run_id)))
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("after the end: the run is announced all the same", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const heard: Array<FinishedRun> = []
      const announce = (finished: FinishedRun) =>
        Deferred.succeed(reached, undefined).pipe(
          Effect.andThen(Deferred.await(go)),
          Effect.andThen(Effect.sync(() => void heard.push(finished)))
        )
      const { layer, task } = yield* makeWorld({ script: [{ text: "Done." }] })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(run(task, { run_id, announce }), { startImmediately: true })
        yield* Deferred.await(reached)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(interrupting)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        assert.strictEqual((yield* eventsOf).at(-1)?.event_type, "run.ended")
        assert.isNull(yield* replayed(yield* recordingOf(run_id)))
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(
        heard.map(({ result }) => result.terminal_reason),
        ["no_changes"]
      )
    })
  )
})
