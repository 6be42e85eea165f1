/**
 * A request as Anthropic Messages reads it.
 */
import type Anthropic from "@anthropic-ai/sdk"
import {
  callIds,
  pairToolCalls,
  type AssistantMessage,
  type ConversationItem,
  type Reasoning,
  type ToolObservation
} from "../../domain/Conversation.ts"
import { legalName, uniqueIds } from "../../domain/model/Fold.ts"
import { renderContext, renderSection } from "../../domain/Prompt.ts"
import type { ModelRequest, ToolDefinition } from "../../services/Model.ts"

type Block = Anthropic.ContentBlockParam
interface Message {
  readonly role: "user" | "assistant"
  readonly content: ReadonlyArray<Block>
}

const textBlock = (text: string): ReadonlyArray<Anthropic.TextBlockParam> =>
  text.trim() === "" ? [] : [{ type: "text", text }]

/** Thoughts go back only to whoever signed them. */
const thinking = (reasoning: Reasoning): ReadonlyArray<Block> => {
  if (reasoning.redacted !== undefined) return [{ type: "redacted_thinking", data: reasoning.redacted }]
  if (reasoning.signature === undefined) return []
  return [{ type: "thinking", thinking: reasoning.text, signature: reasoning.signature }]
}

/** Ids of other providers hold characters that are refused here: every id gets one legal and unique spelling. */
const legalIds = (items: ReadonlyArray<ConversationItem>): ReadonlyMap<string, string> => {
  const ids = callIds(items)
  const legal = uniqueIds(
    ids.map((id) => id.replace(/[^a-zA-Z0-9_-]/g, "_")),
    new Set()
  )
  return new Map(ids.map((id, at) => [id, legal[at] ?? id]))
}

type Ids = ReadonlyMap<string, string>

const assistant = (item: AssistantMessage, ids: Ids, provider: string): Message => ({
  role: "assistant",
  content: [
    ...(item.provider === provider ? item.reasoning.flatMap(thinking) : []),
    ...textBlock(item.content),
    ...item.tool_calls.map((call): Block => ({
      type: "tool_use",
      id: ids.get(call.id) ?? call.id,
      name: legalName(call.name),
      input: call.arguments
    }))
  ]
})

const result = (item: ToolObservation, ids: Ids): Message => ({
  role: "user",
  content: [
    {
      type: "tool_result",
      tool_use_id: ids.get(item.tool_call_id) ?? item.tool_call_id,
      // An error must say something.
      content: !item.ok && item.content.trim() === "" ? "failed without a message" : item.content,
      ...(item.ok ? {} : { is_error: true })
    }
  ]
})

const message = (item: ConversationItem, ids: Ids, provider: string): Message => {
  switch (item.role) {
    case "user":
      return { role: "user", content: textBlock(item.content) }
    case "context":
      return { role: "user", content: textBlock(renderContext(item)) }
    case "assistant":
      return assistant(item, ids, provider)
    case "tool":
      return result(item, ids)
  }
}

/** Neighbours of one role become one message: all results of a turn must be answered in the next message. */
const merge = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const merged: Array<Message> = []
  for (const next of messages) {
    const last = merged.at(-1)
    if (next.content.length === 0) continue
    if (last?.role === next.role)
      merged[merged.length - 1] = { role: last.role, content: [...last.content, ...next.content] }
    else merged.push(next)
  }
  return merged
}

/** A conversation that ends with the model's own words must not end in white space. */
const trimEnd = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const last = messages.at(-1)
  const end = last?.content.at(-1)
  if (last?.role !== "assistant" || end?.type !== "text") return messages
  const content = [...last.content.slice(0, -1), { ...end, text: end.text.trimEnd() }]
  return [...messages.slice(0, -1), { role: "assistant", content }]
}

const system = (request: ModelRequest): Array<Anthropic.TextBlockParam> => {
  const breakpoint = request.system.findLastIndex((section) => section.cache === "stable")
  return request.system.map((section, at) => ({
    type: "text",
    text: renderSection(section),
    ...(at === breakpoint ? { cache_control: { type: "ephemeral" } } : {})
  }))
}

const tool = (definition: ToolDefinition): Anthropic.Tool => ({
  name: definition.name,
  description: definition.description,
  input_schema: { ...definition.parameters, type: "object" }
})

export const anthropicRequest = (
  request: ModelRequest,
  target: { readonly provider: string; readonly model: string; readonly maxTokens: number }
): Anthropic.MessageCreateParamsStreaming => {
  const items = pairToolCalls(request.conversation)
  const ids = legalIds(items)
  const blocks = system(request)
  const messages = trimEnd(merge(items.map((item) => message(item, ids, target.provider))))
  return {
    model: target.model,
    max_tokens: target.maxTokens,
    ...(blocks.length === 0 ? {} : { system: blocks }),
    messages: messages.map(({ content, role }): Anthropic.MessageParam => ({ role, content: [...content] })),
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(tool) }),
    stream: true
  }
}
