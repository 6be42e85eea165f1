/**
 * A recorded run as a test. The run is recorded here, in memory and with a scripted model, so that the example runs
 * anywhere; one of your own is a file: `looplane bundle RUN --as-fixture -o run.json`, then `loadRecording`.
 *
 *   node examples/replay-test/main.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { Event, Ids, type Recording, run, Task } from "looplane"
import { ApprovalHeadless } from "looplane/layers"
import {
  layerReplay,
  layerTest,
  makeMemoryWorkspace,
  passesWhen,
  recordingOf,
  replay,
  type ReplayOptions,
  scriptedModel,
  testCommit
} from "looplane/testing"

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }

/** What the model says, turn by turn. */
const script = [
  { tool_calls: [{ name: "read_file", arguments: { path: "src/add.js" } }] },
  {
    tool_calls: [
      { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
    ]
  },
  { text: "It subtracted." }
]

const task = Schema.decodeEffect(Task.Task)({
  instruction: "Fix add().",
  repository: "/repo",
  subdirectory: "",
  base: { kind: "commit", commit: testCommit },
  allowed_paths: ["**"],
  verification: {
    mode: "checks",
    checks: [{ name: "check-1", argv: ["node", "--test"], timeout_seconds: 60 }]
  },
  limits: Task.defaultLimits,
  dependencies: { mode: "none" },
  setup: [],
  include: [],
  baseline: false
})

/** A whole run without a disk, a process or a network, and what its journal holds of it. */
const record = Effect.gen(function* () {
  const memory = yield* makeMemoryWorkspace(files)
  const world = layerTest({
    memory,
    files,
    models: [scriptedModel(script)],
    checks: passesWhen("src/add.js", "a + b")
  })
  return yield* Effect.gen(function* () {
    const run_id = yield* Schema.decodeEffect(Ids.RunId)("recorded-1")
    const { result } = yield* run(yield* task, { run_id })
    yield* Console.log(`recorded: ${result.terminal_reason}`)
    return yield* recordingOf(run_id)
  }).pipe(Effect.provide(world.pipe(Layer.provideMerge(ApprovalHeadless.layer))))
})

/** Where the whole program, played again, leaves the recording; null when it does not. */
const played = (recording: Recording.Recording, options: ReplayOptions) =>
  replay.pipe(Effect.provide(layerReplay(recording, options)))

const program = Effect.gen(function* () {
  const recording = yield* record

  // As it was: every event agrees, and the host hears each with the state that it made.
  const agrees = yield* played(recording, {
    onEvent: ({ event, sequence }, state) =>
      event.event_type === "tool.completed"
        ? Console.log(
            `${sequence} ${event.event_type}: step ${state.step}, ${state.pending.length} calls open`
          )
        : Effect.void
  })
  yield* Console.log(agrees === null ? "replayed: it agrees" : "replayed: it differs")

  // What if the first tool had said something else? The next request would not be the one that was sent.
  const at = recording.entries.findIndex(({ event }) => event.event_type === "tool.completed")
  const differs = yield* played(recording, {
    substitute: ({ event, sequence }) =>
      sequence === at && Event.isKnown(event) && event.event_type === "tool.completed"
        ? { ...event, data: { ...event.data, content: "export const add = (a, b) => a * b\n" } }
        : null
  })
  yield* Console.log(
    differs === null
      ? `with another outcome at ${at}: it agrees`
      : `with another outcome at ${at}: it differs from ${differs.sequence} on (${differs.recorded?.event_type ?? "nothing"})`
  )
})

await Effect.runPromise(program)
