import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { pairToolCalls, type ConversationItem, type ToolObservation } from "../../src/domain/Conversation.ts"
import { ToolCallId } from "../../src/domain/Ids.ts"

const id = Schema.decodeSync(ToolCallId)
const call = (name: string) => ({ id: id(name), name: "read_file", arguments: {} })
const assistant = (...calls: ReadonlyArray<string>): ConversationItem => ({
  role: "assistant",
  provider: "p",
  content: "",
  reasoning: [],
  tool_calls: calls.map(call)
})
const answer = (name: string, content = "ok"): ToolObservation => ({
  role: "tool",
  tool_call_id: id(name),
  name: "read_file",
  ok: true,
  content
})
const shape = (items: ReadonlyArray<ConversationItem>) =>
  items.map((item) => (item.role === "tool" ? `${item.tool_call_id}:${item.ok}` : item.role))

describe("pairToolCalls", () => {
  it("answers a call that was never answered, in call order", () => {
    assert.deepStrictEqual(shape(pairToolCalls([assistant("a", "b"), answer("b")])), [
      "assistant",
      "a:false",
      "b:true"
    ])
  })

  it("moves late answers to their turn and drops answers to nothing and second answers", () => {
    const items = [
      assistant("a"),
      { role: "user", content: "u" } as const,
      answer("a"),
      answer("a", "again"),
      answer("z")
    ]
    assert.deepStrictEqual(shape(pairToolCalls(items)), ["assistant", "a:true", "user"])
  })

  it("pairs every call exactly once, whatever is missing, and changes nothing the second time", () => {
    const turn = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "f"), { maxLength: 4 })
    fc.assert(
      fc.property(turn, turn, fc.func(fc.boolean()), (first, second, kept) => {
        const fresh = second.map((name) => `${name}2`)
        const items = [
          assistant(...first),
          ...first.filter((name) => kept(name)).map((name) => answer(name)),
          assistant(...fresh),
          ...fresh.filter((name) => kept(name)).map((name) => answer(name))
        ]
        const paired = pairToolCalls(items)
        const called = paired.flatMap((item) =>
          item.role === "assistant" ? item.tool_calls.map((c) => c.id) : []
        )
        const answered = paired.flatMap((item) => (item.role === "tool" ? [item.tool_call_id] : []))
        assert.deepStrictEqual(answered, called)
        assert.deepStrictEqual(pairToolCalls(paired), paired)
      })
    )
  })
})
