/**
 * Folds the events of an Anthropic message stream. Blocks and events of unknown types are skipped.
 */
import { Result } from "effect"
import type { Reasoning } from "../Conversation.ts"
import { zero, type Usage } from "../Usage.ts"
import { finishReason } from "./FinishReason.ts"
import { protocol, type Delta, type Draft, type DraftCall, type Fault, type Fold } from "./Fold.ts"
import { count, isRecord, list, parse, record, text, type JsonRecord } from "../Json.ts"

type Block =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly signature: string }
  | { readonly type: "redacted"; readonly data: string }
  /** `input` is what the block began with; the text of its deltas wins. */
  | {
      readonly type: "call"
      readonly id: string
      readonly name: string
      readonly input: unknown
      readonly text: string
    }
  | { readonly type: "skipped" }

export interface AnthropicState {
  /** By the index of the stream, in the order of the index. */
  readonly blocks: ReadonlyArray<readonly [index: number, block: Block]>
  readonly stop: string | null
  readonly refusal: string
  /** The provider's own counts; the later number wins. */
  readonly counts: JsonRecord
  readonly started: boolean
  readonly done: boolean
}

const initial: AnthropicState = {
  blocks: [],
  stop: null,
  refusal: "",
  counts: {},
  started: false,
  done: false
}

const startBlock = (block: JsonRecord): Block => {
  switch (block["type"]) {
    case "text":
      return { type: "text", text: text(block["text"]) }
    case "thinking":
      return { type: "thinking", text: text(block["thinking"]), signature: text(block["signature"]) }
    case "redacted_thinking":
      return { type: "redacted", data: text(block["data"]) }
    case "tool_use":
      return {
        type: "call",
        id: text(block["id"]),
        name: text(block["name"]),
        input: block["input"],
        text: ""
      }
    default:
      return { type: "skipped" }
  }
}

/** The block that a delta implies when its start never came. */
const impliedBlock = (delta: JsonRecord): Block => {
  switch (delta["type"]) {
    case "text_delta":
      return { type: "text", text: "" }
    case "thinking_delta":
    case "signature_delta":
      return { type: "thinking", text: "", signature: "" }
    default:
      return { type: "skipped" }
  }
}

const grow = (block: Block, delta: JsonRecord): Block => {
  switch (block.type) {
    case "text":
      return { ...block, text: block.text + text(delta["text"]) }
    case "thinking":
      return {
        ...block,
        text: block.text + text(delta["thinking"]),
        signature: text(delta["signature"]) || block.signature
      }
    case "call":
      return { ...block, text: block.text + text(delta["partial_json"]) }
    case "redacted":
    case "skipped":
      return block
  }
}

const shown = (block: Block, delta: JsonRecord): ReadonlyArray<Delta> => {
  const deltas: ReadonlyArray<Delta> =
    block.type === "text"
      ? [{ type: "text", text: text(delta["text"]) }]
      : block.type === "thinking"
        ? [{ type: "reasoning", text: text(delta["thinking"]) }]
        : []
  return deltas.filter((each) => each.text !== "")
}

const place = (state: AnthropicState, index: number, block: Block): AnthropicState => ({
  ...state,
  blocks: [...state.blocks.filter(([at]) => at !== index), [index, block] as const].toSorted(
    ([a], [b]) => a - b
  )
})

const mergeCounts = (before: JsonRecord, usage: unknown): JsonRecord => ({
  ...before,
  ...Object.fromEntries(Object.entries(record(usage)).filter(([, value]) => value !== null))
})

type Pushed = readonly [AnthropicState, ReadonlyArray<Delta>]

const start = (state: AnthropicState, index: number, block: JsonRecord): Pushed => [
  place(state, index, startBlock(block)),
  shown(startBlock(block), block)
]

const stopped = (state: AnthropicState, delta: JsonRecord, usage: unknown): AnthropicState => ({
  ...state,
  stop: text(delta["stop_reason"]) || state.stop,
  refusal: text(record(delta["stop_details"])["explanation"]) || state.refusal,
  counts: mergeCounts(state.counts, usage)
})

/** A server that does not stream sends the whole message as one body. */
const whole = (state: AnthropicState, message: JsonRecord): Pushed => {
  const begun = { ...stopped(state, message, message["usage"]), started: true, done: true }
  return list(message["content"]).reduce<Pushed>(
    ([before, deltas], block, index) => {
      const [after, more] = start(before, index, record(block))
      return [after, [...deltas, ...more]]
    },
    [begun, []]
  )
}

const push = (state: AnthropicState, data: string): Result.Result<Pushed, Fault> => {
  const event = parse(data)
  if (!isRecord(event)) return Result.fail({ _tag: "Unparsable" })
  const index = count(event["index"]) ?? 0
  switch (event["type"]) {
    case "error":
      return Result.fail({ _tag: "Reported", body: data })
    case "message_start": {
      const counts = mergeCounts(state.counts, record(event["message"])["usage"])
      return Result.succeed([{ ...state, counts, started: true }, []])
    }
    case "content_block_start":
      return Result.succeed(start(state, index, record(event["content_block"])))
    case "content_block_delta": {
      const delta = record(event["delta"])
      const before = state.blocks.find(([at]) => at === index)?.[1] ?? impliedBlock(delta)
      return Result.succeed([place(state, index, grow(before, delta)), shown(before, delta)])
    }
    case "message_delta":
      return Result.succeed([stopped(state, record(event["delta"]), event["usage"]), []])
    case "message_stop":
      return Result.succeed([{ ...state, done: true }, []])
    case "message":
      return Result.succeed(whole(state, event))
    default:
      return event["error"] === undefined
        ? Result.succeed([state, []])
        : Result.fail({ _tag: "Reported", body: data })
  }
}

const readUsage = (counts: JsonRecord): Usage => {
  const of = (key: string) => count(counts[key]) ?? 0
  const cached = of("cache_read_input_tokens")
  const written = of("cache_creation_input_tokens")
  const output = of("output_tokens")
  return {
    ...zero,
    input_tokens: of("input_tokens") + cached + written,
    output_tokens: output,
    cached_input_tokens: cached,
    cache_write_tokens: written,
    reasoning_tokens: Math.min(output, count(record(counts["output_tokens_details"])["thinking_tokens"]) ?? 0)
  }
}

const reasoningOf = (block: Block): ReadonlyArray<Reasoning> => {
  if (block.type === "redacted") return [{ text: "", redacted: block.data }]
  if (block.type !== "thinking" || (block.text === "" && block.signature === "")) return []
  return [{ text: block.text, ...(block.signature === "" ? {} : { signature: block.signature }) }]
}

const callOf = (block: Block): ReadonlyArray<DraftCall> =>
  block.type === "call"
    ? [
        {
          id: block.id === "" ? null : block.id,
          name: block.name,
          arguments: block.text === "" && isRecord(block.input) ? JSON.stringify(block.input) : block.text
        }
      ]
    : []

const draft = (state: AnthropicState): Result.Result<Draft, Fault> => {
  if (!state.started && state.blocks.length === 0) return Result.fail({ _tag: "Empty" })
  const blocks = state.blocks.map(([, block]) => block)
  const calls = blocks.flatMap(callOf)
  if (calls.some((call) => call.name === "")) return protocol("a tool call came without a name")
  return Result.succeed({
    text: blocks.map((block) => (block.type === "text" ? block.text : "")).join(""),
    reasoning: blocks.flatMap(reasoningOf),
    calls,
    finish_reason: finishReason(state.stop, { calls: calls.length > 0, refused: state.refusal !== "" }),
    refusal: state.refusal === "" ? null : state.refusal,
    usage: readUsage(state.counts)
  })
}

export const anthropicFold: Fold<AnthropicState> = {
  initial,
  push,
  progress: (state) => (state.done ? "done" : "open"),
  draft
}
