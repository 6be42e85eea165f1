import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, FileSystem, Layer, Path } from "effect"
import { TestClock } from "effect/testing"
import type { ApprovalDecision } from "../../src/domain/Event.ts"
import type { FileChange } from "../../src/domain/patch/FileSet.ts"
import type { RunResult } from "../../src/domain/Result.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import {
  makeLife,
  mortalFileSystem,
  mortalModel,
  type Blow,
  type Life
} from "../../src/layers/faults/Life.ts"
import * as MemoryFs from "../../src/layers/fs/Memory.ts"
import * as Store from "../../src/layers/journal/Store.ts"
import { scriptedModel, type ScriptedTurn } from "../../src/layers/model/Scripted.ts"
import { layerApproval, layerRandom, layerTestOn, type CheckScript } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace, type MemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { resume } from "../../src/programs/Resume.ts"
import { run } from "../../src/programs/Run.ts"
import type { ModelRequest } from "../../src/services/Model.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { WorkspaceError, type OpenWorkspace } from "../../src/services/Workspace.ts"
import { runId } from "../layers/journal/support.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = {
  "src/add.js": "export const add = (a, b) => a - b\n",
  "src/sub.js": "export const sub = (a, b) => a + b\n"
}
const edit = (path: string, from: string, to: string) => ({
  name: "replace_text",
  arguments: { path, old_text: from, new_text: to }
})
const both = (add: string, sub: string) => ({
  name: "apply_patch",
  arguments: {
    patch: [
      "*** Begin Patch",
      "*** Update File: src/add.js",
      "@@",
      "-export const add = (a, b) => a - b",
      `+export const add = (a, b) => ${add}`,
      "*** Update File: src/sub.js",
      "@@",
      "-export const sub = (a, b) => a + b",
      `+export const sub = (a, b) => ${sub}`,
      "*** End Patch",
      ""
    ].join("\n")
  }
})

interface Scenario {
  readonly name: string
  readonly answer: (request: ModelRequest) => ScriptedTurn
  readonly checks: CheckScript
  /** Null: nobody is asked. */
  readonly answers: ReadonlyArray<ApprovalDecision> | null
}

const turns = ({ conversation }: ModelRequest) =>
  conversation.filter((item) => item.role === "assistant").length
const byTurn = (steps: ReadonlyArray<ScriptedTurn>) => (request: ModelRequest) =>
  steps[turns(request)] ?? { text: "Nothing is left to do." }
const holds =
  (...wanted: ReadonlyArray<readonly [path: string, text: string]>): CheckScript =>
  (_argv, held) =>
    wanted.every(([path, text]) => held.get(path)?.includes(text) === true)
      ? {}
      : { verdict: "failed", exit_code: 1, reason: "exit 1" }

const scenarios: ReadonlyArray<Scenario> = [
  {
    name: "edit and verify",
    answer: byTurn([
      { tool_calls: [{ name: "read_file", arguments: { path: "src/add.js" } }] },
      { tool_calls: [edit("src/add.js", "a - b", "a + b")] },
      { text: "It subtracted." }
    ]),
    checks: holds(["src/add.js", "a + b"]),
    answers: null
  },
  {
    name: "two-file edit with a failing check",
    answer: byTurn([
      { tool_calls: [both("a + b", "a * b")] },
      { text: "Done." },
      { tool_calls: [edit("src/sub.js", "a * b", "a - b")] },
      { text: "Now." }
    ]),
    checks: holds(["src/add.js", "a + b"], ["src/sub.js", "a - b"]),
    answers: null
  },
  {
    name: "approval pending",
    answer: ({ conversation }) => {
      const done = conversation.some((item) => item.role === "tool" && item.ok)
      return done ? { text: "It subtracted." } : { tool_calls: [edit("src/add.js", "a - b", "a + b")] }
    },
    checks: holds(["src/add.js", "a + b"]),
    answers: ["allow_once", "allow_once", "allow_once"]
  }
]

/** Edits are steps of a life: one that is torn changes some of its files. */
const mortalWorkspace = (memory: MemoryWorkspace, life: Life): MemoryWorkspace => {
  const gone = Effect.fail(new WorkspaceError({ reason: "failed", message: "the process is dead" }))
  const wrap = (workspace: OpenWorkspace): OpenWorkspace => ({
    ...workspace,
    apply: (changes: ReadonlyArray<FileChange>) =>
      Effect.suspend(() => {
        switch (life.fate("edit", changes.map((change) => change.path).join(", "))) {
          case "go":
            return workspace.apply(changes)
          case "delay":
            return Effect.andThen(Effect.sleep("2 seconds"), workspace.apply(changes))
          case "tear":
            return Effect.andThen(workspace.apply(changes.slice(0, 1)), gone)
          case "dead":
            return gone
        }
      })
  })
  return { ...memory, open: (resume) => Effect.map(memory.open(resume), wrap) }
}

/** What outlives a process: the disk and the workspace's files. */
const makeRemains = Effect.map(makeMemoryWorkspace(files), (memory) => ({ memory, ...MemoryFs.make() }))
type Remains = Effect.Success<typeof makeRemains>

/** One process: begins the run, or goes on with the one that it finds. Null when it died. */
const live = (scenario: Scenario, { fileSystem, memory }: Remains, life: Life) =>
  Effect.gen(function* () {
    const script = Array.from({ length: 20 }, () => scenario.answer)
    const world = layerTestOn({
      memory: mortalWorkspace(memory, life),
      files,
      models: [mortalModel(scriptedModel(script), life)],
      checks: (argv, held) => {
        life.fate("spawn", argv.join(" "))
        return scenario.checks(argv, held)
      }
    })
    const platform = Layer.mergeAll(
      Layer.succeed(FileSystem.FileSystem, mortalFileSystem(fileSystem, life)),
      Path.layer,
      layerRandom
    )
    const approval = scenario.answers === null ? Headless.layer : layerApproval(scenario.answers)
    const program = Effect.gen(function* () {
      const store = yield* RunStore
      const begun = yield* store.unfinished
      if (begun === null) {
        const runs = yield* store.list({ limit: 9, query: null })
        const ended = runs.find((each) => each.result !== null)?.result
        if (ended !== undefined && ended !== null) return ended
        // One that died before its first event was no run: the user gives the command again.
        const run_id = runId(`r-${runs.length + 1}`)
        return (yield* run({ ...exampleTask, baseline: true }, { run_id })).result
      }
      const taken = yield* store.open(begun.directory, { accept_loss: false })
      return (yield* resume(taken, { instruction: null })).result
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(world, approval).pipe(Layer.provide(platform))))
    const fiber = yield* Effect.forkChild(program, { startImmediately: true })
    // A step that is only slow sleeps; digests take turns of the real event loop in between.
    yield* TestClock.adjust("1 second").pipe(
      Effect.andThen(eventLoopTurn),
      Effect.repeat({ until: () => fiber.pollUnsafe() !== undefined })
    )
    const exit = yield* Fiber.await(fiber)
    if (life.isDead()) return null
    return yield* Effect.orDie(exit)
  })

const eventLoopTurn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

const immortal = () => makeLife({ at: null, blow: "die" })

/** What must be the same whether a process died or not. */
const essence = (result: RunResult) => ({
  status: result.status,
  terminal_reason: result.terminal_reason,
  changed_files: result.changed_files,
  tree: result.tree,
  verification: result.verification.map(({ name, verdict }) => [name, verdict])
})

const bundle = new Set(
  "request.json session.json events.jsonl checkpoint.json verification.json test.log changes.patch receipt.json result.json blobs .writer.lock".split(
    " "
  )
)

/** What a run leaves behind. */
const left = Effect.fnUntraced(function* ({ fileSystem }: Remains, { run_id }: RunResult) {
  const names = yield* fileSystem.readDirectory(`/runs/${run_id}`)
  return {
    patch: yield* fileSystem.readFileString(`/runs/${run_id}/changes.patch`),
    strange: names.filter((name) => !bundle.has(name))
  }
})

/** Where a run that several processes wrote leaves its recording when it is played again. */
const replayedFrom = ({ fileSystem }: Remains, { run_id }: RunResult) =>
  Effect.flatMap(recordingOf(run_id), (recording) => replayed(recording)).pipe(
    Effect.provide(
      Store.layerMemory({ run_root: "/runs" }).pipe(
        Layer.provide(
          Layer.mergeAll(Layer.succeed(FileSystem.FileSystem, fileSystem), Path.layer, layerRandom)
        )
      )
    )
  )

const points: Array<string> = []

describe("a process that dies at any step", () => {
  for (const scenario of scenarios) {
    for (const blow of ["die", "tear", "delay"] satisfies ReadonlyArray<Blow>) {
      it.effect(
        `${scenario.name}: ${blow}`,
        () =>
          Effect.gen(function* () {
            const whole = immortal()
            const untouched = yield* makeRemains
            const wanted = yield* live(scenario, untouched, whole)
            if (wanted === null) return assert.fail("the uninterrupted run did not end")
            const { patch } = yield* left(untouched, wanted)
            assert.strictEqual(wanted.terminal_reason, "verified")
            for (const { index, kind, what } of whole.steps()) {
              const point = `${scenario.name}, ${blow} at step ${index} (${kind} ${what})`
              points.push(point)
              const remains = yield* makeRemains
              const first = yield* live(scenario, remains, makeLife({ at: index, blow }))
              assert.strictEqual(first === null, blow !== "delay", point)
              // A torn write is where the power fails as well: what was not synced is gone, names too or not.
              if (blow === "tear") yield* remains.disk.crash({ names: index % 2 === 0 ? "lost" : "kept" })
              // And a process that dies is followed by one that dies in its turn.
              const again = makeLife({ at: blow === "die" ? (index * 5) % 23 : null, blow: "die" })
              const second = first ?? (yield* live(scenario, remains, again))
              const result = second ?? (yield* live(scenario, remains, immortal()))
              if (result === null) return assert.fail(`${point}: the resumed run did not end`)
              assert.deepStrictEqual(essence(result), essence(wanted), point)
              assert.deepStrictEqual(yield* left(remains, result), { patch, strange: [] }, point)
              if (index % 9 === 0) assert.isNull(yield* replayedFrom(remains, result), point)
            }
          }),
        60_000
      )
    }
  }

  it("counts its points", () => {
    const said = `crash points: ${points.length}`
    console.log(said)
    assert.isAbove(points.length, 300)
    for (const name of ["README.md", "README.zh-TW.md", "docs/progress.md"])
      assert.include(readFileSync(join(import.meta.dirname, "../..", name), "utf8"), said, name)
  })
})
