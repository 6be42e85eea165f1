import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { isKnownType, RunEvent } from "../../../src/domain/Event.ts"
import { initial, reduce } from "../../../src/domain/Run.ts"
import * as Store from "../../../src/layers/journal/Store.ts"
import { RunStore } from "../../../src/services/RunStore.ts"

const fixtures = fileURLToPath(new URL("../../fixtures/", import.meta.url))
const versions = readdirSync(fixtures).filter((name) => name.startsWith("store-v"))
const platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)

describe("a bundle of an earlier version", () => {
  it("is kept for every version there was", () => {
    assert.include(versions, "store-v1")
  })

  for (const version of versions) {
    it.live(`opens: ${version}`, () =>
      Effect.gen(function* () {
        const store = yield* RunStore
        const [listed] = yield* store.list({ limit: 10, query: null })
        assert.deepStrictEqual(listed?.missing, [])
        const run = yield* store.show("every-event")
        assert.strictEqual(run.unknown, 0)
        const types = new Set(run.entries.map((entry) => entry.event.event_type))
        if (version === "store-v1")
          assert.deepStrictEqual(
            RunEvent.members
              .map((member) => member.fields.event_type.literal)
              .filter((type) => !types.has(type)),
            []
          )
        const state = run.entries.reduce(
          (state, { event }) => (isRunEvent(event) ? reduce(state, event) : state),
          initial
        )
        assert.strictEqual(state.ended?.terminal_reason, run.result?.terminal_reason)
        assert.strictEqual(state.run_id, run.manifest?.run_id)
        assert.strictEqual(run.manifest?.head.sequence, run.entries.length - 1)
      }).pipe(Effect.provide(Layer.provide(Store.layer({ run_root: `${fixtures}${version}` }), platform)))
    )
  }
})

const isRunEvent = (event: { readonly event_type: string; readonly data: unknown }): event is RunEvent =>
  isKnownType(event.event_type)
