import { assert } from "@effect/vitest"
import { Effect, Fiber, Result, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ModelErrorFacts } from "../../../src/domain/ModelError.ts"
import { Exchange } from "../../../src/domain/Wire.ts"
import { replayedModel } from "../../../src/layers/model/Replayed.ts"
import type { Model, ModelEvent, ModelRequest } from "../../../src/services/Model.ts"
import { Wire } from "../../../src/services/Wire.ts"
import { key, request } from "./harness.ts"

/** What one request shows and keeps, in order. */
export interface Watched {
  readonly events: ReadonlyArray<ModelEvent>
  readonly failure: ModelErrorFacts | null
  readonly kept: ReadonlyArray<Exchange>
  /** How many events had been shown, and whether the failure had, when the exchange was kept. */
  readonly shownBefore: number
  readonly failedBefore: boolean
}

/** Asks once, with its wire kept, and, when there is a recording, answered from it. */
export const watch = Effect.fnUntraced(function* (
  model: Model,
  options: {
    readonly recorded?: Exchange
    readonly sent?: ModelRequest
    readonly onEvent?: (event: ModelEvent) => Effect.Effect<void>
    /** Everything that is kept, also when the request is given up. */
    readonly kept?: Array<Exchange>
  } = {}
) {
  const { recorded } = options
  const events: Array<ModelEvent> = []
  const kept = options.kept ?? []
  let shownBefore = -1
  let failed = false
  let failedBefore = false
  const result = yield* model.stream(options.sent ?? request()).pipe(
    Stream.tapError(() => Effect.sync(() => (failed = true))),
    Stream.runForEach((event) => {
      events.push(event)
      return options.onEvent?.(event) ?? Effect.void
    }),
    Effect.result,
    // As the loop does it: around the attempt, not around the making of the model or its stream.
    Effect.provideService(Wire, {
      keep: (exchange) =>
        Effect.sync(() => {
          kept.push(exchange)
          shownBefore = events.length
          failedBefore = failed
        }),
      recorded: recorded === undefined ? null : Effect.succeed(recorded)
    })
  )
  const watched: Watched = {
    events,
    failure: Result.isFailure(result) ? result.failure.facts : null,
    kept,
    shownBefore,
    failedBefore
  }
  return watched
})

/** The one exchange of a request, kept before its end was told. */
export const keptOf = (watched: Watched): Exchange => {
  const [exchange, ...more] = watched.kept
  if (exchange === undefined || more.length > 0) throw new Error(`kept ${watched.kept.length} times`)
  const told = watched.events.filter((event) => event.type !== "completed").length
  // The deltas that the last piece brought are told together with the end.
  if (watched.shownBefore > told || watched.failedBefore)
    throw new Error("the end was told before it was kept")
  return exchange
}

/** Through JSON, as a journal keeps it. */
export const stored = (exchange: Exchange): Exchange =>
  Schema.decodeUnknownSync(Exchange)(JSON.parse(JSON.stringify(Schema.encodeSync(Exchange)(exchange))))

export const replayed = (model: Model) =>
  replayedModel({ provider: model.provider, model: model.model, endpoint: model.endpoint })

/** Lets every time-out of ours pass, until the fiber has ended. */
export const waitOut = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>) {
  for (let n = 0; n < 100 && fiber.pollUnsafe() === undefined; n++) yield* TestClock.adjust("20 seconds")
  return yield* Fiber.join(fiber)
})

/** Plays what was kept, at another time, and compares everything. Returns what was kept. */
export const agrees = Effect.fnUntraced(function* (model: Model, original: Watched) {
  const exchange = keptOf(original)
  assert.notInclude(JSON.stringify(exchange), key)
  yield* TestClock.adjust("1 hour")
  const player = yield* replayed(model)
  const fiber = yield* Effect.forkChild(watch(player, { recorded: stored(exchange) }))
  const again = yield* exchange.fault?.kind === "silent" ? waitOut(fiber) : Fiber.join(fiber)
  assert.deepStrictEqual(again.events, original.events)
  assert.deepStrictEqual(again.failure, original.failure)
  assert.deepStrictEqual(keptOf(again), exchange)
  assert.strictEqual(again.shownBefore, original.shownBefore)
  return exchange
})
