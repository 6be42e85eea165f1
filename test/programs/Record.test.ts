import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { isRecord, list } from "../../src/domain/Json.ts"
import { differingPlaces, portablePaths, type Recording } from "../../src/domain/Recording.ts"
import type { Task } from "../../src/domain/Task.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel } from "../../src/layers/model/Scripted.ts"
import { layerTest, passesWhen } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { loadRecording, recordingFile, recordingOf } from "../../src/programs/Record.ts"
import { run } from "../../src/programs/Run.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { runId } from "../layers/journal/support.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }
const script = [
  {
    tool_calls: [
      { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
    ]
  },
  { text: "It subtracted." }
]

/** A run in memory, and what the store knows of it. */
const recorded = Effect.fnUntraced(function* (task: Partial<Task> = {}) {
  const memory = yield* makeMemoryWorkspace(files)
  const world = layerTest({
    memory,
    files,
    models: [scriptedModel(script)],
    checks: passesWhen("src/add.js", "a + b")
  })
  return yield* Effect.gen(function* () {
    yield* run({ ...exampleTask, ...task }, { run_id: runId("r-1") })
    const store = yield* RunStore
    return {
      recording: yield* recordingOf("r-1"),
      shown: yield* store.show("r-1"),
      nobody: yield* Effect.exit(recordingOf("nobody"))
    }
  }).pipe(Effect.provide(world.pipe(Layer.provideMerge(Headless.layer))))
})

const fileOf = (recording: Recording) =>
  Effect.map(recordingFile(recording), (file) => (isRecord(file) ? file : {}))

describe("recordingOf", () => {
  it.effect("is the request and every event of a run", () =>
    Effect.gen(function* () {
      const { nobody, recording, shown } = yield* recorded()
      assert.strictEqual(recording.run_id, "r-1")
      assert.deepStrictEqual(recording.request, shown.request)
      assert.deepStrictEqual(
        recording.entries.map(({ event }) => event),
        shown.entries.map(({ event }) => event)
      )
      assert.isTrue(Exit.isFailure(nobody))
    })
  )
})

describe("a portable recording", () => {
  it.effect("comes back as it was, but for the places of its machine, and agrees with itself", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded({
        repository: "/home/somebody/app",
        instruction: "Fix add in /home/somebody/app.",
        dependencies: { mode: "path", path: "/home/somebody/deps" }
      })
      const file = yield* fileOf(recording)
      const loaded = yield* loadRecording(JSON.stringify(file))
      assert.deepStrictEqual(yield* loadRecording(file), loaded)
      assert.deepStrictEqual(
        differingPlaces(recording, loaded).map(({ path, played }) => [path, played]),
        [
          ["request.task.dependencies.path", portablePaths.dependencies],
          ["request.task.repository", portablePaths.repository]
        ]
      )
      assert.strictEqual(loaded.request.task.instruction, "Fix add in /home/somebody/app.")
      assert.isNull(yield* replayed(loaded))
    })
  )

  it.effect("keeps events of a later version", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded()
      const file = yield* fileOf(recording)
      const last = list(file["entries"]).length
      const moon = {
        sequence: last,
        created_at: "2026-11-29T10:00:00.000Z",
        event: { event_type: "moon.landed", data: { any: ["thing"] } }
      }
      const loaded = yield* loadRecording({ ...file, entries: [...list(file["entries"]), moon] })
      assert.deepStrictEqual(loaded.entries.at(-1), moon)
    })
  )

  it.effect("is refused when it is none", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded()
      const file = yield* fileOf(recording)
      const [first, second, ...rest] = list(file["entries"])
      const changed = (part: object) => [{ ...(isRecord(first) ? first : {}), ...part }, second, ...rest]
      const bad: ReadonlyArray<readonly [string, unknown]> = [
        ["no JSON", "{"],
        ["another format", { ...file, format: "else" }],
        ["a later version", { ...file, version: 2 }],
        ["no events", { ...file, entries: [] }],
        ["a gap", { ...file, entries: [first, ...rest] }],
        ["another order", { ...file, entries: [second, first, ...rest] }],
        ["no time", { ...file, entries: changed({ created_at: "yesterday" }) }],
        [
          "an event that does not fit",
          { ...file, entries: changed({ event: { event_type: "run.created", data: {} } }) }
        ],
        ["no request", { ...file, request: {} }]
      ]
      for (const [what, value] of bad) {
        const exit = yield* Effect.exit(loadRecording(value))
        assert.isTrue(Exit.isFailure(exit), what)
      }
    })
  )
})
