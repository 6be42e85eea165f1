/**
 * `node bench/growth.ts RUN_ROOT RUN ROUNDS`: what an event and a fork cost in a long run and in a short one, each pair
 * measured side by side. Runs in a process of its own, on the store alone, and prints one JSON object.
 */
import { NodeCrypto, NodeFileSystem, NodePath } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { performance } from "node:perf_hooks"
import type { RunEvent } from "../src/domain/Event.ts"
import { RunId } from "../src/domain/Ids.ts"
import * as Store from "../src/layers/journal/Store.ts"
import { RunStore, StoreError, type Journal } from "../src/services/RunStore.ts"
import type { Growth, Side } from "./growthReport.ts"
import { median, spread } from "./measure.ts"

const event: RunEvent = {
  event_type: "conversation.appended",
  data: { item: { role: "user", content: "Go on. ".repeat(300) } }
}
const shortRun = RunId.make("short")

const time = <E, R>(effect: Effect.Effect<unknown, E, R>) =>
  Effect.suspend(() => {
    const started = performance.now()
    return Effect.map(effect, () => performance.now() - started)
  })

interface Pair {
  readonly short: number
  readonly long: number
}

const sideOf = (pairs: ReadonlyArray<Pair>): Side => {
  const ratios = pairs.map(({ long, short }) => long / short)
  return {
    short: median(pairs.map(({ short }) => short)),
    long: median(pairs.map(({ long }) => long)),
    ratio: median(ratios),
    noise: spread(ratios)
  }
}

/** Runs two effects once a round, each of them first in every other one, after one round that does not count. */
const sideBySide = Effect.fnUntraced(function* <E, R>(
  rounds: number,
  pair: (round: number) => {
    readonly short: Effect.Effect<unknown, E, R>
    readonly long: Effect.Effect<unknown, E, R>
  }
) {
  const pairs: Array<Pair> = []
  for (let round = 0; round <= rounds; round++) {
    const { long, short } = pair(round)
    const measured =
      round % 2 === 0
        ? yield* Effect.all({ short: time(short), long: time(long) })
        : yield* Effect.all({ long: time(long), short: time(short) })
    if (round > 0) pairs.push(measured)
  }
  return sideOf(pairs)
})

const appended = (journal: Journal) => Effect.andThen(journal.append(event), journal.barrier)

const measure = Effect.fnUntraced(function* (run: string, rounds: number) {
  const store = yield* RunStore
  const { manifest, request } = yield* store.find(run)
  if (request === null || manifest === null)
    return yield* new StoreError({ reason: "not_found", path: run, message: "no run to measure with" })
  const begin = (run_id: RunId) =>
    Effect.tap(
      store.create({
        run_id,
        request,
        created: {
          provider: manifest.provider,
          model: manifest.model,
          prompt_version: manifest.prompt_version,
          base_sha: manifest.base_sha
        }
      }),
      ({ barrier }) => barrier
    )
  const append = yield* Effect.scoped(
    Effect.gen(function* () {
      const { journal } = yield* store.open(run, { accept_loss: false })
      const fresh = yield* Effect.forEach(Array.from({ length: rounds + 1 }), (_, round) =>
        begin(RunId.make(`fresh-${round}`))
      )
      return yield* sideBySide(rounds, (round) => ({
        short: appended(fresh[round] ?? journal),
        long: appended(journal)
      }))
    })
  )
  yield* Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* begin(shortRun)
      for (let n = 1; n < 10; n++) yield* journal.append(event)
    })
  )
  const { sequence } = manifest.head
  const fork = yield* sideBySide(rounds, (round) => ({
    short: store.fork(shortRun, { sequence: 9, run_id: RunId.make(`fork-short-${round}`) }),
    long: store.fork(run, { sequence, run_id: RunId.make(`fork-long-${round}`) })
  }))
  return { append, fork } satisfies Growth
})

const [run_root, run, rounds] = process.argv.slice(2)
if (run_root === undefined || run === undefined) throw new Error("growth.ts RUN_ROOT RUN ROUNDS")
const layer = Store.layer({ run_root }).pipe(
  Layer.provide(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeCrypto.layerSecureRandom))
)
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(measure(run, Number(rounds)), layer))))
