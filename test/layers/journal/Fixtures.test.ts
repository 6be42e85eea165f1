import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { readdirSync } from "node:fs"
import { cp } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { RunEvent, storeVersion, type RunEventType } from "../../../src/domain/Event.ts"
import { chainEnd } from "../../../src/layers/journal/Sound.ts"
import { makeDisk } from "../../../src/layers/journal/Disk.ts"
import * as Store from "../../../src/layers/journal/Store.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import { foldOf, note, snapshot } from "./support.ts"

const fixtures = fileURLToPath(new URL("../../fixtures/", import.meta.url))
const versions = readdirSync(fixtures).filter((name) => name.startsWith("store-v"))
const platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)
const storeIn = (run_root: string) => Layer.provideMerge(Store.layer({ run_root }), platform)

/** Event types that a version did not have yet. */
const unknownTo: Readonly<Record<string, ReadonlyArray<RunEventType>>> = {
  "store-v1": [
    "repository.read",
    "workspace.restored",
    "workspace.scanned",
    "model.exchanged",
    "approval.abandoned",
    "session.resumed",
    "session.continued",
    "run.forked",
    "patch.collected"
  ],
  "store-v2": []
}

describe("a bundle of an earlier version", () => {
  it("is kept for every version there was", () => {
    assert.deepStrictEqual(
      versions.toSorted(),
      Array.from({ length: storeVersion }, (_, n) => `store-v${n + 1}`)
    )
  })

  for (const version of versions) {
    it.live(`lists, shows and folds: ${version}`, () =>
      Effect.gen(function* () {
        const store = yield* RunStore
        const [listed] = yield* store.list({ limit: 10, query: null })
        assert.deepStrictEqual(listed?.missing, [])
        assert.isNull(yield* store.unfinished)
        const run = yield* store.show("every-event")
        assert.strictEqual(run.unknown, 0)
        const types = new Set(run.entries.map((entry) => entry.event.event_type))
        const lacking = RunEvent.members
          .map((member) => member.fields.event_type.literal)
          .filter((type) => !types.has(type))
        assert.deepStrictEqual(lacking, unknownTo[version])
        const state = foldOf(run.entries)
        assert.strictEqual(state.ended?.terminal_reason, run.result?.terminal_reason)
        assert.strictEqual(state.run_id, run.manifest?.run_id)
        assert.strictEqual(run.manifest?.head.sequence, run.entries.length - 1)
      }).pipe(Effect.provide(storeIn(`${fixtures}${version}`)))
    )

    it.live(`is gone on with, as a copy: ${version}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const disk = yield* makeDisk
          const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped({ prefix: "looplane-fixture-" }))
          yield* Effect.promise(() => cp(`${fixtures}${version}`, root, { recursive: true }))
          const before = yield* snapshot(fs, `${fixtures}${version}`)
          const directory = `${root}/every-event`
          yield* Effect.gen(function* () {
            const store = yield* RunStore
            const { entries } = yield* store.show("every-event")
            yield* Effect.scoped(
              Effect.gen(function* () {
                const taken = yield* store.open("every-event", { accept_loss: false })
                assert.deepStrictEqual(yield* taken.journal.state, foldOf(entries))
                assert.deepInclude(taken, { lost: 0, complete: true })
                assert.isTrue(yield* fs.exists(`${directory}/result.json`))
              })
            )
            yield* Effect.scoped(
              Effect.gen(function* () {
                const taken = yield* store.open("every-event", { accept_loss: false })
                yield* taken.discard
                for (const name of ["result.json", "receipt.json", "changes.patch"])
                  assert.isFalse(yield* fs.exists(`${directory}/${name}`), name)
                yield* taken.journal.append(note("one more"))
              })
            )
            const after = yield* store.show("every-event")
            assert.strictEqual(after.entries.length, entries.length + 1)
            assert.strictEqual(yield* chainEnd(disk, directory), after.manifest?.head.hash ?? null)
            assert.strictEqual((yield* store.unfinished)?.run_id, "every-event")
          }).pipe(Effect.provide(Store.layer({ run_root: root })))
          assert.deepStrictEqual(yield* snapshot(fs, `${fixtures}${version}`), before)
        })
      ).pipe(Effect.provide(platform))
    )
  }
})
