import { assert, describe, it } from "vitest"
import { startModelServer, turn } from "./support/ModelServer.ts"
import { isRecord } from "./support/wire/types.ts"

describe("histories that the real services refuse", () => {
  const use = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "t", input: {} }] }
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "ok" }] }
  const user = { role: "user", content: "hi" }
  const head = { model: "m", max_tokens: 9 }
  const anthropicCases: ReadonlyArray<readonly [RegExp | undefined, object]> = [
    [undefined, { ...head, messages: [user, use, result] }],
    [undefined, { ...head, messages: [user, user, use, result, user] }],
    [/max_tokens/, { model: "m", messages: [user] }],
    [/max_tokens/, { ...head, max_tokens: 0, messages: [user] }],
    [/first message/, { ...head, messages: [use, result] }],
    [/at least one/, { ...head, messages: [] }],
    [/without `tool_result`.*: a\./, { ...head, messages: [user, use] }],
    [/without `tool_result`/, { ...head, messages: [user, use, user, result] }],
    [/unexpected `tool_use_id`/, { ...head, messages: [user, result] }],
    [
      /unexpected `tool_use_id`/,
      { ...head, messages: [user, use, result, { role: "assistant", content: "k" }, result] }
    ],
    [/single result/, { ...head, messages: [user, use, result, result] }],
    [/ids must be unique/, { ...head, messages: [user, use, result, use, result] }],
    [
      /valid dictionary/,
      { ...head, messages: [user, { ...use, content: [{ ...use.content[0], input: "{" }] }, result] }
    ],
    [/Unexpected role "system"/, { ...head, messages: [{ role: "system", content: "s" }, user] }],
    [/non-empty content/, { ...head, messages: [user, { role: "assistant", content: [] }, user] }],
    [/non-whitespace/, { ...head, messages: [{ role: "user", content: [{ type: "text", text: " \n" }] }] }],
    [/trailing whitespace/, { ...head, messages: [user, { role: "assistant", content: "so " }] }],
    [/input_schema/, { ...head, messages: [user], tools: [{ name: "t" }] }],
    [
      /must be unique/,
      {
        ...head,
        messages: [user],
        tools: Array.from({ length: 2 }, () => ({ name: "t", input_schema: { type: "object" } }))
      }
    ],
    [
      /maximum of 4/,
      {
        ...head,
        messages: [user],
        system: Array.from({ length: 5 }, () => ({ type: "text", text: "s", cache_control: {} }))
      }
    ]
  ]
  const ask = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "a", type: "function", function: { name: "t", arguments: "{}" } }]
  }
  const told = { role: "tool", tool_call_id: "a", content: "ok" }
  const askWith = (over: object) => ({ ...ask, tool_calls: [{ ...ask.tool_calls[0], ...over }] })
  const openaiCases: ReadonlyArray<readonly [RegExp | undefined, object]> = [
    [undefined, { model: "m", messages: [{ role: "system", content: "s" }, user, ask, told, user] }],
    [undefined, { model: "m", messages: [user, ask, told, ask, told] }],
    [/model parameter/, { messages: [user] }],
    [/empty array/, { model: "m", messages: [] }],
    [/did not have response messages: a/, { model: "m", messages: [user, ask] }],
    [/did not have response messages: a/, { model: "m", messages: [user, ask, user, told] }],
    [/must be a response/, { model: "m", messages: [user, told] }],
    [/must be a response/, { model: "m", messages: [user, ask, told, told] }],
    [
      /expected a string/,
      { model: "m", messages: [user, askWith({ function: { name: "t", arguments: {} } }), told] }
    ],
    [
      /does not match/,
      { model: "m", messages: [user, askWith({ function: { name: "a b", arguments: "{}" } }), told] }
    ],
    [/\.id/, { model: "m", messages: [user, askWith({ id: "" }), told] }],
    [
      /Duplicate/,
      { model: "m", messages: [user, { ...ask, tool_calls: [...ask.tool_calls, ...ask.tool_calls] }, told] }
    ],
    [/too short/, { model: "m", messages: [user, { role: "assistant", content: "x", tool_calls: [] }] }],
    [/got null/, { model: "m", messages: [user, { role: "assistant", content: null }] }],
    [/Invalid value: 'robot'/, { model: "m", messages: [{ role: "robot", content: "x" }] }],
    [/stream_options/, { model: "m", messages: [user], stream_options: {} }],
    [/tool_choice/, { model: "m", messages: [user], tool_choice: "auto" }],
    [/too short - 'tools'/, { model: "m", messages: [user], tools: [] }],
    [
      /type 'object'/,
      { model: "m", messages: [user], tools: [{ type: "function", function: { name: "t", parameters: {} } }] }
    ]
  ]

  it.each([
    ["/v1/messages", anthropicCases, "invalid_request_error"],
    ["/v1/chat/completions", openaiCases, "invalid_request_error"]
  ] as const)("%s", async (path, cases, type) => {
    await using server = await startModelServer(() => turn({ text: "fine" }))
    for (const [fault, body] of cases) {
      const answer = await fetch(`${server.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
        body: JSON.stringify(body)
      })
      const sent = JSON.stringify(body)
      const json: unknown = await answer.json()
      assert.strictEqual(answer.status, fault === undefined ? 200 : 400, sent)
      if (fault === undefined) continue
      const error = isRecord(json) && isRecord(json["error"]) ? json["error"] : {}
      assert.strictEqual(error["type"], type)
      assert.match(String(error["message"]), fault, sent)
    }
    assert.strictEqual(server.violations.length, cases.filter(([fault]) => fault !== undefined).length)
  })
})
