/**
 * Plays recorded runs again, without anything but the recording.
 */
import { Effect, Layer } from "effect"
import { Digest } from "effect/crypto"
import type { Recording } from "../../src/domain/Recording.ts"
import { layerReplay, type ReplayOptions } from "../../src/layers/replay/Replay.ts"
import * as MemorySearch from "../../src/layers/search/Memory.ts"
import * as Tools from "../../src/layers/tools/Tools.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
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

/** A run as its journal holds it. */
export const recordingOf = Effect.fnUntraced(function* (run: string) {
  const store = yield* RunStore
  const { entries, request, run_id } = yield* store.show(run)
  if (request === null) return yield* Effect.die("the run has no request")
  const recording: Recording = { run_id, request, entries }
  return recording
})
