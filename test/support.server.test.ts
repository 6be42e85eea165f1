import { existsSync, readFileSync } from "node:fs"
import { request as httpRequest } from "node:http"
import { fileURLToPath } from "node:url"
import Anthropic, { APIError, AuthenticationError as AnthropicAuthenticationError } from "@anthropic-ai/sdk"
import OpenAI, {
  APIUserAbortError,
  AuthenticationError as OpenAIAuthenticationError,
  InternalServerError,
  RateLimitError
} from "openai"
import { assert, describe, it } from "vitest"
import {
  cutAfter,
  endAfter,
  gate,
  gated,
  hangUp,
  html,
  raw,
  splitUtf8,
  stall,
  startModelServer,
  status,
  turn,
  type Chunks,
  type ModelServer
} from "./support/ModelServer.ts"
import { cut } from "./support/wire/deliver.ts"
import { asArray, isRecord } from "./support/wire/types.ts"

const text = "Grüße, 世界 🌍: the answer is 42."
const call = { name: "read_file", arguments: { path: "src/add.js", lines: [1, 20], note: "世界" } }
const full = {
  text,
  reasoning: "First read, then edit.",
  toolCalls: [call, { name: "list_files", arguments: "{}" }],
  usage: { input: 900, cached: 300, cacheWrite: 100, output: 77, reasoning: 11 }
}

const openai = (server: ModelServer, apiKey = "x") =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 })
const anthropic = (server: ModelServer, apiKey = "x") =>
  new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 })

const chat = { model: "m", messages: [{ role: "user" as const, content: "hi" }] }
const message = { ...chat, max_tokens: 100 }

const streamed = async (server: ModelServer) => {
  const deltas: Array<string> = []
  const args: Array<string> = []
  let finish: string | null = null
  let usage: OpenAI.CompletionUsage | null | undefined
  const options = { include_usage: true }
  for await (const chunk of await openai(server).chat.completions.create({
    ...chat,
    stream: true,
    stream_options: options
  })) {
    const choice = chunk.choices[0]
    deltas.push(choice?.delta.content ?? "")
    for (const part of choice?.delta.tool_calls ?? []) {
      args[part.index] = (args[part.index] ?? "") + (part.function?.arguments ?? "")
    }
    finish = choice?.finish_reason ?? finish
    usage = chunk.usage ?? usage
  }
  return { text: deltas.join(""), deltas: deltas.filter((part) => part !== "").length, args, finish, usage }
}

const post = (server: ModelServer, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })

/** The body as it arrived: one part per read, and how it ended. */
const parts = async (response: Response) => {
  const read: Array<Buffer> = []
  try {
    for await (const part of response.body ?? []) read.push(Buffer.from(part))
    return { read, whole: Buffer.concat(read), failed: false }
  } catch {
    return { read, whole: Buffer.concat(read), failed: true }
  }
}

const failure = async (promise: Promise<unknown>) => {
  try {
    await promise
  } catch (cause) {
    return cause
  }
  return assert.fail("it should have failed")
}

describe("one script, two protocols", () => {
  it("streams a turn to the openai client", async () => {
    await using server = await startModelServer([turn(full)])
    const got = await streamed(server)
    assert.strictEqual(got.text, text)
    assert.isAbove(got.deltas, 1)
    assert.deepStrictEqual(
      got.args.map((each) => JSON.parse(each)),
      [call.arguments, {}]
    )
    assert.strictEqual(got.finish, "tool_calls")
    assert.strictEqual(got.usage?.prompt_tokens, 900)
    assert.strictEqual(got.usage?.prompt_tokens_details?.cached_tokens, 300)
    assert.strictEqual(got.usage?.completion_tokens, 77)
    assert.strictEqual(server.remaining, 0)
    const request = server.calls[0]
    assert.strictEqual(request?.headers["authorization"], "Bearer x")
    assert.deepStrictEqual(JSON.parse(request?.rawBody.toString() ?? ""), request?.json)
    assert.strictEqual(await request?.closed, "complete")
  })

  it("answers the openai client in one piece", async () => {
    await using server = await startModelServer([turn({ ...full, finish: "length" })])
    const answer = await openai(server).chat.completions.create(chat)
    assert.strictEqual(answer.choices[0]?.message.content, text)
    assert.strictEqual(answer.choices[0]?.message.tool_calls?.[1]?.id, "call_0_1")
    assert.strictEqual(answer.choices[0]?.finish_reason, "length")
    assert.strictEqual(answer.usage?.total_tokens, 977)
  })

  it("streams a turn to the anthropic client, with pings and split arguments", async () => {
    await using server = await startModelServer([turn(full)])
    const stream = anthropic(server).messages.stream(message)
    const kinds: Array<string> = []
    stream.on("streamEvent", (event) =>
      kinds.push(event.type === "content_block_delta" ? event.delta.type : event.type)
    )
    const answer = await stream.finalMessage()
    assert.deepStrictEqual(
      answer.content.map((block) => block.type),
      ["thinking", "text", "tool_use", "tool_use"]
    )
    const [, said, used] = answer.content
    assert.strictEqual(said?.type === "text" ? said.text : "", text)
    assert.deepStrictEqual(used?.type === "tool_use" ? used.input : {}, call.arguments)
    assert.strictEqual(answer.stop_reason, "tool_use")
    assert.deepInclude(answer.usage, {
      input_tokens: 500,
      cache_read_input_tokens: 300,
      cache_creation_input_tokens: 100,
      output_tokens: 77
    })
    assert.isAbove(kinds.filter((kind) => kind === "input_json_delta").length, 4)
    assert.include(kinds, "signature_delta")
    assert.include(
      (await parts(await post(server, "/v1/messages", message))).whole.toString(),
      "anthropic-version"
    )
  })

  it("puts pings between the blocks of an anthropic stream", async () => {
    await using server = await startModelServer([turn(full)])
    const answer = await post(
      server,
      "/v1/messages",
      { ...message, stream: true },
      { "anthropic-version": "1" }
    )
    assert.match(await answer.text(), /event: ping\ndata: \{"type":"ping"\}\n\n/)
  })

  it("answers the anthropic client in one piece", async () => {
    await using server = await startModelServer([turn({ text, finish: "length" })])
    const answer = await anthropic(server).messages.create(message)
    assert.deepInclude(answer, { stop_reason: "max_tokens", model: "m" })
    assert.strictEqual(answer.content.length, 1)
  })

  it("ends a stream cleanly without its terminal event when told to", async () => {
    await using server = await startModelServer([
      turn({ text, terminal: false }),
      turn({ text, terminal: false })
    ])
    const got = await streamed(server)
    assert.deepInclude(got, { text, finish: null })
    const body = { ...message, stream: true }
    const answer = await post(server, "/v1/messages", body, { "anthropic-version": "1" })
    assert.notMatch(await answer.text(), /message_stop|message_delta/)
  })

  it("takes the script as a function and lists models", async () => {
    await using server = await startModelServer(
      (request, at) => (at < 2 ? turn({ text: `${at} ${request.protocol}` }) : undefined),
      { models: ["m"] }
    )
    assert.strictEqual(
      (await openai(server).chat.completions.create(chat)).choices[0]?.message.content,
      "0 openai-chat"
    )
    assert.strictEqual((await streamed(server)).text, "1 openai-chat")
    const ids: Array<string> = []
    for await (const model of openai(server).models.list()) ids.push(model.id)
    assert.deepStrictEqual(ids, ["m"])
    assert.deepStrictEqual([server.requests.length, server.calls.length, server.unexpected.length], [3, 2, 0])
  })
})

describe("bytes and faults", () => {
  const bodyOf = async (server: ModelServer) => parts(await post(server, "/anything", {}))

  it("delivers exactly the bytes, cut as told", async () => {
    const body = "a\r\nü\r🌍\n"
    const expected: ReadonlyArray<readonly [Chunks, ReadonlyArray<string>]> = [
      ["whole", [body]],
      ["1 byte each", Array.from(Buffer.from(body), (byte) => Buffer.from([byte]).toString("latin1"))],
      ["cut after every \\r", ["a\r", "\nü\r", "🌍\n"]],
      [
        [2, 1],
        ["a\r", "\n", "ü\r🌍\n"]
      ],
      [[200], [body]]
    ]
    await using server = await startModelServer(expected.map(([chunks]) => raw({ body, chunks })))
    for (const [chunks, pieces] of expected) {
      const encoding = chunks === "1 byte each" ? "latin1" : "utf8"
      const written = cut([Buffer.from(body)], chunks).map((piece) => Buffer.from(piece).toString(encoding))
      assert.deepStrictEqual(written, pieces)
      assert.strictEqual((await bodyOf(server)).whole.toString(), body)
    }
  })

  it("splits every character of more than one byte", async () => {
    await using server = await startModelServer([splitUtf8(turn({ text }))])
    const answer = await parts(await post(server, "/v1/chat/completions", { ...chat, stream: true }))
    const written = cut([answer.whole], "split every character")
    assert.isTrue(written.some((piece) => Buffer.from(piece).toString("utf8").includes("\ufffd")))
    assert.notInclude(answer.whole.toString("utf8"), "\ufffd")
  })

  it("fails in the provider's own words", async () => {
    const steps = [
      status(429, { headers: { "retry-after": "7" }, message: "slow down" }),
      status(529),
      html(502)
    ]
    await using server = await startModelServer([...steps, status(500)])
    const limited = await failure(openai(server).chat.completions.create(chat))
    assert.instanceOf(limited, RateLimitError)
    assert.strictEqual(limited.headers.get("retry-after"), "7")
    assert.match(limited.message, /slow down/)
    const overloaded = await failure(anthropic(server).messages.create(message))
    assert.instanceOf(overloaded, APIError)
    assert.strictEqual(overloaded.status, 529)
    assert.match(JSON.stringify(overloaded.error), /overloaded_error/)
    assert.match(await (await post(server, "/v1/chat/completions", chat)).text(), /^<!doctype html>/)
    assert.instanceOf(await failure(openai(server).chat.completions.create(chat)), InternalServerError)
  })

  it("cuts the connection after byte n, or ends it there", async () => {
    const body = "0123456789"
    const steps = [5, 0, 99].map((after) => cutAfter(after, raw({ body, chunks: [3, 4, 3] })))
    await using server = await startModelServer([...steps, endAfter(4, raw({ body })), hangUp()])
    for (const expected of ["01234", "", body]) {
      const got = await bodyOf(server)
      assert.deepInclude(got, { failed: true })
      assert.strictEqual(got.whole.toString(), expected)
    }
    assert.strictEqual(await server.calls[0]?.closed, "cut by server")
    const ended = await bodyOf(server)
    assert.deepStrictEqual([ended.whole.toString(), ended.failed], ["0123", false])
    assert.instanceOf(await failure(post(server, "/anything", {})), TypeError)
  })

  it("resets the connection when asked to", async () => {
    await using server = await startModelServer([cutAfter(3, raw({ body: "0123456789" }), { reset: true })])
    const fault = await failure(
      new Promise((resolve, reject) => {
        const sent = httpRequest(server.url, { method: "POST" }, (response) => {
          response.on("error", reject).on("end", resolve).resume()
        })
        sent.on("error", reject).end()
      })
    )
    assert.propertyVal(fault, "code", "ECONNRESET")
  })

  it("stalls until the client goes away", async () => {
    await using server = await startModelServer([stall({ after: 40 }), stall({ after: "before headers" })])
    const abort = new AbortController()
    const stream = await openai(server).chat.completions.create(
      { ...chat, stream: true },
      { signal: abort.signal }
    )
    const request = await server.received(1)
    abort.abort()
    for await (const chunk of stream) assert.isDefined(chunk)
    assert.strictEqual(await request.closed, "aborted by client")
    const second = new AbortController()
    const refused = failure(openai(server).chat.completions.create(chat, { signal: second.signal }))
    const silent = await server.received(2)
    second.abort()
    assert.instanceOf(await refused, APIUserAbortError)
    assert.strictEqual(await silent.closed, "aborted by client")
  })

  it("goes on after a stall that the test releases", async () => {
    const release = gate()
    await using server = await startModelServer([stall({ after: 40, step: turn({ text }), release })])
    const answer = streamed(server)
    await release.reached
    release.open()
    assert.strictEqual((await answer).text, text)
  })

  it("holds single chunks behind gates", async () => {
    const gates = [gate(), gate(), gate()] as const
    const body = "abc"
    await using server = await startModelServer([gated(raw({ body, chunks: "1 byte each" }), gates)])
    const response = await post(server, "/anything", {})
    const reader = response.body?.getReader()
    for (const [at, each] of gates.entries()) {
      await each.reached
      each.open()
      const piece = await reader?.read()
      assert.strictEqual(Buffer.from(piece?.value ?? []).toString(), body[at])
    }
    assert.isTrue((await reader?.read())?.done)
  })

  it("closes while an answer waits, leaves no connection, and says which call never came", async () => {
    const server = await startModelServer([gated(turn({ text }), gate()), stall()])
    const third = server.received(3)
    const pending = [failure(streamed(server)), failure(streamed(server))]
    await server.received(2)
    await server.close()
    await Promise.all(pending)
    assert.match(String(await failure(third)), /closed before call 3; it had 2/)
    assert.strictEqual(await server.calls[0]?.closed, "aborted by client")
    await server.close()
  })

  it("answers 500 beyond the script and remembers it", async () => {
    await using server = await startModelServer([])
    assert.match(
      String(await failure(openai(server).chat.completions.create(chat))),
      /script is exhausted: call 1/
    )
    assert.strictEqual((await fetch(`${server.url}/nothing`)).status, 404)
    assert.strictEqual(server.unexpected.length, 2)
  })
})

describe("refusals", () => {
  it("does not spend a step on a refused request, and checks keys", async () => {
    await using server = await startModelServer([turn({ text: "one" })], { apiKey: "right" })
    const refused = await failure(anthropic(server, "wrong").messages.create(message))
    assert.instanceOf(refused, AnthropicAuthenticationError)
    assert.instanceOf(
      await failure(openai(server, "wrong").chat.completions.create(chat)),
      OpenAIAuthenticationError
    )
    assert.strictEqual(server.remaining, 1)
    assert.strictEqual((await anthropic(server, "right").messages.create(message)).content.length, 1)
  })
})

describe("handed stream cases", () => {
  const folder = fileURLToPath(new URL("../../shared/cases/streams/", import.meta.url))
  const present = existsSync(`${folder}index.json`)
  if (!present) console.log("handed cases: absent")

  const isChunks = (value: unknown): value is Chunks =>
    value === "1 byte each" || value === "cut after every \\r" || Array.isArray(value)

  it.skipIf(!present)("go over the wire byte for byte", async () => {
    const index: unknown = JSON.parse(readFileSync(`${folder}index.json`, "utf8"))
    const cases = asArray(isRecord(index) ? index["cases"] : []).filter(isRecord)
    const bodies = cases.map((each) => readFileSync(`${folder}${String(each["file"])}`))
    await using server = await startModelServer(
      cases.map((each, at) => {
        const chunks = each["deliverInChunks"]
        if (chunks !== undefined && !isChunks(chunks)) assert.fail(`unknown cut of ${String(each["id"])}`)
        const given = { status: Number(each["status"]), body: bodies[at] ?? "" }
        return raw(chunks === undefined ? given : { ...given, chunks })
      })
    )
    for (const [at, each] of cases.entries()) {
      const response = await post(server, "/any/address", {})
      const got = await parts(response)
      assert.strictEqual(response.status, each["status"])
      assert.isTrue(got.whole.equals(bodies[at] ?? Buffer.of()), String(each["id"]))
    }
    assert.isAbove(cases.length, 0)
    console.log(`handed cases: ${cases.length} run`)
  })
})
