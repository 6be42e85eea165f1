import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { anthropicFold } from "../../../src/domain/model/AnthropicFold.ts"
import { finishReason } from "../../../src/domain/model/FinishReason.ts"
import { toTurn, uniqueIds, wantsRepair, type Fold } from "../../../src/domain/model/Fold.ts"
import { openAiFold } from "../../../src/domain/model/OpenAiFold.ts"

const run = <S>(fold: Fold<S>, pieces: ReadonlyArray<unknown>) => {
  let state = fold.initial
  const deltas: Array<string> = []
  for (const piece of pieces) {
    const pushed = fold.push(state, typeof piece === "string" ? piece : JSON.stringify(piece))
    if (Result.isFailure(pushed)) return pushed.failure
    state = pushed.success[0]
    deltas.push(...pushed.success[1].map((delta) => `${delta.type}:${delta.text}`))
  }
  const draft = fold.draft(state)
  return Result.isFailure(draft)
    ? draft.failure
    : { ...draft.success, deltas, progress: fold.progress(state) }
}

const delta = (fields: object, rest: object = {}) => ({ choices: [{ index: 0, delta: fields, ...rest }] })
const call = (...tool_calls: ReadonlyArray<object>) => delta({ tool_calls })
const openai = (...pieces: ReadonlyArray<unknown>) => run(openAiFold, pieces)
const calls = (...pieces: ReadonlyArray<unknown>) => {
  const folded = openai(...pieces)
  return "calls" in folded ? folded.calls.map((each) => [each.id, each.name, each.arguments]) : folded
}
const fn = (name: string, args?: unknown) => ({
  function: { name, ...(args === undefined ? {} : { arguments: args }) }
})

describe("OpenAI-style tool calls", () => {
  it("are told apart by index", () => {
    assert.deepStrictEqual(
      calls(
        call({ index: 3, id: "b", ...fn("two", "{") }, { index: 1, id: "a", ...fn("one", "") }),
        call({ index: 3, ...fn("", "}") }, { index: 1, ...fn("", "[") })
      ),
      [
        ["a", "one", "["],
        ["b", "two", "{}"]
      ]
    )
  })

  it("are told apart by id when every one has index 0", () => {
    assert.deepStrictEqual(
      calls(
        call({ index: 0, id: "a", ...fn("f", "{}") }),
        call({ index: 0, id: "b", ...fn("f", '{"x":1}') })
      ),
      [
        ["a", "f", "{}"],
        ["b", "f", '{"x":1}']
      ]
    )
  })

  it("are told apart by their ends when they have neither", () => {
    const twice = [call({ index: 0, ...fn("f", "{}") }, { index: 0, ...fn("f", { x: 1 }) })]
    assert.deepStrictEqual(calls(...twice), [
      [null, "f", "{}"],
      [null, "f", '{"x":1}']
    ])
    assert.deepStrictEqual(calls(call(fn("f", "{")), call(fn("f", "}"))), [[null, "f", "{}"]])
  })

  it("keep one name, however it is repeated", () => {
    const name = (...names: ReadonlyArray<string>) =>
      calls(...names.map((each) => call({ index: 0, id: "a", ...fn(each, "") })))
    for (const names of [
      ["read", ""],
      ["read", "read"],
      ["re", "ad"],
      ["re", "read"],
      ["", "read"]
    ])
      assert.deepStrictEqual(name(...names), [["a", "read", ""]], names.join())
  })

  it("come in the old style too, and flat", () => {
    assert.deepStrictEqual(calls(delta({ function_call: { name: "f", arguments: "{}" } })), [
      [null, "f", "{}"]
    ])
    assert.deepStrictEqual(calls(call({ id: "a", name: "f", arguments: "{}" })), [["a", "f", "{}"]])
  })

  it("need a name", () => {
    assert.deepInclude(openai(call({ index: 0, id: "a", function: { arguments: "{}" } })), {
      _tag: "Protocol"
    })
  })
})

describe("OpenAI-style text and ends", () => {
  it("keeps thoughts, text and refusals apart", () => {
    const folded = openai(
      delta({ reasoning: "a", reasoning_content: "a" }),
      delta({ content: [{ type: "thinking", thinking: "b" }, { type: "text", text: "c" }, "d"] }),
      delta({ content: null, refusal: "no" }),
      delta({}, { finish_reason: "stop" })
    )
    assert.deepInclude(folded, {
      text: "cd",
      reasoning: [{ text: "ab" }],
      refusal: "no",
      finish_reason: "refusal",
      deltas: ["reasoning:a", "reasoning:b", "text:c", "text:d"],
      progress: "enough"
    })
  })

  it("takes a whole message from a server that does not stream", () => {
    const message = { role: "assistant", content: "hi", tool_calls: [{ id: "a", ...fn("f", "{}") }] }
    const folded = openai({
      choices: [{ index: 0, message, finish_reason: "tool_calls" }],
      usage: { prompt_tokens: 1 }
    })
    assert.deepInclude(folded, { text: "hi", finish_reason: "tool_use", progress: "enough" })
  })

  it("ignores other choices and reads usage wherever it stands", () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, prompt_cache_hit_tokens: 4, total_tokens: 20 }
    const expected = {
      input_tokens: 10,
      output_tokens: 5,
      cached_input_tokens: 4,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      provider_total_tokens: 20
    }
    const other = { choices: [{ index: 1, delta: { content: "other" } }] }
    for (const last of [
      { choices: [], usage },
      { x_groq: { usage } },
      { choices: [{ index: 0, delta: {}, usage }] }
    ])
      assert.deepInclude(openai(delta({ content: "x" }), other, last), { text: "x", usage: expected })
    assert.deepInclude(openai(delta({ content: "x" }), { usage }, { usage: null }), { usage: expected })
  })

  it("never takes an error for an answer", () => {
    const error = { message: "overloaded" }
    for (const piece of [
      { error },
      { error: "text" },
      { choices: [], error },
      { choices: [{ index: 0, delta: {}, error }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "error" }] }
    ])
      assert.deepInclude(openai(delta({ content: "so far" }), piece), { _tag: "Reported" })
    assert.deepInclude(openai("{broken"), { _tag: "Unparsable" })
    assert.deepInclude(openai("[DONE]"), { _tag: "Empty" })
  })
})

const start = (index: number, content_block: object) => ({
  type: "content_block_start",
  index,
  content_block
})
const grow = (index: number, fields: object) => ({ type: "content_block_delta", index, delta: fields })
const opened = { type: "message_start", message: { usage: { input_tokens: 5, cache_read_input_tokens: 3 } } }
const stop = (stop_reason: string, usage: object = { output_tokens: 7 }) => ({
  type: "message_delta",
  delta: { stop_reason },
  usage
})
const end = { type: "message_stop" }
const anthropic = (...pieces: ReadonlyArray<unknown>) => run(anthropicFold, pieces)

describe("Anthropic messages", () => {
  it("sum up to an inclusive usage whose later numbers win", () => {
    const folded = anthropic(
      opened,
      stop("end_turn", { output_tokens: 9, cache_creation_input_tokens: 2, cache_read_input_tokens: null }),
      end
    )
    assert.deepInclude(folded, {
      usage: {
        input_tokens: 10,
        output_tokens: 9,
        cached_input_tokens: 3,
        cache_write_tokens: 2,
        reasoning_tokens: 0,
        provider_total_tokens: null
      }
    })
  })

  it("keep signed thoughts, and skip blocks and events that nobody knows", () => {
    const folded = anthropic(
      opened,
      { type: "news" },
      start(0, { type: "thinking", thinking: "", signature: "" }),
      grow(0, { type: "thinking_delta", thinking: "hm" }),
      grow(0, { type: "signature_delta", signature: "s" }),
      start(1, { type: "server_tool_use", id: "x", name: "web", input: {} }),
      grow(1, { type: "input_json_delta", partial_json: "{" }),
      start(2, { type: "web_search_tool_result", content: [] }),
      start(3, { type: "text", text: "a" }),
      grow(3, { type: "text_delta", text: "b" }),
      grow(3, { type: "citations_delta", citation: {} }),
      start(4, { type: "tool_use", id: "t", name: "f", input: { whole: 1 } }),
      stop("end_turn"),
      end
    )
    assert.deepInclude(folded, {
      text: "ab",
      reasoning: [{ text: "hm", signature: "s" }],
      calls: [{ id: "t", name: "f", arguments: '{"whole":1}' }],
      finish_reason: "tool_use",
      deltas: ["reasoning:hm", "text:a", "text:b"],
      progress: "done"
    })
  })

  it("are open until their last event, and fail on an error", () => {
    assert.deepInclude(anthropic(opened, start(0, { type: "text", text: "a" }), stop("end_turn")), {
      progress: "open"
    })
    assert.deepInclude(anthropic(opened, { type: "error", error: { type: "x" } }), { _tag: "Reported" })
    assert.deepInclude(anthropic({ error: { message: "x" } }), { _tag: "Reported" })
    assert.deepInclude(anthropic(end), { _tag: "Empty" })
  })

  it("show why they refuse", () => {
    const refused = {
      type: "message_delta",
      delta: { stop_reason: "refusal", stop_details: { explanation: "why" } }
    }
    assert.deepInclude(anthropic(opened, refused, end), { finish_reason: "refusal", refusal: "why" })
  })

  it("may come whole", () => {
    const content = [
      { type: "text", text: "a" },
      { type: "tool_use", id: "t", name: "f", input: { x: 1 } }
    ]
    const message = {
      type: "message",
      content,
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 2 }
    }
    assert.deepInclude(anthropic(message), {
      text: "a",
      calls: [{ id: "t", name: "f", arguments: '{"x":1}' }],
      deltas: ["text:a"],
      progress: "done"
    })
  })
})

describe("folds of anything", () => {
  const piece = fc.oneof(
    fc.json(),
    fc.string(),
    fc.constant("[DONE]"),
    fc
      .record({
        type: fc.constantFrom(
          "content_block_start",
          "content_block_delta",
          "message_delta",
          "message_start",
          "message"
        ),
        index: fc.anything(),
        delta: fc.anything(),
        content_block: fc.record({
          type: fc.constantFrom("text", "tool_use", "thinking"),
          input: fc.anything()
        }),
        choices: fc.array(
          fc.record({ delta: fc.record({ content: fc.anything(), tool_calls: fc.array(fc.anything()) }) })
        )
      })
      .map((value) => JSON.stringify(value) ?? "null")
  )
  it("never throw", () => {
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        assert.isObject(run(openAiFold, pieces))
        assert.isObject(run(anthropicFold, pieces))
      })
    )
  })
})

describe("finish reasons", () => {
  it.each([
    ["stop", "stop"],
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["length", "length"],
    ["max_tokens", "length"],
    ["MAX_TOKENS", "length"],
    ["model_context_window_exceeded", "length"],
    ["content_filter", "content_filter"],
    ["refusal", "refusal"],
    ["pause_turn", "pause"],
    ["tool_calls", "stop"],
    ["constructor", "stop"],
    [null, "stop"]
  ] as const)("%s is %s", (word, reason) =>
    assert.strictEqual(finishReason(word, { calls: false, refused: false }), reason)
  )

  it("follow the calls when they say stop", () => {
    const calling = { calls: true, refused: false }
    for (const word of ["stop", "end_turn", "tool_calls", "function_call", null, "odd"])
      assert.strictEqual(finishReason(word, calling), "tool_use")
    assert.strictEqual(finishReason("length", calling), "length")
  })
})

describe("turns", () => {
  it("get ids that are unique in the run and the same when made again", () => {
    const id = fc.option(fc.constantFrom("a", "b", "call_1", "call_2", "a_2"))
    fc.assert(
      fc.property(
        fc.array(id),
        fc.array(fc.constantFrom("a", "call_1", "x")),
        (wanted, taken: ReadonlyArray<string>) => {
          const ids = uniqueIds(wanted, new Set(taken))
          assert.deepStrictEqual(ids, uniqueIds(wanted, new Set(taken)))
          assert.strictEqual(new Set([...ids, ...taken]).size, ids.length + new Set(taken).size)
          for (const [at, each] of wanted.entries())
            if (
              each !== null &&
              !taken.includes(each) &&
              wanted.indexOf(each) === at &&
              !ids.slice(0, at).includes(each)
            )
              assert.strictEqual(ids[at], each)
        }
      )
    )
  })

  it("keep broken arguments apart, and never guess those of an answer that was cut", () => {
    const draftOf = (finish: string, args: string) => {
      const folded = openai(
        call({ index: 0, id: "a", ...fn("f", args) }),
        delta({}, { finish_reason: finish })
      )
      return "calls" in folded ? folded : assert.fail()
    }
    const broken = draftOf("tool_calls", "{'x': 1}")
    assert.isTrue(wantsRepair(broken))
    assert.isFalse(wantsRepair(draftOf("length", "{'x': 1}")))
    assert.isFalse(wantsRepair(draftOf("tool_calls", '{"x": 1}')))
    const turn = toTurn(broken, new Set(["a"]), null)
    assert.deepStrictEqual<unknown>(turn.tool_calls, [
      { id: "a_2", name: "f", arguments: {}, invalid_arguments: "{'x': 1}" }
    ])
    const mended = toTurn(broken, new Set(), () => '{"x":1}')
    assert.deepStrictEqual<unknown>(mended.tool_calls, [{ id: "a", name: "f", arguments: { x: 1 } }])
  })
})
