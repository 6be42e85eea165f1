import { NodeServices } from "@effect/platform-node"
import { it } from "@effect/vitest"
import { Effect, Exit, Fiber, FileSystem, Layer } from "effect"
import { Digest, SecureRandom } from "effect/crypto"
import { ChildProcessSpawner } from "effect/process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import * as Headless from "../../src/layers/approval/Headless.ts"
import * as Checks from "../../src/layers/checks/Checks.ts"
import {
  makeLife,
  mortalFileSystem,
  mortalModel,
  mortalSpawner,
  type Blow,
  type Life
} from "../../src/layers/faults/Life.ts"
import * as Git from "../../src/layers/git/Git.ts"
import * as Store from "../../src/layers/journal/Store.ts"
import { scriptedModel, type ScriptedTurn } from "../../src/layers/model/Scripted.ts"
import { layerHost } from "../../src/layers/sandbox/Host.ts"
import * as Search from "../../src/layers/search/Search.ts"
import * as Tools from "../../src/layers/tools/Tools.ts"
import * as Workspace from "../../src/layers/workspace/Workspace.ts"
import { resume } from "../../src/programs/Resume.ts"
import { run } from "../../src/programs/Run.ts"
import { Models, type ModelRequest } from "../../src/services/Model.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { runId } from "../layers/journal/support.ts"
import { repository, scratch, taskFor } from "../layers/workspace/support.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { assertReplays } from "../support/replay.ts"
import { addFiles, addFix } from "../support/repos/add.ts"

const steps: ReadonlyArray<ScriptedTurn> = [
  { tool_calls: [{ name: "read_file", arguments: { path: addFix.path } }] },
  {
    tool_calls: [
      {
        name: "apply_patch",
        arguments: {
          patch: `*** Begin Patch\n*** Update File: ${addFix.path}\n@@\n-${addFix.fixed.replace(addFix.new_text, addFix.old_text)}+${addFix.fixed}*** Add File: NOTES.md\n+fixed\n*** End Patch\n`
        }
      }
    ]
  },
  { text: "It subtracted." }
]
const answer = ({ conversation }: ModelRequest): ScriptedTurn =>
  steps[conversation.filter((item) => item.role === "assistant").length] ?? { text: "Nothing is left." }

/** Every n-th step; the whole matrix takes an hour. */
const stride = Number(process.env["LOOPLANE_CRASH_STRIDE"] ?? "9")

/** One process on the real disk with real git and real checks. Null when it died. */
const live = (runs: string, repo: { readonly root: string; readonly head: string }, life: Life) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const platform = Layer.mergeAll(
      NodeServices.layer,
      Layer.succeed(FileSystem.FileSystem, mortalFileSystem(fs, life)),
      Layer.succeed(ChildProcessSpawner.ChildProcessSpawner, mortalSpawner(spawner, life))
    )
    const model = mortalModel(scriptedModel(Array.from({ length: 9 }, () => answer)), life)
    const world = Layer.mergeAll(
      Store.layer({ run_root: runs }).pipe(Layer.provide(SecureRandom.layerWebCrypto)),
      Layer.succeed(Models, Models.of({ candidates: [model] })),
      Git.layer,
      layerHost,
      Workspace.layer.pipe(Layer.provide(layerHost)),
      Checks.layer.pipe(Layer.provide(layerHost)),
      Tools.layer.pipe(Layer.provide(Search.layer)),
      Headless.layer,
      Digest.layerWebCrypto
    ).pipe(Layer.provideMerge(platform))
    const task = taskFor(repo, {
      verification: {
        mode: "checks",
        checks: [
          { name: "check-1", argv: ["grep", "-q", addFix.new_text, addFix.path], timeout_seconds: 60 },
          { name: "check-2", argv: ["grep", "-q", "fixed", "NOTES.md"], timeout_seconds: 60 }
        ]
      }
    })
    const program = Effect.gen(function* () {
      const store = yield* RunStore
      const begun = yield* store.unfinished
      if (begun !== null) {
        const taken = yield* store.open(begun.directory, { accept_loss: false })
        return yield* resume(taken, { instruction: null })
      }
      const found = yield* store.list({ limit: 9, query: null })
      const ended = found.find((each) => each.result !== null)
      if (ended !== undefined && ended.result !== null)
        return { result: ended.result, directory: ended.directory }
      return yield* run(task, { run_id: runId(`r-${found.length + 1}`) })
    }).pipe(Effect.scoped, Effect.provide(world))
    const exit = yield* Fiber.await(yield* Effect.forkChild(program))
    return life.isDead()
      ? null
      : yield* Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Effect.failCause(exit.cause)
  })

const closed = new Set(
  "request.json session.json events.jsonl checkpoint.json verification.json test.log changes.patch receipt.json result.json blobs git workspace .writer.lock".split(
    " "
  )
)

describe("a process that dies at any step, with real git on a real disk", () => {
  for (const blow of ["die", "tear"] satisfies ReadonlyArray<Blow>) {
    it.live(
      `${blow}, then resume: the result it would have had`,
      () =>
        Effect.gen(function* () {
          const repo = yield* repository({ files: addFiles })
          const before = snapshotTree(repo.root)
          const folder = yield* scratch
          const whole = makeLife({ at: null, blow: "die" })
          const wanted = yield* live(join(folder, "whole"), repo, whole)
          assert.strictEqual(wanted?.result.terminal_reason, "verified")
          const patch = readFileSync(join(wanted?.directory ?? "", "changes.patch"), "utf8")
          let points = 0
          for (const { index, kind, what } of whole.steps()) {
            if (index % stride !== (blow === "die" ? 0 : Math.floor(stride / 2))) continue
            points += 1
            const point = `${blow} at step ${index} (${kind} ${what})`
            const runs = join(folder, `${blow}-${index}`)
            const first = yield* live(runs, repo, makeLife({ at: index, blow }))
            const second = first ?? (yield* live(runs, repo, makeLife({ at: null, blow: "die" })))
            assert.strictEqual(second?.result.terminal_reason, "verified", point)
            assert.strictEqual(second?.result.tree, wanted?.result.tree, point)
            const directory = second?.directory ?? ""
            assert.strictEqual(readFileSync(join(directory, "changes.patch"), "utf8"), patch, point)
            assert.deepStrictEqual(
              readdirSync(directory).filter((name) => !closed.has(name)),
              [],
              point
            )
          }
          yield* Effect.promise(() => assertReplays(join(folder, "whole")))
          assertUntouched(before, snapshotTree(repo.root))
          console.log(`${blow}: ${points} of ${whole.steps().length} points`)
        }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
      3_600_000
    )
  }
})
