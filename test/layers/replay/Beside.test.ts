import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { isKnown } from "../../../src/domain/Event.ts"
import { modelError } from "../../../src/domain/ModelError.ts"
import type { RecordedEntry, Recording } from "../../../src/domain/Recording.ts"
import * as Headless from "../../../src/layers/approval/Headless.ts"
import { scriptedModel, type Script } from "../../../src/layers/model/Scripted.ts"
import { layerTest, passesWhen } from "../../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../../src/layers/workspace/Memory.ts"
import { recordingOf } from "../../../src/programs/Record.ts"
import { run } from "../../../src/programs/Run.ts"
import { WorkspaceError, Workspaces } from "../../../src/services/Workspace.ts"
import { replayed } from "../../support/replay.ts"
import { exampleTask } from "../../support/tasks.ts"
import { runId } from "../journal/support.ts"

// What is told beside the main part of a run, the opening of its workspace, takes its own time.

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }
const busy = modelError({ provider: "scripted", model: "scripted", kind: "overloaded", message: "busy" })
const fix = {
  tool_calls: [
    { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
  ]
}

const recorded = Effect.fnUntraced(function* (
  script: Script,
  opening: Effect.Effect<void, WorkspaceError> = Effect.void
) {
  const memory = yield* makeMemoryWorkspace(files)
  const world = layerTest({
    memory,
    files,
    models: [scriptedModel(script)],
    checks: passesWhen("src/add.js", "a + b")
  })
  const workspaces = Workspaces.of({ open: () => Effect.as(opening, memory.workspace) })
  return yield* Effect.gen(function* () {
    const fiber = yield* run(exampleTask, { run_id: runId("r-1") }).pipe(
      Effect.provideService(Workspaces, workspaces),
      Effect.forkChild({ startImmediately: true })
    )
    yield* TestClock.adjust("1 hour")
    yield* Fiber.join(fiber)
    return yield* recordingOf("r-1")
  }).pipe(Effect.provide(world.pipe(Layer.provideMerge(Headless.layer))))
})

const typesOf = ({ entries }: Recording) => entries.map(({ event }) => event.event_type)

describe("a workspace that opens beside the first request", () => {
  it.effect("and is there in the middle of a wait does not put the wait off", () =>
    Effect.gen(function* () {
      const recording = yield* recorded([busy, fix, { text: "Done." }], Effect.sleep("700 millis"))
      const types = typesOf(recording)
      const at = types.indexOf("workspace.prepared")
      assert.strictEqual(types[at - 1], "model.retry")
      const retry = recording.entries[at - 1]
      assert.isTrue(
        retry !== undefined &&
          isKnown(retry.event) &&
          retry.event.event_type === "model.retry" &&
          retry.event.data.delay_ms > Duration.toMillis("700 millis")
      )
      assert.isNull(yield* replayed(recording))
    })
  )

  it.effect("and cannot be made ends the run where it did, not before", () =>
    Effect.gen(function* () {
      const recording = yield* recorded(
        [busy, fix],
        Effect.andThen(
          Effect.sleep("1 minute"),
          Effect.fail(new WorkspaceError({ reason: "failed", message: "set-up failed" }))
        )
      )
      const types = typesOf(recording)
      assert.include(types, "tool.requested")
      assert.notInclude(types, "workspace.prepared")
      const heard: Array<RecordedEntry> = []
      assert.isNull(
        yield* replayed(recording, { onEvent: (entry) => Effect.sync(() => void heard.push(entry)) })
      )
      assert.strictEqual(heard.length, types.length)
    })
  )
})
