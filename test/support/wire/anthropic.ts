import {
  argumentSlices,
  argumentText,
  callId,
  jsonAnswer,
  sseAnswer,
  textSlices,
  usageOf,
  type JsonRecord,
  type RenderContext,
  type Rendered,
  type TurnSpec
} from "./types.ts"

const stopReasons: Readonly<Record<string, string>> = {
  stop: "end_turn",
  tool_calls: "tool_use",
  length: "max_tokens",
  content_filter: "refusal",
  pause: "pause_turn"
}

const stopOf = (turn: TurnSpec) => {
  const finish = turn.finish ?? ((turn.toolCalls ?? []).length > 0 ? "tool_calls" : "stop")
  return stopReasons[finish] ?? finish
}

/** This service counts cached tokens and cache writes beside the input, not in it. */
const wireUsage = (turn: TurnSpec) => {
  const usage = usageOf(turn)
  return {
    input_tokens: Math.max(0, usage.input - usage.cached - usage.cacheWrite),
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.output
  }
}

const signature = "c2lnbmVkLWJ5LXRoZS10ZXN0LXNlcnZlcg=="

const requestId = (context: RenderContext) => ({ "request-id": `req_anthropic_${context.index}` })

const parsedInput = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

interface Block {
  /** The block as a whole answer holds it. */
  readonly whole: JsonRecord
  /** The block as a stream starts it. */
  readonly start: JsonRecord
  readonly deltas: ReadonlyArray<JsonRecord>
}

const blocksOf = (turn: TurnSpec, context: RenderContext): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  if (turn.reasoning !== undefined) {
    blocks.push({
      whole: { type: "thinking", thinking: turn.reasoning, signature },
      start: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...textSlices(turn.reasoning, turn).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature }
      ]
    })
  }
  if (turn.text !== undefined && turn.text !== "") {
    blocks.push({
      whole: { type: "text", text: turn.text },
      start: { type: "text", text: "" },
      deltas: textSlices(turn.text, turn).map((text) => ({ type: "text_delta", text }))
    })
  }
  for (const [place, call] of (turn.toolCalls ?? []).entries()) {
    const head = { type: "tool_use", id: callId(call, context, place), name: call.name }
    const text = argumentText(call)
    blocks.push({
      whole: { ...head, input: parsedInput(text) },
      start: { ...head, input: {} },
      // The service opens every argument stream with an empty part.
      deltas: ["", ...argumentSlices(text, turn)].map((part) => ({
        type: "input_json_delta",
        partial_json: part
      }))
    })
  }
  return blocks
}

/** The turn as a `message`, or as the stream of events that builds it, with pings between. */
export const renderAnthropic = (turn: TurnSpec, context: RenderContext): Rendered => {
  const blocks = blocksOf(turn, context)
  const message = {
    id: `msg_${context.index}`,
    type: "message",
    role: "assistant",
    model: context.model,
    stop_sequence: null
  }
  if (!context.stream) {
    const content = blocks.map((block) => block.whole)
    const body = { ...message, content, stop_reason: stopOf(turn), usage: wireUsage(turn) }
    return jsonAnswer(200, body, requestId(context))
  }
  const event = (type: string, body: JsonRecord) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...body })}\n\n`
  const started = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...wireUsage(turn), output_tokens: 1 }
  }
  const events = [event("message_start", { message: started })]
  for (const [index, block] of blocks.entries()) {
    events.push(event("content_block_start", { index, content_block: block.start }), event("ping", {}))
    for (const delta of block.deltas) events.push(event("content_block_delta", { index, delta }))
    events.push(event("content_block_stop", { index }))
  }
  if (turn.terminal !== false) {
    const delta = { stop_reason: stopOf(turn), stop_sequence: null }
    events.push(event("message_delta", { delta, usage: wireUsage(turn) }), event("message_stop", {}))
  }
  return sseAnswer(events, requestId(context))
}

const errorTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error"
}

/** An error body as the service words it. */
export const anthropicError = (status: number, message: string) => ({
  type: "error",
  error: { type: errorTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error"), message },
  request_id: null
})
