import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  chunked,
  cutAfter,
  gate,
  gated,
  hangUp,
  html,
  raw,
  splitUtf8,
  stall,
  status,
  turn
} from "../../support/ModelServer.ts"
import { collect, failureOf, key, modelAt, request, serving, turnOf } from "./harness.ts"

const providers = ["openai-compatible", "anthropic", "ollama"] as const
const text = "Grüße, 世界 🌍: the answer is 42."
const spoken = {
  text,
  reasoning: "First read.",
  toolCalls: [{ id: "t1", name: "read_file", arguments: { path: "a", note: "世界" } }],
  usage: { input: 900, cached: 300, output: 77 }
}

/** Two events of text; the connection then stays as it is. */
const openAi = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const finished = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`

/** The beginning of a body, up to its first piece of text. */
const firstPiece = (provider: string) => {
  if (provider !== "anthropic") return openAi("x")
  const block = { type: "content_block_start", index: 0, content_block: { type: "text", text: "x" } }
  return `event: content_block_start\ndata: ${JSON.stringify(block)}\n\n`
}
const stallAfter = (body: string) => stall({ after: body.length, step: raw({ body: `${body}: more\n\n` }) })

describe.each(providers)("a model of %s", (provider) => {
  it.effect("streams a turn, whatever the cuts", () =>
    Effect.gen(function* () {
      const whole = turn(spoken)
      const server = yield* serving([whole, splitUtf8(whole), chunked(whole, "1 byte each")])
      for (const cut of ["as rendered", "within characters", "bytes"]) {
        const played = yield* turnOf(server, provider)
        assert.deepStrictEqual(
          [played.text, played.turn.text, played.reasoning],
          [text, text, "First read."],
          cut
        )
        assert.deepStrictEqual<unknown>(played.turn.tool_calls, [
          { id: "t1", name: "read_file", arguments: { path: "a", note: "世界" } }
        ])
        assert.strictEqual(played.turn.finish_reason, "tool_use")
        assert.deepInclude(played.turn.usage, {
          input_tokens: 900,
          cached_input_tokens: 300,
          output_tokens: 77
        })
        assert.isAtLeast(played.events.length, 4)
      }
      assert.isEmpty(server.violations)
    })
  )

  it.effect("shows a piece while the rest is still held back", () =>
    Effect.gen(function* () {
      const door = gate()
      const server = yield* serving([gated(turn({ text: "one two", chunkSize: 3 }), new Map([[4, door]]))])
      const model = yield* modelAt(server, provider)
      const shown = yield* Deferred.make<string>()
      const fiber = yield* model.stream(request()).pipe(
        Stream.tap((event) => (event.type === "text" ? Deferred.succeed(shown, event.text) : Effect.void)),
        collect,
        Effect.forkChild
      )
      assert.strictEqual(yield* Deferred.await(shown), "one")
      door.open()
      assert.strictEqual((yield* Fiber.join(fiber)).text, "one two")
    })
  )

  it.effect("closes its connection at once when it is interrupted", () =>
    Effect.gen(function* () {
      const server = yield* serving([stall({ after: 40 }), stall({ after: "before headers" })])
      const model = yield* modelAt(server, provider)
      for (const at of [1, 2]) {
        const fiber = yield* Effect.forkChild(collect(model.stream(request())))
        const received = yield* Effect.promise(() => server.received(at))
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* Effect.promise(() => received.closed), "aborted by client")
      }
    })
  )

  it.effect("takes no cut answer for a whole one", () =>
    Effect.gen(function* () {
      const said = turn({ text: "half" })
      const steps = [
        turn({ text: "half", terminal: false }),
        cutAfter(120, said),
        cutAfter(120, said, { reset: true })
      ]
      const server = yield* serving(steps)
      for (const error of yield* Effect.replicateEffect(failureOf(server, provider), steps.length))
        assert.deepStrictEqual([error.kind, error.retryable], ["truncated_stream", true])
    })
  )

  it.effect("waits a bounded time for the answer and for every piece of it", () =>
    Effect.gen(function* () {
      const silent = stall({ after: "before headers" })
      const server = yield* serving([silent, stallAfter(firstPiece(provider))])
      const model = yield* modelAt(server, provider)
      const shown = yield* Deferred.make<void>()
      const asking = model.stream(request()).pipe(
        Stream.tap(() => Deferred.succeed(shown, undefined)),
        Stream.runDrain,
        Effect.flip
      )
      for (const [at, seconds, why] of [
        [1, 280, /did not answer within 280 seconds/],
        [2, 180, /no data for 180 seconds/]
      ] as const) {
        const fiber = yield* Effect.forkChild(asking)
        const received = yield* Effect.promise(() => server.received(at))
        if (at === 2) yield* Deferred.await(shown)
        yield* TestClock.adjust(`${seconds - 1} seconds`)
        assert.isUndefined(fiber.pollUnsafe())
        // The wait for the next piece may begin a moment after the clock was moved.
        for (let n = 0; n < seconds && fiber.pollUnsafe() === undefined; n++)
          yield* TestClock.adjust("1 second")
        const error = yield* Fiber.join(fiber)
        assert.deepStrictEqual([error.kind, error.retryable], ["retryable", true])
        assert.match(error.message, why)
        assert.strictEqual(yield* Effect.promise(() => received.closed), "aborted by client")
      }
    })
  )

  it.effect("loads what it needs again when the first load was interrupted", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: "ok" })])
      const model = yield* modelAt(server, provider)
      const warming = yield* Effect.forkChild(model.warm, { startImmediately: true })
      yield* Fiber.interrupt(warming)
      assert.strictEqual((yield* collect(model.stream(request()))).text, "ok")
    })
  )

  it.effect("says what went wrong, and never the key", () =>
    Effect.gen(function* () {
      const server = yield* serving([
        status(401, { message: `Incorrect API key provided: ${key}` }),
        status(429, { headers: { "retry-after": "7", "x-request-id": "req_7" } }),
        html(502),
        hangUp(),
        raw({ status: 307, headers: { location: "http://127.0.0.1:1/elsewhere" }, body: "" }),
        raw({ headers: { "content-type": "text/html" }, body: "<html><title>Sign in</title></html>" }),
        raw({
          headers: { "content-type": "application/json" },
          body: '{"error":{"type":"overloaded_error","message":"x"}}'
        }),
        raw({ body: "" }),
        raw({ status: 504, body: "upstream timed out" }),
        status(500, { headers: { "x-request-id": `for ${key}`, "cf-ray": key } })
      ])
      const errors = yield* Effect.replicateEffect(failureOf(server, provider), 10)
      assert.deepStrictEqual(
        errors.map((error) => [error.kind, error.retryable, error.status_code]),
        [
          ["auth", false, 401],
          ["rate_limit", true, 429],
          ["provider", true, 502],
          ["retryable", true, null],
          ["provider", false, 307],
          ["provider", true, null],
          ["overloaded", true, null],
          ["truncated_stream", true, null],
          ["provider", true, 504],
          ["provider", true, 500]
        ]
      )
      assert.deepStrictEqual([errors[1]?.retry_after_ms, errors[1]?.request_id], [7_000, "req_7"])
      assert.match(errors[5]?.message ?? "", /Sign in, a web page/)
      for (const error of errors) {
        assert.notInclude(JSON.stringify(error.facts), key)
        assert.deepInclude(error.facts, { provider, model: "m" })
      }
      assert.lengthOf(server.requests, 10)
    })
  )

  it.effect("keeps no key that its server repeats in an answer", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: `You sent ${key}.`, reasoning: `It sent ${key}.` })])
      const played = yield* turnOf(server, provider)
      // A local Ollama is never sent a key, so it cannot repeat one.
      if (provider === "ollama") return
      assert.strictEqual(played.turn.text, "You sent [redacted].")
      const unsigned = played.turn.reasoning.filter((each) => each.signature === undefined)
      assert.notInclude(JSON.stringify(unsigned), key)
    })
  )

  it.effect("sends the key to its server, and nothing about this machine or its traces", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: "ok" })])
      yield* turnOf(server, provider).pipe(Effect.withSpan("outer"))
      const headers = server.calls[0]?.headers ?? {}
      const network = new Set([
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "host",
        "sec-fetch-mode"
      ])
      const ours = Object.keys(headers).filter((name) => !network.has(name))
      const anthropic = provider === "anthropic"
      assert.sameMembers(ours, [
        "accept",
        "content-type",
        "user-agent",
        ...(anthropic ? ["x-api-key", "anthropic-version"] : ["authorization"])
      ])
      const sent = anthropic ? headers["x-api-key"] : headers["authorization"]?.slice("Bearer ".length)
      // A key for a remote Ollama is not shown to a local one.
      if (provider === "ollama") assert.notStrictEqual(sent, key)
      else assert.strictEqual(sent, key)
    })
  )
})

describe("the ends of an OpenAI-style stream", () => {
  it.effect("are good when the reason came, however the connection ends", () =>
    Effect.gen(function* () {
      const body = openAi("Hel") + openAi("lo") + finished
      const server = yield* serving([
        raw({ body }),
        raw({ body: body.trimEnd() }),
        cutAfter(body.length, raw({ body })),
        raw({ body: `${openAi("Hello")}data: [DONE]` }),
        raw({ body: `\ufeff: hi\r\n\r\n${body.replaceAll("\n", "\r\n")}data: [DONE]\r\n\r\n` })
      ])
      for (const played of yield* Effect.replicateEffect(turnOf(server, "openai-compatible"), 5))
        assert.deepStrictEqual([played.text, played.turn.finish_reason], ["Hello", "stop"])
    })
  )

  it.effect("are cut, not broken, when the last piece is", () =>
    Effect.gen(function* () {
      const cut = openAi("Hello") + openAi("world").slice(0, -12)
      const server = yield* serving([
        raw({ body: cut }),
        raw({ body: `${openAi("x")}data: {broken}\n\n${finished}` })
      ])
      const errors = yield* Effect.replicateEffect(failureOf(server, "openai-compatible"), 2)
      assert.deepStrictEqual(
        errors.map((error) => error.kind),
        ["truncated_stream", "protocol"]
      )
    })
  )

  it.effect("may come whole, as JSON", () =>
    Effect.gen(function* () {
      const headers = { "content-type": "application/json; charset=utf-8" }
      const message = { role: "assistant", content: "whole" }
      const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] })
      const server = yield* serving([raw({ headers, body })])
      assert.strictEqual((yield* turnOf(server, "openai-compatible")).turn.text, "whole")
    })
  )

  it.effect("do not wait for a server that keeps the connection open", () =>
    Effect.gen(function* () {
      const body = `${openAi("Hello")}${finished}data: [DONE]\n\n`
      const server = yield* serving([stallAfter(body)])
      assert.strictEqual((yield* turnOf(server, "openai-compatible")).text, "Hello")
      const [received] = server.calls
      assert.strictEqual(yield* Effect.promise(async () => received?.closed), "aborted by client")
    })
  )
})

describe("broken tool arguments", () => {
  const answering = (args: string, finish?: string) =>
    turn({
      toolCalls: [{ id: "a", name: "write", arguments: args }],
      ...(finish === undefined ? {} : { finish })
    })
  it.effect.each(["openai-compatible", "anthropic"])("of %s are repaired or kept as they came", (provider) =>
    Effect.gen(function* () {
      const broken = '{"path":"a","content":"line1\nline2"}'
      const server = yield* serving([answering(broken), answering(broken, "length"), answering('{"path":"a')])
      const turns = yield* Effect.replicateEffect(turnOf(server, provider), 3)
      assert.deepStrictEqual<unknown>(
        turns.map(({ turn }) => turn.tool_calls[0]),
        [
          { id: "a", name: "write", arguments: { path: "a", content: "line1\nline2" } },
          { id: "a", name: "write", arguments: {}, invalid_arguments: broken },
          { id: "a", name: "write", arguments: {}, invalid_arguments: '{"path":"a' }
        ]
      )
      assert.strictEqual(turns[1]?.turn.finish_reason, "length")
    })
  )
})

describe("a process", () => {
  it("ends by itself after its last answer, though the server keeps connections alive", async () => {
    const http = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end(`${openAi("done")}${finished}data: [DONE]\n\n`)
    })
    http.keepAliveTimeout = 0
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
    try {
      const address = http.address()
      const port = typeof address === "object" ? address?.port : undefined
      const script = fileURLToPath(new URL("askOnce.ts", import.meta.url))
      const child = spawn(process.execPath, [script, `http://127.0.0.1:${port}/v1`])
      let output = ""
      child.stdout.on("data", (piece) => (output += String(piece)))
      child.stderr.on("data", (piece) => (output += String(piece)))
      const code = await new Promise((resolve) => child.on("close", resolve))
      assert.deepStrictEqual([output, code], ["done", 0])
    } finally {
      http.closeAllConnections()
      http.close()
    }
  })
})
