/**
 * The conversation between looplane and a model, independent of any provider.
 */
import { Schema } from "effect"
import { ToolCallId } from "./Ids.ts"
import { Usage } from "./Usage.ts"

/**
 * One tool call of a turn. `arguments` holds the decoded JSON object. When the model's text was no JSON object and
 * could not be repaired, `arguments` is empty and `invalid_arguments` holds the text as it came: the call is then
 * answered with an observation and never run.
 */
export const ToolCall = Schema.Struct({
  id: ToolCallId,
  name: Schema.String,
  arguments: Schema.Record(Schema.String, Schema.Unknown),
  invalid_arguments: Schema.optionalKey(Schema.String)
})
export type ToolCall = typeof ToolCall.Type

/**
 * What a model thought. `signature` and `redacted` are a provider's opaque proofs: they go back to the same provider
 * unchanged, and to no other.
 */
export const Reasoning = Schema.Struct({
  text: Schema.String,
  signature: Schema.optionalKey(Schema.String),
  redacted: Schema.optionalKey(Schema.String)
})
export type Reasoning = typeof Reasoning.Type

/** Why a model stopped. The closed set that every provider's own word is mapped to. */
export const FinishReason = Schema.Literals([
  "stop",
  "tool_use",
  "length",
  "refusal",
  "content_filter",
  "pause"
])
export type FinishReason = typeof FinishReason.Type

/**
 * One whole answer of a model. Its tool calls, never its finish reason, decide whether the run goes on.
 * `refusal` is what the model said when it refused, where the provider keeps that apart from the text.
 */
export const ModelTurn = Schema.Struct({
  text: Schema.String,
  reasoning: Schema.Array(Reasoning),
  tool_calls: Schema.Array(ToolCall),
  finish_reason: FinishReason,
  refusal: Schema.optionalKey(Schema.String),
  usage: Usage
})
export type ModelTurn = typeof ModelTurn.Type

export const UserMessage = Schema.Struct({ role: Schema.Literal("user"), content: Schema.String })
export const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  /** The provider that said it: opaque reasoning is replayed only to the same one. */
  provider: Schema.String,
  content: Schema.String,
  reasoning: Schema.Array(Reasoning),
  tool_calls: Schema.Array(ToolCall)
})
/** The answer to one tool call. `ok: false` carries what went wrong in `content`. */
export const ToolObservation = Schema.Struct({
  role: Schema.Literal("tool"),
  tool_call_id: ToolCallId,
  name: Schema.String,
  ok: Schema.Boolean,
  content: Schema.String
})
/** Text that the harness, not the user, adds: a nudge, a failed verification, a reminder. */
export const InjectedContext = Schema.Struct({
  role: Schema.Literal("context"),
  source: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(128)),
  content: Schema.String
})

export const ConversationItem = Schema.Union([
  UserMessage,
  AssistantMessage,
  ToolObservation,
  InjectedContext
])
export type ConversationItem = typeof ConversationItem.Type
export type UserMessage = typeof UserMessage.Type
export type AssistantMessage = typeof AssistantMessage.Type
export type ToolObservation = typeof ToolObservation.Type
export type InjectedContext = typeof InjectedContext.Type

/** The ids of every tool call, in order. */
export const callIds = (items: ReadonlyArray<ConversationItem>): ReadonlyArray<ToolCallId> =>
  items.flatMap((item) => (item.role === "assistant" ? item.tool_calls.map((call) => call.id) : []))

/**
 * The conversation as a provider may see it: every tool call has exactly one answer, directly after its turn and in
 * call order. A call that was never answered (an interrupted run) gets one that says so.
 */
export const pairToolCalls = (items: ReadonlyArray<ConversationItem>): ReadonlyArray<ConversationItem> => {
  const answers = new Map<string, ToolObservation>()
  for (const item of items)
    if (item.role === "tool" && !answers.has(item.tool_call_id)) answers.set(item.tool_call_id, item)
  return items.flatMap((item): ReadonlyArray<ConversationItem> => {
    if (item.role === "tool") return []
    if (item.role !== "assistant") return [item]
    return [
      item,
      ...item.tool_calls.map(
        (call): ToolObservation =>
          answers.get(call.id) ?? {
            role: "tool",
            tool_call_id: call.id,
            name: call.name,
            ok: false,
            content: "interrupted: the call did not finish and its effect is unknown"
          }
      )
    ]
  })
}
