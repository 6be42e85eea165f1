import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ApprovalDecision } from "../../src/domain/Event.ts"
import { modelError, ModelErrorKind } from "../../src/domain/ModelError.ts"
import type { TerminalReason } from "../../src/domain/Result.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel, type Script } from "../../src/layers/model/Scripted.ts"
import { layerApproval, layerTest, passesWhen } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { run } from "../../src/programs/Run.ts"
import { Approval } from "../../src/services/Approval.ts"
import { Checks } from "../../src/services/Checks.ts"
import { Git, GitError } from "../../src/services/Git.ts"
import type { Model } from "../../src/services/Model.ts"
import { type OpenWorkspace, WorkspaceError, Workspaces } from "../../src/services/Workspace.ts"
import { runId } from "../layers/journal/support.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

// Whatever goes wrong in a run, and whenever: its recording plays again, without what went wrong.

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }
const edit = (from: string, to: string) => ({
  name: "replace_text",
  arguments: { path: "src/add.js", old_text: from, new_text: to }
})
const story: Script = [
  { tool_calls: [{ name: "read_file", arguments: { path: "src/add.js" } }, edit("a - b", "a * b")] },
  { tool_calls: [{ name: "run_check", arguments: { name: "check-1" } }] },
  { text: "Done." },
  { tool_calls: [edit("a * b", "a + b")] },
  { text: "It subtracted." }
]

type Blow = "fail" | "die" | "hang"
type Place =
  | "git"
  | "open"
  | "read"
  | "apply"
  | "scan"
  | "handOver"
  | "unrecorded"
  | "materialise"
  | "check"
  | "model"
  | "approval"

interface Fault {
  readonly place: Place
  readonly blow: Blow
  /** The how-manieth use of the place it strikes, from 1; every later one, too, when it is lasting. */
  readonly at: number
  readonly lasting: boolean
}

const makeStrike = ({ at, blow, lasting, place }: Fault) => {
  let count = 0
  let struck = false
  return {
    struck: () => struck,
    strike: <A, E, R, F>(here: Place, effect: Effect.Effect<A, E, R>, failure: F) =>
      Effect.suspend((): Effect.Effect<A, E | F, R> => {
        if (here !== place) return effect
        count += 1
        if (lasting ? count < at : count !== at) return effect
        struck = true
        if (blow === "die") return Effect.die(`${place} is broken`)
        return blow === "fail" ? Effect.fail(failure) : Effect.never
      })
  }
}

/** How a run ends that is hit so; null when it was over before. */
const endingOf = Effect.fnUntraced(function* (fault: Fault) {
  const { strike, struck } = makeStrike(fault)
  const memory = yield* makeMemoryWorkspace(files)
  const failed = new WorkspaceError({ reason: "failed", message: `${fault.place} went wrong` })
  const real = memory.workspace
  const workspace: OpenWorkspace = {
    ...real,
    read: (...args) => strike("read", real.read(...args), failed),
    apply: (...args) => strike("apply", real.apply(...args), failed),
    scan: strike("scan", real.scan, failed),
    handOver: (...args) => strike("handOver", real.handOver(...args), failed),
    unrecorded: strike("unrecorded", real.unrecorded, failed),
    materialise: (...args) => strike("materialise", real.materialise(...args), failed)
  }
  const scripted = scriptedModel(story)
  const model: Model = {
    ...scripted,
    stream: (request) =>
      Stream.unwrap(Effect.orDie(strike("model", Effect.succeed(scripted.stream(request)), failed)))
  }
  const world = layerTest({ memory, files, models: [model], checks: passesWhen("src/add.js", "a + b") }).pipe(
    Layer.provideMerge(
      fault.place === "approval" ? layerApproval(["allow_once", "allow_once"]) : Headless.layer
    )
  )
  return yield* Effect.gen(function* () {
    const [approval, checks, git] = [yield* Approval, yield* Checks, yield* Git]
    const absent = new GitError({ reason: "failed", message: "git went wrong" })
    const task = {
      ...exampleTask,
      limits: { ...exampleTask.limits, wall_time_seconds: 600 },
      baseline: fault.at % 2 === 0
    }
    const fiber = yield* run(task, { run_id: runId("r-1") }).pipe(
      Effect.provideService(
        Workspaces,
        Workspaces.of({ open: () => strike("open", Effect.succeed(workspace), failed) })
      ),
      Effect.provideService(Git, {
        ...git,
        paths: (...args) => strike("git", git.paths(...args), absent)
      }),
      Effect.provideService(Checks, {
        run: (...args) => Effect.orDie(strike("check", checks.run(...args), failed))
      }),
      Effect.provideService(Approval, {
        ...approval,
        ask: (request) =>
          Effect.catchTag(strike("approval", approval.ask(request), failed), "WorkspaceError", Effect.die)
      }),
      Effect.forkChild({ startImmediately: true })
    )
    // Digests take turns of the real event loop.
    for (let n = 0; n < 3000 && fiber.pollUnsafe() === undefined; n++) {
      yield* TestClock.adjust("10 seconds")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
    const exit = fiber.pollUnsafe()
    if (exit === undefined) yield* Fiber.interrupt(fiber)
    const difference = yield* replayed(yield* recordingOf("r-1"))
    const ended = exit !== undefined && Exit.isSuccess(exit) ? exit.value.result.terminal_reason : "cut off"
    assert.isNull(difference, `${JSON.stringify(fault)}: ${ended}`)
    return struck() ? ended : null
  }).pipe(Effect.provide(world))
})

const cases: ReadonlyArray<readonly [Place, Blow, ...ReadonlyArray<TerminalReason | "cut off">]> = [
  ["git", "fail", "workspace_failed"],
  ["git", "die", "error"],
  ["open", "fail", "workspace_failed"],
  ["open", "die", "error"],
  ["read", "die", "error"],
  ["read", "hang", "wall_time_exceeded"],
  ["apply", "die", "error"],
  ["scan", "fail", "patch_artifact_failed", "workspace_failed"],
  ["scan", "die", "cut off", "error"],
  ["scan", "hang", "patch_artifact_failed", "wall_time_exceeded"],
  ["handOver", "fail", "patch_artifact_failed", "workspace_failed"],
  ["handOver", "die", "cut off", "error"],
  ["handOver", "hang", "patch_artifact_failed", "wall_time_exceeded"],
  ["unrecorded", "fail", "patch_artifact_failed", "workspace_failed"],
  ["materialise", "fail", "could_not_verify", "verified"],
  ["materialise", "die", "error", "verified"],
  // Nothing bounds a fresh place of a preflight but whoever interrupts the run.
  ["materialise", "hang", "cut off", "wall_time_exceeded"],
  ["check", "die", "error", "verified"],
  ["model", "die", "error"],
  ["model", "hang", "wall_time_exceeded"],
  ["approval", "die", "error"]
]

describe("a run in which something goes wrong plays again", () => {
  it.effect.each(cases)("%s: %s", ([place, blow, ...reasons]) =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      for (const lasting of [false, true])
        for (let at = 1; ; at++) {
          const ended = yield* endingOf({ place, blow, at, lasting })
          if (ended === null) break
          seen.add(ended)
        }
      assert.deepStrictEqual([...seen].toSorted(), [...reasons])
    })
  )
})

/** A run of a model that only fails, or only edits, and of a person who answers so. */
const endingWith = (script: Script, answers: ReadonlyArray<ApprovalDecision> | null) =>
  Effect.gen(function* () {
    const memory = yield* makeMemoryWorkspace(files)
    const world = layerTest({ memory, files, models: [scriptedModel(script)], checks: () => ({}) }).pipe(
      Layer.provideMerge(answers === null ? Headless.layer : layerApproval(answers))
    )
    return yield* Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(run(exampleTask, { run_id: runId("r-1") }), {
        startImmediately: true
      })
      yield* TestClock.adjust("12 hours")
      const { result } = yield* Fiber.join(fiber)
      assert.isNull(yield* replayed(yield* recordingOf("r-1")))
      return result.terminal_reason
    }).pipe(Effect.provide(world))
  })

describe("a run that somebody else ended plays again", () => {
  it.effect.each(ModelErrorKind.literals)("a provider: %s", (kind) =>
    Effect.gen(function* () {
      const error = modelError({ provider: "scripted", model: "scripted", kind, message: "no" })
      const script = Array.from({ length: 9 }, () => error)
      assert.strictEqual(yield* endingWith(script, null), `provider_${kind}`)
    })
  )

  it.effect.each<readonly [TerminalReason, ReadonlyArray<ApprovalDecision>]>([
    ["approval_cancelled", ["cancel"]],
    ["approval_unavailable", []],
    ["no_changes", ["deny"]]
  ])("a person: %s", ([reason, answers]) =>
    Effect.gen(function* () {
      const script = [{ tool_calls: [edit("a - b", "a + b")] }, { text: "Done." }]
      assert.strictEqual(yield* endingWith(script, answers), reason)
    })
  )
})
