/**
 * Plays recorded runs again, without anything but the recording.
 */
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { Digest, SecureRandom } from "effect/crypto"
import { assert } from "vitest"
import type { Recording } from "../../src/domain/Recording.ts"
import * as Store from "../../src/layers/journal/Store.ts"
import { layerReplay, type ReplayOptions } from "../../src/layers/replay/Replay.ts"
import * as MemorySearch from "../../src/layers/search/Memory.ts"
import * as Tools from "../../src/layers/tools/Tools.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { recordingOf } from "../../src/programs/Record.ts"
import { replay } from "../../src/programs/Replay.ts"
import { RunStore } from "../../src/services/RunStore.ts"

/** Where the played run left its recording; null when it did not. */
export const replayed = (recording: Recording, options: ReplayOptions = {}) =>
  Effect.gen(function* () {
    const memory = yield* makeMemoryWorkspace({})
    const tools = Tools.layer.pipe(Layer.provide(MemorySearch.layerMemory(memory)))
    return yield* replay.pipe(
      Effect.provide(
        layerReplay(recording, options).pipe(Layer.provide(tools), Layer.provideMerge(Digest.layerWebCrypto))
      )
    )
  })

/** Fails unless every run below a run root, whatever became of it, plays again as it was recorded. */
export const assertReplays = (runRoot: string): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const store = yield* RunStore
      for (const { request, run_id } of yield* store.list({ limit: 100, query: null })) {
        if (request === null) continue
        const difference = yield* replayed(yield* recordingOf(run_id))
        assert.isNull(difference, `run ${run_id} does not play again as it was recorded`)
      }
    }).pipe(
      Effect.provide(
        Store.layer({ run_root: runRoot }).pipe(
          Layer.provide(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto))
        )
      )
    )
  )
