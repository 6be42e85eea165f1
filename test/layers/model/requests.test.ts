import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import fc from "fast-check"
import { ConversationItem } from "../../../src/domain/Conversation.ts"
import { providers } from "../../../src/domain/model/Providers.ts"
import { anthropicRequest } from "../../../src/layers/model/AnthropicRequest.ts"
import { openAiRequest } from "../../../src/layers/model/OpenAiRequest.ts"
import type { ModelRequest } from "../../../src/services/Model.ts"
import { turn } from "../../support/ModelServer.ts"
import { refuseAnthropic } from "../../support/wire/anthropicRules.ts"
import { refuseOpenAi } from "../../support/wire/openai.ts"
import { collect, modelAt, request, serving, turnOf } from "./harness.ts"

const decode = Schema.decodeUnknownSync(Schema.Array(ConversationItem))
const call = (id: string, rest: object = {}) => ({ id, name: "read_file", arguments: { path: id }, ...rest })
const assistant = (fields: object) => ({
  role: "assistant",
  provider: "anthropic",
  content: "",
  reasoning: [],
  tool_calls: [],
  ...fields
})
const tool = (id: string, ok: boolean, content: string) => ({
  role: "tool",
  tool_call_id: id,
  name: "read_file",
  ok,
  content
})

const sent: ModelRequest = {
  system: [
    { name: "role", cache: "stable", content: "You help." },
    { name: "tools", cache: "stable", content: "Use them." },
    { name: "workspace", cache: "dynamic", content: "main" }
  ],
  conversation: decode([
    { role: "user", content: "Fix it." },
    assistant({
      content: "Reading.",
      reasoning: [{ text: "hm", signature: "sig" }, { text: "", redacted: "blob" }, { text: "unsigned" }],
      tool_calls: [call("a"), call("b", { arguments: {}, invalid_arguments: "{broken" })]
    }),
    tool("a", true, "content of a"),
    tool("b", false, "arguments are no JSON object"),
    { role: "context", source: "nudge", content: "Go on." },
    assistant({ provider: "other", content: "Done.", reasoning: [{ text: "mine", signature: "foreign" }] }),
    { role: "user", content: "Again." }
  ]),
  tools: [
    {
      name: "read_file",
      description: "Reads a file.",
      parameters: { type: "object", properties: { path: { type: "string" } }, additionalProperties: false }
    }
  ]
}

const rendered = ["role", "tools", "workspace"].map((name, at) => {
  const content = ["You help.", "Use them.", "main"][at]
  return `<section name='${name}' cache='${name === "workspace" ? "dynamic" : "stable"}'>\n${content}\n</section>`
})

const target = (provider: keyof typeof providers, host = "example.com") => ({
  provider,
  model: "m",
  host,
  row: providers[provider]
})

describe("an OpenAI-compatible request", () => {
  it("has this shape", () => {
    const body = openAiRequest(sent, target("openai-compatible"))
    assert.deepStrictEqual<unknown>(JSON.parse(JSON.stringify(body)), {
      model: "m",
      messages: [
        { role: "system", content: rendered.join("\n\n") },
        { role: "user", content: "Fix it." },
        {
          role: "assistant",
          content: "Reading.",
          tool_calls: [
            { id: "a", type: "function", function: { name: "read_file", arguments: '{"path":"a"}' } },
            { id: "b", type: "function", function: { name: "read_file", arguments: "{}" } }
          ]
        },
        { role: "tool", tool_call_id: "a", content: "content of a" },
        { role: "tool", tool_call_id: "b", content: '{"ok":false,"error":"arguments are no JSON object"}' },
        { role: "user", content: "[injected_context:nudge]\nGo on." },
        { role: "assistant", content: "Done." },
        { role: "user", content: "Again." }
      ],
      tools: [
        {
          type: "function",
          function: {
            name: "read_file",
            description: "Reads a file.",
            parameters: {
              type: "object",
              properties: { path: { type: "string" } },
              additionalProperties: false
            }
          }
        }
      ],
      stream: true,
      stream_options: { include_usage: true }
    })
    assert.isUndefined(refuseOpenAi(body))
  })

  it("names a cache only to the official host, the same for the same stable prompt", () => {
    const official = target("openai-compatible", "api.openai.com")
    const key = openAiRequest(sent, official).prompt_cache_key
    assert.match(key ?? "", /^looplane-openai:[0-9a-f]{48}$/)
    const dynamic = [
      ...sent.system.slice(0, 2),
      { name: "workspace", cache: "dynamic", content: "other" } as const
    ]
    assert.strictEqual(
      openAiRequest({ ...sent, system: dynamic, conversation: [] }, official).prompt_cache_key,
      key
    )
    assert.notStrictEqual(openAiRequest({ ...sent, tools: [] }, official).prompt_cache_key, key)
  })

  it("asks Ollama not to think, and for a bounded answer", () => {
    const body = openAiRequest(sent, target("ollama"))
    assert.deepInclude(body, { think: false, max_tokens: 4096 })
    const users = body.messages.filter((message) => message.role === "user").map((message) => message.content)
    assert.deepStrictEqual(users, ["/no_think\nFix it.", "[injected_context:nudge]\nGo on.", "Again."])
  })

  it("gives reasoning back only where the provider asks for its own", () => {
    const own = sent.conversation.map((item) =>
      item.role === "assistant" ? { ...item, provider: "deepseek" } : item
    )
    const replayed = (provider: "deepseek" | "groq", conversation = own) =>
      JSON.stringify(openAiRequest({ ...sent, conversation }, target(provider)).messages).includes(
        "reasoning_content"
      )
    assert.deepStrictEqual(
      [replayed("deepseek"), replayed("deepseek", sent.conversation.slice()), replayed("groq")],
      [true, false, false]
    )
  })

  it("leaves out what is empty", () => {
    const body = openAiRequest(
      { system: [], conversation: decode([{ role: "user", content: "x" }, assistant({})]), tools: [] },
      target("groq")
    )
    assert.notProperty(body, "tools")
    assert.notProperty(body, "max_tokens")
    assert.deepStrictEqual<unknown>(body.messages, [{ role: "user", content: "x" }])
  })
})

describe("an Anthropic request", () => {
  const of = (request: ModelRequest) =>
    anthropicRequest(request, { provider: "anthropic", model: "m", maxTokens: 8192 })

  it("has this shape", () => {
    const body = of(sent)
    assert.deepStrictEqual<unknown>(JSON.parse(JSON.stringify(body)), {
      model: "m",
      max_tokens: 8192,
      system: [
        { type: "text", text: rendered[0] },
        { type: "text", text: rendered[1], cache_control: { type: "ephemeral" } },
        { type: "text", text: rendered[2] }
      ],
      messages: [
        { role: "user", content: [{ type: "text", text: "Fix it." }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "sig" },
            { type: "redacted_thinking", data: "blob" },
            { type: "text", text: "Reading." },
            { type: "tool_use", id: "a", name: "read_file", input: { path: "a" } },
            { type: "tool_use", id: "b", name: "read_file", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a", content: "content of a" },
            {
              type: "tool_result",
              tool_use_id: "b",
              content: "arguments are no JSON object",
              is_error: true
            },
            { type: "text", text: "[injected_context:nudge]\nGo on." }
          ]
        },
        { role: "assistant", content: [{ type: "text", text: "Done." }] },
        { role: "user", content: [{ type: "text", text: "Again." }] }
      ],
      tools: [
        {
          name: "read_file",
          description: "Reads a file.",
          input_schema: {
            type: "object",
            properties: { path: { type: "string" } },
            additionalProperties: false
          }
        }
      ],
      stream: true
    })
    assert.isUndefined(refuseAnthropic(body, { "anthropic-version": "x" }))
  })

  it("spells foreign ids so that they are legal and unique", () => {
    const ids = ["functions.read:0", "functions_read:0", "functions/read_0"]
    const conversation = decode([
      { role: "user", content: "x" },
      assistant({ tool_calls: ids.map((id) => call(id)) }),
      ...ids.map((id) => tool(id, true, id))
    ])
    const body = of({ ...sent, conversation })
    assert.isUndefined(refuseAnthropic(body, { "anthropic-version": "x" }))
    assert.match(
      JSON.stringify(body.messages),
      /"tool_use_id":"functions_read_0_2","content":"functions_read:0"/
    )
  })
})

describe("any conversation", () => {
  const text = fc.constantFrom("", " ", "hi", "so \n", "世界")
  const id = fc.constantFrom("a", "b", "c:1", "d.2", "e")
  // Models make names up, and a service refuses the whole history for one that is against its rules.
  const name = fc.constantFrom("read_file", "functions.read", "a b\n\u001b[31m", "x".repeat(200), "讀")
  const item = fc.oneof(
    fc.record({ role: fc.constant("user"), content: text }),
    fc.record({ role: fc.constant("context"), source: fc.constant("s"), content: text }),
    fc
      .record({ content: text, provider: fc.constantFrom("anthropic", "x"), ids: fc.uniqueArray(id), name })
      .map(({ ids, name: made, ...rest }) =>
        assistant({ ...rest, tool_calls: ids.map((each) => call(each, { name: made })) })
      ),
    fc.record({ id, ok: fc.boolean(), content: text }).map((each) => tool(each.id, each.ok, each.content))
  )
  /** Ids are unique in a run: of two calls with one id only the first stays. */
  const uniqueCalls = (items: ReadonlyArray<ConversationItem>) => {
    const seen = new Set<string>()
    return items.map((each) => {
      if (each.role !== "assistant") return each
      const tool_calls = each.tool_calls.filter((one) => !seen.has(one.id))
      for (const one of tool_calls) seen.add(one.id)
      return { ...each, tool_calls }
    })
  }

  it("becomes a history that both services accept", () => {
    fc.assert(
      fc.property(fc.array(item), (items) => {
        const conversation = uniqueCalls(decode([{ role: "user", content: "Go." }, ...items]))
        const asked = { ...sent, conversation }
        assert.isUndefined(refuseOpenAi(openAiRequest(asked, target("openai-compatible"))))
        const body = anthropicRequest(asked, { provider: "anthropic", model: "m", maxTokens: 1 })
        assert.isUndefined(refuseAnthropic(body, { "anthropic-version": "x" }))
      })
    )
  })
})

describe("on the wire", () => {
  it.effect("both protocols go to their own address, also when /v1 is given too much", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: "a" }), turn({ text: "b" }), turn({ text: "c" })])
      yield* turnOf(server, "openai-compatible")
      yield* turnOf(server, "anthropic")
      const model = yield* modelAt(server, "anthropic", {
        apiUrl: `${server.url}/v1`,
        apiKey: Redacted.make(" k ")
      })
      yield* collect(model.stream(request()))
      assert.deepStrictEqual(
        server.calls.map((each) => `${each.method} ${each.path}${each.query}`),
        ["POST /v1/chat/completions", "POST /v1/messages", "POST /v1/messages"]
      )
      const [, second, third] = server.calls
      assert.deepInclude(second?.headers, { "anthropic-version": "2023-06-01" })
      assert.deepInclude(third?.headers, { "x-api-key": "k" })
      assert.isEmpty(server.violations)
    })
  )
})
