import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { isKnown, type RunEvent, type RunEventType } from "../../src/domain/Event.ts"
import { modelError } from "../../src/domain/ModelError.ts"
import type { RecordedEntry } from "../../src/domain/Recording.ts"
import { initial, reduce, type RunState } from "../../src/domain/Run.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel, type Script } from "../../src/layers/model/Scripted.ts"
import { layerTest, passesWhen } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { RetryPolicy } from "../../src/programs/policies/Retry.ts"
import { run } from "../../src/programs/Run.ts"
import { runId } from "../layers/journal/support.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "README.md": "# add\n", "src/add.js": "export const add = (a, b) => a - b\n" }
const edit = (from: string, to: string) => ({
  name: "replace_text",
  arguments: { path: "src/add.js", old_text: from, new_text: to }
})
const busy = modelError({ provider: "scripted", model: "scripted", kind: "overloaded", message: "busy" })
const story: Script = [
  {
    tool_calls: [
      { name: "read_file", arguments: { path: "src/add.js" } },
      { name: "run_check", arguments: { name: "check-1" } }
    ]
  },
  busy,
  { tool_calls: [edit("a - b", "a * b")] },
  { text: "Done." },
  busy,
  busy,
  { tool_calls: [edit("a * b", "a + b")] },
  { text: "It subtracted." }
]

/** A run in memory, as its journal holds it: retries, a failing check, a second attempt, and a preflight beside them. */
const recorded = Effect.gen(function* () {
  const memory = yield* makeMemoryWorkspace(files)
  const world = layerTest({
    memory,
    files,
    models: [scriptedModel(story)],
    checks: passesWhen("src/add.js", "a + b")
  })
  return yield* Effect.gen(function* () {
    const fiber = yield* run({ ...exampleTask, baseline: true }, { run_id: runId("r-1") }).pipe(
      Effect.forkChild({ startImmediately: true })
    )
    yield* TestClock.adjust("1 hour")
    yield* Fiber.join(fiber)
    return yield* recordingOf("r-1")
  }).pipe(Effect.provide(world.pipe(Layer.provideMerge(Headless.layer))))
})

/** Another outcome for the first event of a type. */
const instead = (type: RunEventType, change: (event: RunEvent) => RunEvent | null) => {
  let done = false
  return ({ event }: RecordedEntry): RunEvent | null => {
    if (done || event.event_type !== type) return null
    const changed = isKnown(event) ? change(event) : null
    done = changed !== null
    return changed
  }
}

describe("replay", () => {
  it.effect("plays a whole run again, agrees in every event, and a host hears the state of each", () =>
    Effect.gen(function* () {
      const recording = yield* recorded
      const heard: Array<readonly [number, RunState]> = []
      assert.isNull(
        yield* replayed(recording, {
          onEvent: ({ sequence }, state) => Effect.sync(() => void heard.push([sequence, state]))
        })
      )
      assert.deepStrictEqual(
        heard.map(([sequence]) => sequence),
        recording.entries.map((entry) => entry.sequence)
      )
      const folded = recording.entries.reduce(
        (state, { event }) => (isKnown(event) ? reduce(state, event) : state),
        initial
      )
      assert.deepStrictEqual(heard.at(-1)?.[1], folded)
    })
  )

  it.effect("stops at the turn that another byte of an answer makes", () =>
    Effect.gen(function* () {
      const recording = yield* recorded
      const substitute = instead("model.exchanged", (event) =>
        event.event_type === "model.exchanged"
          ? {
              ...event,
              data: {
                ...event.data,
                exchange: {
                  ...event.data.exchange,
                  body: {
                    encoding: "utf8",
                    text: event.data.exchange.body.text.replace("src/add.js", "src/odd.js")
                  }
                }
              }
            }
          : null
      )
      const difference = yield* replayed(recording, { substitute })
      assert.strictEqual(difference?.recorded?.event_type, "model.completed")
      assert.include(JSON.stringify(difference?.played), "src/odd.js")
    })
  )

  it.effect("stops at the next request when a tool had said something else", () =>
    Effect.gen(function* () {
      const recording = yield* recorded
      const substitute = instead("tool.completed", (event) =>
        event.event_type === "tool.completed"
          ? { ...event, data: { ...event.data, content: "another file" } }
          : null
      )
      const difference = yield* replayed(recording, { substitute })
      assert.strictEqual(difference?.recorded?.event_type, "model.exchanged")
      assert.strictEqual(difference?.played?.event_type, "model.exchanged")
    })
  )

  it.effect("stops at the first wait of another retry policy", () =>
    Effect.gen(function* () {
      const recording = yield* recorded
      const slower = { maxAttempts: 5, baseDelay: Duration.seconds(2), maxDelay: Duration.seconds(30) }
      const difference = yield* replayed(recording).pipe(Effect.provideService(RetryPolicy, slower))
      assert.strictEqual(difference?.recorded?.event_type, "model.retry")
      const none = { maxAttempts: 1, baseDelay: Duration.seconds(1), maxDelay: Duration.seconds(30) }
      const gaveUp = yield* replayed(recording).pipe(Effect.provideService(RetryPolicy, none))
      assert.strictEqual(gaveUp?.recorded?.event_type, "model.retry")
      assert.strictEqual(gaveUp?.played?.event_type, "model.failed")
    })
  )

  it.effect("says so when the recording goes on and the run does not", () =>
    Effect.gen(function* () {
      const recording = yield* recorded
      const verdict = instead("verification.completed", (event) =>
        event.event_type === "verification.completed" && event.data.purpose === "final"
          ? { ...event, data: { ...event.data, outcome: { ...event.data.outcome, verdict: "passed" } } }
          : null
      )
      const difference = yield* replayed(recording, { substitute: verdict })
      assert.strictEqual(difference?.recorded?.event_type, "verification.settled")
    })
  )
})
