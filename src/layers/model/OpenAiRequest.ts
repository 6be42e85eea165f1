/**
 * A request as an OpenAI-compatible chat completion reads it.
 */
import { createHash } from "node:crypto"
import type OpenAI from "openai"
import { pairToolCalls, type AssistantMessage, type ConversationItem } from "../../domain/Conversation.ts"
import { legalName } from "../../domain/model/Fold.ts"
import { officialOpenAiHost, type Provider } from "../../domain/model/Providers.ts"
import { renderContext, renderSection } from "../../domain/Prompt.ts"
import type { ModelRequest, ToolDefinition } from "../../services/Model.ts"

type Message = OpenAI.Chat.ChatCompletionMessageParam
type Body = OpenAI.Chat.ChatCompletionCreateParamsStreaming & Readonly<Record<string, unknown>>

export interface OpenAiTarget {
  readonly provider: string
  readonly model: string
  readonly host: string
  readonly row: Provider
}

const assistant = (item: AssistantMessage, target: OpenAiTarget): ReadonlyArray<Message> => {
  if (item.content === "" && item.tool_calls.length === 0) return []
  const calls = item.tool_calls.map((call) => ({
    id: call.id,
    type: "function" as const,
    function: { name: legalName(call.name), arguments: JSON.stringify(call.arguments) }
  }))
  const replay = target.row.replay_reasoning && item.provider === target.provider && calls.length > 0
  return [
    {
      role: "assistant",
      content: item.content === "" ? null : item.content,
      ...(replay ? { reasoning_content: item.reasoning.map((each) => each.text).join("") } : {}),
      ...(calls.length === 0 ? {} : { tool_calls: calls })
    }
  ]
}

const message = (item: ConversationItem, target: OpenAiTarget): ReadonlyArray<Message> => {
  switch (item.role) {
    case "user":
      return [{ role: "user", content: item.content }]
    case "context":
      return [{ role: "user", content: renderContext(item) }]
    case "assistant":
      return assistant(item, target)
    case "tool": {
      const content = item.ok ? item.content : JSON.stringify({ ok: false, error: item.content })
      return [{ role: "tool", tool_call_id: item.tool_call_id, content }]
    }
  }
}

const prefixFirstUser = (
  items: ReadonlyArray<ConversationItem>,
  prefix: string
): ReadonlyArray<ConversationItem> => {
  const first = items.findIndex((item) => item.role === "user")
  return items.map((item, at) =>
    at === first && item.role === "user" ? { ...item, content: `${prefix}${item.content}` } : item
  )
}

const tool = (definition: ToolDefinition): OpenAI.Chat.ChatCompletionTool => ({
  type: "function",
  function: {
    name: definition.name,
    description: definition.description,
    parameters: { ...definition.parameters }
  }
})

/** Requests with the same stable prompt and tools are sent to the same cache: at most 64 characters. */
const cacheKey = (request: ModelRequest): string => {
  const stable = request.system
    .filter((section) => section.cache === "stable")
    .map((section) => section.content)
  const hash = createHash("sha256").update(JSON.stringify(["looplane-openai", stable, request.tools]))
  return `looplane-openai:${hash.digest("hex").slice(0, 48)}`
}

export const openAiRequest = (request: ModelRequest, target: OpenAiTarget): Body => {
  const { row } = target
  const system = request.system.map(renderSection).join("\n\n")
  const items = prefixFirstUser(pairToolCalls(request.conversation), row.first_user_prefix)
  return {
    ...row.extra_body,
    model: target.model,
    messages: [
      ...(system === "" ? [] : [{ role: "system", content: system } as const]),
      ...items.flatMap((item) => message(item, target))
    ],
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(tool) }),
    ...(row.max_tokens === null ? {} : { max_tokens: row.max_tokens }),
    ...(target.host === officialOpenAiHost ? { prompt_cache_key: cacheKey(request) } : {}),
    stream: true,
    stream_options: { include_usage: true }
  }
}
