import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { fromOctets, toOctets } from "../../../src/domain/Octets.ts"
import type { Exchange } from "../../../src/domain/Wire.ts"
import {
  chunked,
  cutAfter,
  endAfter,
  gate,
  gated,
  hangUp,
  html,
  raw,
  splitUtf8,
  stall,
  status,
  turn,
  type Step
} from "../../support/ModelServer.ts"
import { key, modelAt, request, serving } from "./harness.ts"
import { agrees, keptOf, replayed, stored, waitOut, watch, type Watched } from "./playback.ts"

const providers = ["openai-compatible", "anthropic"] as const
const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex")

const spoken = {
  text: "Grüße, 世界 🌍: the answer is 42.",
  reasoning: "First read.",
  toolCalls: [{ id: "t1", name: "read_file", arguments: { path: "a", note: "世界" } }]
}
/** The deltas as one text, without the key. */
const told = (watched: Watched) =>
  watched.events
    .map((event) => (event.type === "completed" ? "" : event.text))
    .join("")
    .replaceAll(key, "[redacted]")

const sse = { "content-type": "text/event-stream" }
const openAi = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const reported = (at: number) =>
  `data: ${JSON.stringify({ type: "error", error: { type: "rate_limit_error", message: "x", resets_at: at } })}\n\n`
const end = (provider: string) =>
  provider === "anthropic"
    ? `data: {"type":"message_start","message":{}}\n\ndata: {"type":"message_stop"}\n\n`
    : `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`

describe.each(providers)("the wire of %s", (provider) => {
  it.effect("is kept and played back, however the answer ends", () =>
    Effect.gen(function* () {
      const whole = turn(spoken)
      const limits = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000" }
      const steps: Readonly<Record<string, Step>> = {
        whole,
        "within characters": splitUtf8(whole),
        bytes: chunked(whole, "1 byte each"),
        "no terminal event": turn({ text: "half", terminal: false }),
        cut: cutAfter(120, whole),
        reset: cutAfter(120, whole, { reset: true }),
        ended: endAfter(120, whole),
        "nothing at all": raw({ body: "" }),
        "no data of ours": raw({ body: "data: {broken}\n\ndata: {}\n\n" }),
        "no message": raw({ body: "data: {}\n\ndata: [DONE]\n\n" }),
        "ends twice": raw({ body: end(provider) + end(provider) }),
        "open after the end": stall({
          after: end(provider).length,
          step: raw({ body: `${end(provider)}: more` })
        }),
        "bytes that are no text": raw({ body: Uint8Array.of(0xff, 0xfe, 10, 10) }),
        json: raw({ headers: { "content-type": "application/json" }, body: '{"error":{"message":"x"}}' }),
        page: raw({ headers: { "content-type": "text/html" }, body: "<html><title>Sign in</title></html>" }),
        "no content": raw({ status: 204, body: "" }),
        "an error inside": raw({ body: openAi("a") + reported(2_000_000_000) }),
        limited: raw({ status: 429, headers: { ...limits, "set-cookie": "a=b" }, body: '{"error":{}}' }),
        "retry at": status(503, {
          headers: { date: "?", "retry-after": "Thu, 01 Jan 1970 05:00:00 GMT", "x-request-id": "r" }
        }),
        html: html(502),
        redirect: raw({ status: 307, headers: { location: "http://127.0.0.1:1/" }, body: "" }),
        "a long refusal": chunked(raw({ status: 500, body: "x".repeat(300_000) }), [30_000, 30_000, 30_000]),
        "a cut refusal": cutAfter(10, status(400, { message: "context_length_exceeded" })),
        "no answer": hangUp()
      }
      const names = Object.keys(steps)
      const server = yield* serving(Object.values(steps))
      const model = yield* modelAt(server, provider)
      const originals: Array<Watched> = []
      for (const at of names.keys()) {
        yield* TestClock.adjust("12345 millis")
        originals.push(yield* watch(model))
        const call = server.calls[at]
        assert.strictEqual(originals[at]?.kept[0]?.sent, sha256(call?.rawBody ?? ""), names[at])
      }
      yield* Effect.promise(() => server.close())
      // Nobody listens any more.
      originals.push(yield* watch(model))
      const kept = new Map<string, Exchange>()
      for (const [at, original] of originals.entries())
        kept.set(names[at] ?? "refused", yield* agrees(model, original))

      const of = (name: string) => kept.get(name) ?? assert.fail(name)
      const shapes = (name: string) => [of(name).status, of(name).fault?.kind ?? null]
      for (const name of ["whole", "bytes", "no terminal event", "ended", "nothing at all", "ends twice"])
        assert.deepStrictEqual(shapes(name), [200, null], name)
      assert.deepStrictEqual(shapes("cut"), [200, "failed"])
      assert.deepStrictEqual(shapes("reset"), [200, "failed"])
      assert.deepStrictEqual(shapes("a cut refusal"), [400, "failed"])
      assert.deepStrictEqual(shapes("limited"), [429, null])
      assert.deepStrictEqual(shapes("no answer"), [null, "failed"])
      assert.deepStrictEqual(of("refused").fault?.code, "ECONNREFUSED")
      assert.strictEqual(of("whole").answered_at_ms, 12_345)
      assert.isAbove(of("bytes").pieces.length, 100)
      assert.strictEqual(of("bytes that are no text").body.encoding, "base64")
      assert.notProperty(of("limited").headers, "set-cookie")
      assert.strictEqual(of("limited").headers["x-ratelimit-remaining"], "0")
      const long = fromOctets(of("a long refusal").body).length
      assert.isTrue(long >= 65_536 && long < 300_000, String(long))
      assert.isAtMost(fromOctets(of("cut").body).length, 120)
      for (const name of names)
        for (const header of Object.keys(of(name).headers)) assert.strictEqual(header, header.toLowerCase())
    })
  )

  it.effect("keeps silence as silence, wherever it falls", () =>
    Effect.gen(function* () {
      const steps = [
        stall({ after: "before headers" }),
        stall({ after: 8, step: raw({ body: ": hello\n: more\n" }) }),
        stall({ after: 4, step: status(500) })
      ]
      const server = yield* serving(steps)
      const model = yield* modelAt(server, provider)
      const originals: Array<Watched> = []
      for (const at of steps.keys()) {
        const fiber = yield* Effect.forkChild(watch(model))
        yield* Effect.promise(() => server.received(at + 1))
        originals.push(yield* waitOut(fiber))
      }
      yield* Effect.promise(() => server.close())
      const kept: Array<Exchange> = []
      for (const original of originals) kept.push(yield* agrees(model, original))
      assert.deepStrictEqual(
        kept.map(({ fault, status }) => [status, fault?.kind, fault?.message]),
        [
          [null, "silent", "did not answer within 280 seconds"],
          [200, "silent", "no data for 180 seconds"],
          [500, "silent", "did not answer within 280 seconds"]
        ]
      )
    })
  )

  it.effect("keeps nothing of a request that was given up, and plays silence until it is", () =>
    Effect.gen(function* () {
      const server = yield* serving([stall({ after: 40 }), stall({ after: "before headers" }), turn(spoken)])
      const model = yield* modelAt(server, provider)
      for (const at of [1, 2]) {
        const kept: Array<Exchange> = []
        const fiber = yield* Effect.forkChild(watch(model, { kept }))
        const call = yield* Effect.promise(() => server.received(at))
        yield* Fiber.interrupt(fiber)
        yield* Effect.promise(() => call.closed)
        assert.isEmpty(kept)
      }
      const exchange = keptOf(yield* watch(model))
      const fault = { kind: "silent", code: "", message: "" } as const
      const timers = () => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length
      for (const quiet of [
        { ...exchange, fault },
        { ...exchange, status: 500, fault },
        { ...exchange, status: null, fault }
      ]) {
        const before = timers()
        const fiber = yield* Effect.forkChild(watch(model, { recorded: quiet }))
        yield* TestClock.adjust("100 seconds")
        assert.isUndefined(fiber.pollUnsafe())
        yield* Fiber.interrupt(fiber)
        // An SDK's own timer lasts for weeks and would hold the process.
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        assert.isAtMost(timers(), before)
      }
    })
  )

  it.effect("plays the same turn from any cut of the bytes", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn(spoken)])
      const model = yield* modelAt(server, provider)
      const original = yield* watch(model)
      yield* Effect.promise(() => server.close())
      const exchange = keptOf(original)
      const player = yield* replayed(model)
      const size = fromOctets(exchange.body).length
      const context = yield* Effect.context()
      const lengths = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 200 })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(lengths, async (pieces) => {
            const recorded = { ...exchange, pieces }
            const again = await Effect.runPromiseWith(context)(watch(player, { recorded }))
            assert.deepStrictEqual(again.events.at(-1), original.events.at(-1))
            const read = keptOf(again)
            assert.deepStrictEqual(read.body, exchange.body)
            assert.strictEqual(
              read.pieces.reduce((sum, each) => sum + each, 0),
              size
            )
            const asked = pieces.slice(0, read.pieces.length - 1)
            assert.deepStrictEqual(read.pieces.slice(0, asked.length), asked)
          }),
          { numRuns: 40 }
        )
      )
    })
  )

  it.effect("tells a request that differs by its digest", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn(spoken)])
      const model = yield* modelAt(server, provider)
      const recorded = keptOf(yield* watch(model))
      const sent = request([{ role: "user", content: "More." }])
      const other = keptOf(yield* watch(model, { recorded, sent }))
      assert.notStrictEqual(other.sent, recorded.sent)
      assert.deepStrictEqual({ ...other, sent: recorded.sent }, recorded)
    })
  )

  it.effect("keeps no key that its server repeats, and plays the turn that was told", () =>
    Effect.gen(function* () {
      const said = { text: `You sent ${key}, I say.`, reasoning: `It sent ${key}.` }
      const args = { toolCalls: [{ id: "t", name: "f", arguments: { key } }] }
      const headers = { ...sse, "x-request-id": `for ${key}`, "x-key": key }
      const server = yield* serving([
        turn({ ...said, chunkSize: 1_000 }),
        chunked(turn({ ...said, chunkSize: 1_000 }), "1 byte each"),
        turn({ ...said, chunkSize: 5 }),
        turn({ ...said, chunkSize: 1 }),
        cutAfter(100_000, turn({ ...said, chunkSize: 7, terminal: false })),
        status(401, { headers, message: `Incorrect API key provided: ${key}` }),
        chunked(raw({ status: 400, headers, body: `no ${key}` }), "1 byte each"),
        turn({ ...args, chunkSize: 5 })
      ])
      const model = yield* modelAt(server, provider)
      const originals: Array<Watched> = []
      for (let at = 0; at < 8; at++) originals.push(yield* watch(model))
      yield* Effect.promise(() => server.close())
      for (const original of originals) {
        const exchange = keptOf(original)
        assert.notInclude(JSON.stringify(exchange), key)
        const player = yield* replayed(model)
        const again = yield* watch(player, { recorded: stored(exchange) })
        assert.strictEqual(told(again), told(original))
        assert.notInclude(told(again), "012345")
        // Signed thoughts are told as they came, and kept without the key.
        const last = JSON.stringify(original.events.at(-1) ?? null).replaceAll(key, "[redacted]")
        if (original.failure === null) assert.strictEqual(JSON.stringify(again.events.at(-1)), last)
        assert.deepStrictEqual(again.failure, original.failure)
        assert.deepStrictEqual(keptOf(again), exchange)
      }
      assert.include(originals[0]?.kept[0]?.body.text, "You sent [redacted], I say.")
      assert.include(originals[5]?.kept[0]?.headers["x-request-id"], "for [redacted]")
      const last = originals[7]?.events.at(-1)
      assert.deepStrictEqual<unknown>(last?.type === "completed" && last.turn.tool_calls[0]?.arguments, {
        key: "[redacted]"
      })
    })
  )
})

describe("requests at the same time", () => {
  it.effect("never mix, of one model or of several", () =>
    Effect.gen(function* () {
      const door = gate()
      const server = yield* serving((received) => {
        const found = /question (\d+)/.exec(received.rawBody.toString())?.[1] ?? ""
        return gated(turn({ text: `answer ${found}.` }), door)
      })
      const models = [yield* modelAt(server, "openai-compatible"), yield* modelAt(server, "anthropic")]
      const all = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 24 }, (_, at) => at),
          (at) => {
            const model = models[at % 2]
            const sent = request([{ role: "user", content: `question ${at}` }])
            return model === undefined ? Effect.die(at) : watch(model, { sent })
          },
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.promise(() => server.received(24))
      door.open()
      const watched = yield* Fiber.join(all)
      for (const [at, each] of watched.entries()) {
        const exchange = keptOf(each)
        const call = server.calls.find(({ rawBody }) => rawBody.includes(`question ${at}"`))
        assert.strictEqual(exchange.sent, sha256(call?.rawBody ?? ""))
        assert.strictEqual(call?.protocol, at % 2 === 0 ? "openai-chat" : "anthropic")
        const last = each.events.at(-1)
        assert.strictEqual(last?.type === "completed" && last.turn.text, `answer ${at}.`)
      }
      // All of them played at once, from recordings of each other's models.
      yield* Effect.promise(() => server.close())
      const again = yield* Effect.forEach(
        watched,
        (each, at) => {
          const model = models[at % 2]
          const sent = request([{ role: "user", content: `question ${at}` }])
          return model === undefined ? Effect.die(at) : watch(model, { sent, recorded: keptOf(each) })
        },
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(again, watched)
    })
  )

  it.effect("are each on the wire of whoever runs the stream, not of whoever made it", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: "a" }), turn({ text: "b" })])
      const model = yield* modelAt(server, "openai-compatible")
      const held = yield* Deferred.make<void>()
      const watching = yield* watch(model, { onEvent: () => Deferred.await(held) }).pipe(Effect.forkChild)
      yield* Effect.promise(() => server.received(1))
      const second = yield* watch(model)
      yield* Deferred.succeed(held, undefined)
      const first = yield* Fiber.join(watching)
      assert.include(keptOf(first).body.text, '"a"')
      assert.include(keptOf(second).body.text, '"b"')
    })
  )
})

describe("a replayed model", () => {
  it.effect("asks nobody when nothing is recorded", () =>
    Effect.gen(function* () {
      const server = yield* serving([])
      const model = yield* replayed(yield* modelAt(server, "openai-compatible"))
      const watched = yield* watch(model)
      assert.deepInclude(watched.failure, { kind: "provider", retryable: false })
      assert.isEmpty(watched.kept)
      assert.isEmpty(server.requests)
    })
  )

  it.effect("says so when what was recorded was changed", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: "right" })])
      const model = yield* modelAt(server, "openai-compatible")
      const exchange = keptOf(yield* watch(model))
      const text = exchange.body.text.replace("right", "wrong and longer")
      const body = toOctets(new TextEncoder().encode(text))
      const played = yield* watch(yield* replayed(model), { recorded: { ...exchange, body } })
      const last = played.events.at(-1)
      assert.strictEqual(last?.type === "completed" && last.turn.text, "wrong and longer")
    })
  )
})
