import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Layer, Path } from "effect"
import { TestClock } from "effect/testing"
import type { ApprovalDecision, RunEventType } from "../../src/domain/Event.ts"
import { modelError } from "../../src/domain/ModelError.ts"
import type { RecordedEntry } from "../../src/domain/Recording.ts"
import type { Task } from "../../src/domain/Task.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import * as MemoryFs from "../../src/layers/fs/Memory.ts"
import { scriptedModel, type Script, type ScriptedModel } from "../../src/layers/model/Scripted.ts"
import { layerApproval, layerRandom, layerTestOn, passesWhen } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { resume } from "../../src/programs/Resume.ts"
import { run } from "../../src/programs/Run.ts"
import { Approval } from "../../src/services/Approval.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { runId } from "../layers/journal/support.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }
const look = { tool_calls: [{ name: "read_file", arguments: { path: "src/add.js" } }] }
const fix = {
  tool_calls: [
    { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
  ]
}
const note = { tool_calls: [{ name: "create_file", arguments: { path: "NOTES.md", content: "notes\n" } }] }
const stall = { text: "…", stall_after: 0 }
const down = (model: string) =>
  modelError({ provider: "scripted", model, kind: "quota_exhausted", message: "used up" })

interface Process {
  readonly models: readonly [ScriptedModel, ...ReadonlyArray<ScriptedModel>]
  /** Nobody is there to answer when absent. */
  readonly answers?: ReadonlyArray<ApprovalDecision> | "silence"
}

const asked = (script: Script): Process => ({ models: [scriptedModel(script)] })

/** A disk and a workspace on which one process after the other works. */
const makeDisk = Effect.gen(function* () {
  const memory = yield* makeMemoryWorkspace(files)
  const { fileSystem } = MemoryFs.make()
  const platform = Layer.mergeAll(Layer.succeed(FileSystem.FileSystem, fileSystem), Path.layer, layerRandom)
  const reached = yield* Deferred.make<void>()
  const approvalOf = ({ answers }: Process) =>
    answers === undefined
      ? Headless.layer
      : answers === "silence"
        ? Layer.succeed(
            Approval,
            Approval.of({
              standing: ({ effect }) => (effect === "read" ? "allow_once" : null),
              ask: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
            })
          )
        : layerApproval(answers)
  const world = (process: Process) =>
    Layer.mergeAll(
      layerTestOn({ memory, files, models: process.models, checks: passesWhen("src/add.js", "a + b") }),
      approvalOf(process)
    ).pipe(Layer.provide(platform))
  /** Runs one process: to its end, or until it has nothing left to do but wait, and is interrupted there. */
  const live = <A, E>(
    process: Process,
    program: Effect.Effect<A, E, Layer.Success<ReturnType<typeof world>>>,
    cutOff: boolean
  ) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(program, { startImmediately: true })
      for (let n = 0; n < (cutOff ? 200 : 5000) && fiber.pollUnsafe() === undefined; n++) {
        yield* TestClock.adjust(cutOff ? "10 millis" : "10 seconds")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      if (fiber.pollUnsafe() === undefined && !cutOff) return yield* Effect.die("stuck")
      if (cutOff) return yield* Effect.as(Fiber.interrupt(fiber), null)
      return yield* Fiber.join(fiber)
    }).pipe(Effect.provide(world(process)))
  const onDisk = <A, E>(program: Effect.Effect<A, E, RunStore>) => Effect.provide(program, world(asked([])))
  return {
    begin: (process: Process, options: { readonly cutOff?: boolean; readonly task?: Partial<Task> } = {}) =>
      live(
        process,
        run({ ...exampleTask, ...options.task }, { run_id: runId("r-1") }),
        options.cutOff ?? false
      ),
    goOn: (
      process: Process,
      options: {
        readonly run?: string
        readonly instruction?: string
        readonly cutOff?: boolean
        readonly accept_loss?: boolean
      } = {}
    ) =>
      live(
        process,
        Effect.gen(function* () {
          const store = yield* RunStore
          const { directory } = yield* store.find(options.run ?? "r-1")
          const taken = yield* store.open(directory, { accept_loss: options.accept_loss ?? false })
          return yield* resume(taken, { instruction: options.instruction ?? null })
        }).pipe(Effect.scoped),
        options.cutOff ?? false
      ),
    fork: (run_id: string, sequence: number) =>
      onDisk(Effect.flatMap(RunStore, (store) => store.fork("r-1", { sequence, run_id: runId(run_id) }))),
    /** Takes the last lines away. */
    lose: (count: number) =>
      Effect.gen(function* () {
        const file = "/runs/r-1/events.jsonl"
        const lines = (yield* fileSystem.readFileString(file)).split("\n").slice(0, -1)
        yield* fileSystem.writeFileString(file, `${lines.slice(0, -count).join("\n")}\n`)
      }),
    /** The types of a run's events, which play again as they were recorded. */
    agreeing: (run_id = "r-1") =>
      Effect.gen(function* () {
        const recording = yield* onDisk(recordingOf(run_id))
        const heard: Array<RecordedEntry> = []
        const difference = yield* replayed(recording, {
          onEvent: (entry) => Effect.sync(() => void heard.push(entry))
        })
        assert.isNull(difference)
        const types = recording.entries.map(({ event }) => event.event_type)
        assert.deepStrictEqual(
          heard.map(({ event }) => event.event_type),
          types.filter((type) => type !== "run.forked")
        )
        return types
      })
  }
})

const count = (types: ReadonlyArray<string>, type: RunEventType) =>
  types.filter((each) => each === type).length

describe("a run of several processes plays again", () => {
  it.effect("that lost events and was given a follow-up task", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* disk.begin(asked([fix, { text: "Done." }]))
      yield* disk.lose(3)
      const follow = { accept_loss: true, instruction: "Add notes." }
      const finished = yield* disk.goOn(asked([note, { text: "Noted." }]), follow)
      assert.include(finished?.result.notes.join("\n") ?? "", "3 events were lost")
      const types = yield* disk.agreeing()
      assert.include(types, "session.continued")
    })
  )

  it.effect("that lost events and was gone on with, and lost them all but the first", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* disk.begin(asked([look, stall]), { cutOff: true })
      yield* disk.lose(4)
      yield* disk.goOn(asked([look, stall]), { accept_loss: true, cutOff: true })
      const types = yield* disk.agreeing()
      yield* disk.lose(types.length - 1)
      yield* disk.goOn(asked([fix, { text: "Done." }]), { accept_loss: true })
      assert.strictEqual(count(yield* disk.agreeing(), "session.resumed"), 1)
    })
  )

  it.effect("that was resumed twice, each time by another model, and then continued", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const other = (model: string, script: Script): Process => ({
        models: [scriptedModel(script, { model })]
      })
      yield* disk.begin(asked([look, stall]), { cutOff: true })
      yield* disk.goOn(other("second", [look, stall]), { cutOff: true })
      yield* disk.goOn(other("third", [fix, { text: "Done." }]))
      yield* disk.goOn(other("fourth", [note, { text: "Noted." }]), { instruction: "Add notes." })
      const types = yield* disk.agreeing()
      assert.strictEqual(count(types, "session.resumed"), 2)
      assert.strictEqual(count(types, "run.ended"), 2)
    })
  )

  it.effect("whose follow-up was cut off and gone on with", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* disk.begin(asked([fix, { text: "Done." }]))
      yield* disk.goOn(asked([note, stall]), { instruction: "Add notes.", cutOff: true })
      yield* disk.goOn(asked([{ text: "Noted." }]))
      assert.strictEqual(count(yield* disk.agreeing(), "run.ended"), 2)
    })
  )

  it.effect("that fell back, was cut off, and went on where it had fallen back to", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const models = (first: Script, second: Script): Process => ({
        models: [scriptedModel(first, { model: "first" }), scriptedModel(second, { model: "second" })]
      })
      yield* disk.begin(models([down("first")], [look, stall]), { cutOff: true })
      yield* disk.goOn(models([], [fix, { text: "Done." }]))
      yield* disk.goOn(models([], [down("second")]), { instruction: "Add notes." })
      const types = yield* disk.agreeing()
      assert.strictEqual(count(types, "model.fallback"), 1)
      assert.strictEqual(count(types, "model.failed"), 1)
    })
  )

  it.effect("that waited for an answer, which was abandoned", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* disk.begin({ ...asked([fix]), answers: "silence" }, { cutOff: true })
      yield* disk.goOn({ ...asked([fix, { text: "Done." }]), answers: ["allow_once", "allow_once"] })
      assert.strictEqual(count(yield* disk.agreeing(), "approval.abandoned"), 1)
    })
  )

  it.effect("whose time was up only when another process went on", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const task = { limits: { ...exampleTask.limits, wall_time_seconds: 60 } }
      yield* disk.begin(asked([look, stall]), { cutOff: true, task })
      const finished = yield* disk.goOn(asked([stall]))
      assert.strictEqual(finished?.result.terminal_reason, "wall_time_exceeded")
      yield* disk.agreeing()
    })
  )

  it.effect("that is a fork, in the middle and at the end, gone on with and continued", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* disk.begin(asked([fix, { text: "Done." }]))
      const types = yield* disk.agreeing()
      yield* disk.fork("r-2", types.indexOf("tool.completed"))
      yield* disk.goOn(asked([{ text: "Done." }]), { run: "r-2" })
      yield* disk.goOn(asked([note, { text: "Noted." }]), { run: "r-2", instruction: "Add notes." })
      yield* disk.agreeing("r-2")
      yield* disk.fork("r-3", types.length - 1)
      yield* disk.goOn(asked([note, { text: "Noted." }]), { run: "r-3", instruction: "Add notes." })
      assert.strictEqual(count(yield* disk.agreeing("r-3"), "run.ended"), 2)
    })
  )
})

describe("a fork plays again from any event of its source", () => {
  it.effect("when it is gone on with, with and without a task of its own", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* disk.begin(asked([look, fix, { text: "Done." }]), { task: { baseline: true } })
      const types = yield* disk.agreeing()
      const answers = Array.from({ length: 20 }, () => ({ text: "Done." }))
      for (const sequence of types.keys()) {
        const [resumed, continued] = [`r-${sequence}-a`, `r-${sequence}-b`]
        yield* disk.fork(resumed, sequence)
        yield* disk.goOn(asked([fix, ...answers]), { run: resumed })
        yield* disk.agreeing(resumed)
        yield* disk.fork(continued, sequence)
        yield* disk.goOn(asked([note, ...answers]), {
          run: continued,
          instruction: "Add notes."
        })
        yield* disk.agreeing(continued)
      }
    })
  )
})
