import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Random, Ref, Stream } from "effect"
import { TestClock } from "effect/testing"
import { modelError, type ModelError, type ModelErrorFacts } from "../../src/domain/ModelError.ts"
import { stickyFallback } from "../../src/programs/policies/Fallback.ts"
import { RetryPolicy, retrySchedule } from "../../src/programs/policies/Retry.ts"
import type { Model } from "../../src/services/Model.ts"

const error = (facts: Partial<ModelErrorFacts> = {}) =>
  modelError({ provider: "p", model: "m", kind: "provider", message: "boom", ...facts })

/** Runs an effect that always fails under the policy; returns when it was tried and what was announced before. */
const attempts = (facts: Partial<ModelErrorFacts>, seed = "seed") =>
  Effect.gen(function* () {
    const calls: Array<number> = []
    const waits: Array<{ readonly attempt: number; readonly delay: number; readonly at: number }> = []
    const now = Effect.clockWith((clock) => clock.currentTimeMillis)
    const policy = yield* RetryPolicy
    const fiber = yield* Effect.flatMap(now, (at) => {
      calls.push(at)
      return Effect.fail(error(facts))
    }).pipe(
      Effect.retry(
        retrySchedule(policy, (wait) =>
          Effect.map(now, (at) => {
            waits.push({ attempt: wait.attempt, delay: Duration.toMillis(wait.delay), at })
          })
        )
      ),
      Effect.flip,
      Random.withSeed(seed),
      Effect.forkChild({ startImmediately: true })
    )
    yield* TestClock.adjust("30 minutes")
    yield* Fiber.join(fiber)
    return { calls, waits }
  })

describe("retrySchedule", () => {
  it.effect(
    "tries five times, doubling from a second, jittered by a fifth, each wait announced before it begins",
    () =>
      Effect.gen(function* () {
        for (const seed of ["a", "b", "c"]) {
          const { calls, waits } = yield* attempts({}, seed)
          const start = calls[0] ?? 0
          assert.strictEqual(calls.length, 5)
          assert.deepStrictEqual(
            waits.map((wait) => wait.attempt),
            [1, 2, 3, 4]
          )
          for (const [i, wait] of waits.entries()) {
            assert.isAtLeast(wait.delay, 800 * 2 ** i)
            assert.isAtMost(wait.delay, 1200 * 2 ** i)
            assert.strictEqual(
              wait.at,
              calls[i],
              "announced at the moment of the failure, not after the wait"
            )
            assert.approximately((calls[i + 1] ?? 0) - wait.at, wait.delay, 1)
          }
          assert.isAtLeast(start, 0)
        }
      })
  )

  it.effect("waits exactly what the server asks for; what is over already asks for nothing", () =>
    Effect.gen(function* () {
      const asked = yield* attempts({ kind: "rate_limit", retry_after_ms: 120_000 })
      assert.deepStrictEqual(
        asked.waits.map((wait) => wait.delay),
        [120_000, 120_000, 120_000, 120_000]
      )
      for (const retry_after_ms of [0, -5_000]) {
        const over = yield* attempts({ kind: "rate_limit", retry_after_ms })
        assert.lengthOf(over.waits, 4)
        for (const [i, wait] of over.waits.entries()) assert.isAtLeast(wait.delay, 800 * 2 ** i)
      }
    })
  )

  it.effect("does not sleep for hours, and does not repeat what cannot succeed", () =>
    Effect.gen(function* () {
      for (const facts of [
        { kind: "rate_limit", retry_after_ms: 12 * 3600 * 1000 },
        { kind: "auth", retryable: false },
        { kind: "context_overflow", retryable: false }
      ] as const) {
        assert.strictEqual((yield* attempts(facts)).calls.length, 1, facts.kind)
      }
    })
  )
})

const model = (name: string): Model => ({
  provider: "p",
  model: name,
  endpoint: null,
  warm: Effect.void,
  stream: () => Stream.empty
})

describe("stickyFallback", () => {
  /** Asks three times; `failing` says which models fail, and how. */
  const run = (failing: Readonly<Record<string, ModelError>>) =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const moves: Array<string> = []
      const position = yield* Ref.make(0)
      const once = stickyFallback({
        candidates: [model("a"), model("b"), model("c")],
        position,
        ask: (candidate) =>
          Effect.suspend(() => {
            asked.push(candidate.model)
            const failure = failing[candidate.model]
            return failure === undefined ? Effect.succeed(candidate.model) : Effect.fail(failure)
          }),
        onFallback: (from, to) => Effect.sync(() => moves.push(`${from.model}>${to.model}`))
      })
      const answers = [yield* Effect.result(once), yield* Effect.result(once), yield* Effect.result(once)]
      return {
        asked,
        moves,
        answers: answers.map((answer) => (answer._tag === "Success" ? answer.success : answer.failure.kind))
      }
    })

  it.effect("stays where it went: later turns start at the model that answered", () =>
    Effect.gen(function* () {
      const { answers, asked, moves } = yield* run({ a: error() })
      assert.deepStrictEqual(asked, ["a", "b", "b", "b"])
      assert.deepStrictEqual(moves, ["a>b"])
      assert.deepStrictEqual(answers, ["b", "b", "b"])
    })
  )

  it.effect("moves on for an exhausted quota, never for a request that is wrong in itself", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        (yield* run({ a: error({ kind: "quota_exhausted", retryable: false }) })).answers,
        ["b", "b", "b"]
      )
      assert.deepStrictEqual(
        (yield* run({ a: error({ kind: "invalid_request", retryable: false }) })).answers,
        ["invalid_request", "invalid_request", "invalid_request"]
      )
    })
  )

  it.effect("fails with the last model's error when all have failed", () =>
    Effect.gen(function* () {
      const { answers, asked } = yield* run({ a: error(), b: error(), c: error({ kind: "overloaded" }) })
      assert.deepStrictEqual(asked, ["a", "b", "c", "c", "c"])
      assert.deepStrictEqual(answers, ["overloaded", "overloaded", "overloaded"])
    })
  )
})
