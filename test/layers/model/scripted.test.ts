import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result, Stream } from "effect"
import { modelError } from "../../../src/domain/ModelError.ts"
import { recordedModel, scriptedModel } from "../../../src/layers/model/Scripted.ts"
import type { Exchange } from "../../../src/domain/Wire.ts"
import { replayedModel } from "../../../src/layers/model/Replayed.ts"
import { collect, request } from "./harness.ts"
import { agrees, keptOf, watch } from "./playback.ts"

const limited = modelError({ provider: "scripted", model: "scripted", kind: "rate_limit", message: "slow" })

describe("a scripted model", () => {
  it.effect("plays its turns in pieces and remembers what it was asked", () =>
    Effect.gen(function* () {
      const model = scriptedModel(
        [
          { text: "Hello, 世界!", reasoning: [{ text: "hm" }], usage: { input_tokens: 3 } },
          limited,
          (asked, at) => ({
            text: `${at}: ${asked.conversation.length}`,
            tool_calls: [{ name: "f" }, { id: "x", name: "g" }]
          })
        ],
        { piece: 4 }
      )
      const first = yield* collect(model.stream(request()))
      assert.deepStrictEqual(
        [first.text, first.reasoning, first.turn.finish_reason],
        ["Hello, 世界!", "hm", "stop"]
      )
      assert.lengthOf(first.events, 5)
      assert.strictEqual(first.turn.usage.input_tokens, 3)
      assert.strictEqual(yield* Effect.flip(collect(model.stream(request()))), limited)
      const third = yield* collect(model.stream(request()))
      assert.strictEqual(third.text, "2: 1")
      assert.deepStrictEqual<unknown>(third.turn.tool_calls, [
        { id: "call_1", name: "f", arguments: {} },
        { id: "x", name: "g", arguments: {} }
      ])
      const exhausted = yield* Effect.flip(collect(model.stream(request())))
      assert.deepInclude(exhausted.facts, { kind: "provider", retryable: false })
      assert.lengthOf(yield* model.requests, 4)
    })
  )

  it.effect("waits at its gate, stalls and breaks off where it is told to", () =>
    Effect.gen(function* () {
      const door = yield* Deferred.make<void>()
      const model = scriptedModel(
        [
          { text: "abc", gate: Deferred.await(door), gate_before: 1 },
          { text: "abc", stall_after: 2 },
          { text: "abc", break_after: 2 },
          { text: "abc", break_after: 0, break_with: limited }
        ],
        { piece: 1 }
      )
      const playing = Effect.fnUntraced(function* () {
        const shown: Array<string> = []
        const two = yield* Deferred.make<void>()
        const fiber = yield* model.stream(request()).pipe(
          Stream.tap((event) => {
            shown.push(event.type === "completed" ? "end" : event.text)
            return shown.length === 2 ? Deferred.succeed(two, undefined) : Effect.void
          }),
          Stream.runDrain,
          Effect.result,
          Effect.forkChild({ startImmediately: true })
        )
        return { shown, fiber, two: Deferred.await(two) }
      })
      const gated = yield* playing()
      assert.deepStrictEqual(gated.shown, ["a"])
      yield* Deferred.succeed(door, undefined)
      yield* Fiber.join(gated.fiber)
      assert.deepStrictEqual(gated.shown, ["a", "b", "c", "end"])

      const stalled = yield* playing()
      yield* stalled.two
      assert.isUndefined(stalled.fiber.pollUnsafe())
      yield* Fiber.interrupt(stalled.fiber)
      assert.deepStrictEqual(stalled.shown, ["a", "b"])

      for (const [shown, kind] of [
        [["a", "b"], "truncated_stream"],
        [[], "rate_limit"]
      ] as const) {
        const broken = yield* playing()
        const result = yield* Fiber.join(broken.fiber)
        assert.strictEqual(Result.isFailure(result) ? result.failure.kind : undefined, kind)
        assert.deepStrictEqual(broken.shown, [...shown])
      }
    })
  )
})

describe("the wire of a scripted model", () => {
  it.effect("is kept and played back, by the same model and by one without a script", () =>
    Effect.gen(function* () {
      const turn = {
        text: "Hello, 世界! It is a longer text than one piece.",
        reasoning: [{ text: "hm" }, { text: "a thought of several pieces", signature: "s" }, { text: "" }],
        tool_calls: [{ name: "f", arguments: { a: 1 } }]
      }
      const script = [
        turn,
        limited,
        { ...turn, break_after: 0 },
        { ...turn, break_after: 2 },
        { ...turn, break_after: 4, break_with: limited },
        { ...turn, break_after: 99 }
      ]
      const model = scriptedModel(script)
      const originals = yield* Effect.forEach([...script, "exhausted"], () => watch(model))
      assert.deepStrictEqual(
        originals.map(({ events, failure }) => [events.length, failure?.kind ?? null]),
        [
          [7, null],
          [0, "rate_limit"],
          [0, "truncated_stream"],
          [2, "truncated_stream"],
          [4, "rate_limit"],
          [7, null],
          [0, "provider"]
        ]
      )
      for (const original of originals) {
        const exchange = yield* agrees(model, original)
        const again = yield* watch(model, { recorded: exchange })
        assert.deepStrictEqual([again.events, again.failure], [original.events, original.failure])
        assert.deepStrictEqual(keptOf(again), exchange)
      }
      const other = request([{ role: "user", content: "More." }])
      const [first] = originals
      const recorded = first === undefined ? assert.fail() : keptOf(first)
      const sent = keptOf(yield* watch(model, { recorded, sent: other })).sent
      assert.notStrictEqual(sent, recorded.sent)
      assert.deepInclude(recorded, { status: 200, answered_at_ms: 0, fault: null })
      assert.deepStrictEqual(recorded.pieces, [new TextEncoder().encode(recorded.body.text).length])
      assert.lengthOf(yield* model.requests, 2 * originals.length + 1)
    })
  )

  it.effect("keeps nothing of a turn that was given up", () =>
    Effect.gen(function* () {
      const model = scriptedModel([{ text: "abc", stall_after: 1 }])
      const kept: Array<Exchange> = []
      const fiber = yield* Effect.forkChild(watch(model, { kept }), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.isEmpty(kept)
    })
  )

  it.effect("refuses what another adapter recorded", () =>
    Effect.gen(function* () {
      const recorded = keptOf(yield* watch(scriptedModel([{ text: "a" }])))
      const model = yield* replayedModel({ provider: "host", model: "own", endpoint: "http://h.example" })
      assert.deepInclude(model, { provider: "host", model: "own", endpoint: null })
      for (const changed of [
        { ...recorded, body: { encoding: "utf8", text: "data: {}" } as const },
        { ...recorded, status: null },
        { ...recorded, fault: { kind: "failed", code: "", message: "no facts" } as const }
      ])
        assert.deepInclude((yield* watch(model, { recorded: changed })).failure, {
          kind: "protocol",
          retryable: false
        })
    })
  )
})

describe("a recorded model", () => {
  it.effect("plays turns from JSON, and refuses what is none", () =>
    Effect.gen(function* () {
      const usage = {
        input_tokens: 1,
        output_tokens: 2,
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        provider_total_tokens: null
      }
      const turn = {
        text: "done",
        reasoning: [],
        tool_calls: [{ id: "a", name: "f", arguments: { x: 1 } }],
        finish_reason: "tool_use",
        usage
      }
      const model = yield* recordedModel([turn])
      assert.strictEqual(model.provider, "recorded")
      assert.deepStrictEqual<unknown>((yield* collect(model.stream(request()))).turn, turn)
      assert.strictEqual(
        (yield* Effect.flip(recordedModel([{ ...turn, finish_reason: "?" }])))._tag,
        "SchemaError"
      )
    })
  )
})
