import {
  argumentSlices,
  argumentText,
  asArray,
  callId,
  isRecord,
  jsonAnswer,
  sseAnswer,
  textSlices,
  usageOf,
  type JsonRecord,
  type RenderContext,
  type Rendered,
  type TurnSpec
} from "./types.ts"

const created = 1_700_000_000

const finishReasons: Readonly<Record<string, string>> = { refusal: "content_filter", pause: "stop" }

const finishOf = (turn: TurnSpec) => {
  const finish = turn.finish ?? ((turn.toolCalls ?? []).length > 0 ? "tool_calls" : "stop")
  return finishReasons[finish] ?? finish
}

const wireUsage = (turn: TurnSpec) => {
  const usage = usageOf(turn)
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached },
    completion_tokens_details: { reasoning_tokens: usage.reasoning }
  }
}

const requestId = (context: RenderContext) => ({ "x-request-id": `req_openai_${context.index}` })

/** The turn as a `chat.completion`, or as a stream of `chat.completion.chunk` events. */
export const renderOpenAi = (turn: TurnSpec, context: RenderContext): Rendered =>
  context.stream ? renderStream(turn, context) : renderWhole(turn, context)

const renderWhole = (turn: TurnSpec, context: RenderContext): Rendered => {
  const calls = (turn.toolCalls ?? []).map((call, place) => ({
    id: callId(call, context, place),
    type: "function",
    function: { name: call.name, arguments: argumentText(call) }
  }))
  const message = {
    role: "assistant",
    content: turn.text ?? null,
    refusal: null,
    ...(turn.reasoning === undefined ? {} : { reasoning_content: turn.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
  return jsonAnswer(
    200,
    {
      id: `chatcmpl-${context.index}`,
      object: "chat.completion",
      created,
      model: context.model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(turn) }],
      usage: wireUsage(turn)
    },
    requestId(context)
  )
}

const renderStream = (turn: TurnSpec, context: RenderContext): Rendered => {
  const event = (choices: ReadonlyArray<unknown>, usage: unknown = null) =>
    `data: ${JSON.stringify({
      id: `chatcmpl-${context.index}`,
      object: "chat.completion.chunk",
      created,
      model: context.model,
      choices,
      ...(context.includeUsage ? { usage } : {})
    })}\n\n`
  const delta = (content: JsonRecord, finish: string | null = null) =>
    event([{ index: 0, delta: content, logprobs: null, finish_reason: finish }])

  const events = [delta({ role: "assistant", content: "" })]
  for (const part of textSlices(turn.reasoning ?? "", turn)) events.push(delta({ reasoning_content: part }))
  for (const part of textSlices(turn.text ?? "", turn)) events.push(delta({ content: part }))
  for (const [index, call] of (turn.toolCalls ?? []).entries()) {
    const head = { name: call.name, arguments: "" }
    events.push(
      delta({
        tool_calls: [{ index, id: callId(call, context, index), type: "function", function: head }]
      })
    )
    for (const part of argumentSlices(argumentText(call), turn))
      events.push(delta({ tool_calls: [{ index, function: { arguments: part } }] }))
  }
  if (turn.terminal !== false) {
    events.push(delta({}, finishOf(turn)))
    if (context.includeUsage) events.push(event([], wireUsage(turn)))
    events.push("data: [DONE]\n\n")
  }
  return sseAnswer(events, requestId(context))
}

const errorTypes: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ["invalid_request_error", "invalid_api_key"],
  429: ["requests", "rate_limit_exceeded"]
}

/** An error body as the service words it. */
export const openAiError = (status: number, message: string) => {
  const [type, code] = errorTypes[status] ?? [status >= 500 ? "server_error" : "invalid_request_error", null]
  return { error: { message, type, param: null, code } }
}

const functionName = /^[a-zA-Z0-9_-]{1,64}$/

/** Why the real service would refuse this request with 400, or undefined. */
export const refuseOpenAi = (body: unknown): string | undefined => {
  if (!isRecord(body)) return "We could not parse the JSON body of your request."
  if (typeof body["model"] !== "string") return "you must provide a model parameter"
  if (body["stream"] !== true && body["stream_options"] !== undefined)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
  return refuseTools(body) ?? refuseMessages(asArray(body["messages"]))
}

const refuseTools = (body: JsonRecord): string | undefined => {
  const tools = body["tools"]
  if (tools === undefined) {
    const needs = ["tool_choice", "parallel_tool_calls"].find((key) => body[key] !== undefined)
    return needs === undefined ? undefined : `'${needs}' is only allowed when 'tools' are specified.`
  }
  if (asArray(tools).length === 0) return "[] is too short - 'tools'"
  for (const [at, tool] of asArray(tools).entries()) {
    const definition = isRecord(tool) && tool["type"] === "function" ? tool["function"] : undefined
    if (!isRecord(definition)) return `Missing required parameter: 'tools[${at}].function'.`
    if (typeof definition["name"] !== "string" || !functionName.test(definition["name"]))
      return `Invalid 'tools[${at}].function.name': string does not match pattern.`
    const parameters = definition["parameters"]
    if (parameters !== undefined && (!isRecord(parameters) || parameters["type"] !== "object"))
      return `Invalid schema for function '${definition["name"]}': schema must have type 'object'.`
  }
  return undefined
}

const refuseMessages = (messages: ReadonlyArray<unknown>): string | undefined => {
  if (messages.length === 0)
    return "Invalid 'messages': empty array. Expected an array with minimum length 1."
  let open = new Set<string>()
  const unanswered = () =>
    open.size === 0
      ? undefined
      : "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
        `'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(", ")}`
  for (const [at, message] of messages.entries()) {
    if (!isRecord(message)) return `Invalid type for 'messages[${at}]': expected an object.`
    const role = message["role"]
    if (role === "tool") {
      const id = message["tool_call_id"]
      if (typeof id !== "string" || !open.delete(id))
        return `messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (messages[${at}]).`
      if (message["content"] === undefined || message["content"] === null)
        return `Invalid value for 'content' (messages[${at}]): expected a string, got null.`
      continue
    }
    const missing = unanswered()
    if (missing !== undefined) return missing
    if (role === "assistant") {
      const calls = openCalls(message, at)
      if (typeof calls === "string") return calls
      open = calls
    } else if (role !== "system" && role !== "developer" && role !== "user") {
      return `Invalid value: '${String(role)}' (messages[${at}].role).`
    } else if (typeof message["content"] !== "string" && asArray(message["content"]).length === 0) {
      return `Invalid value for 'content' (messages[${at}]): expected a string, got null.`
    }
  }
  return unanswered()
}

/** The ids that an assistant message leaves to be answered, or what is wrong with it. */
const openCalls = (message: JsonRecord, at: number): Set<string> | string => {
  const ids = new Set<string>()
  const calls = message["tool_calls"]
  if (calls === undefined) {
    const content = message["content"]
    return typeof content === "string" || asArray(content).length > 0
      ? ids
      : `Invalid value for 'content' (messages[${at}]): expected a string, got null.`
  }
  if (asArray(calls).length === 0) return `[] is too short - 'messages.${at}.tool_calls'`
  for (const [place, call] of asArray(calls).entries()) {
    const where = `messages[${at}].tool_calls[${place}]`
    if (!isRecord(call) || typeof call["id"] !== "string" || call["id"] === "")
      return `Missing required parameter: '${where}.id'.`
    if (call["type"] !== "function") return `Missing required parameter: '${where}.type'.`
    const called = call["function"]
    if (!isRecord(called) || typeof called["name"] !== "string" || !functionName.test(called["name"]))
      return `Invalid '${where}.function.name': string does not match pattern.`
    if (typeof called["arguments"] !== "string")
      return `Invalid type for '${where}.function.arguments': expected a string.`
    if (ids.has(call["id"])) return `Duplicate value for '${where}.id': '${call["id"]}'.`
    ids.add(call["id"])
  }
  return ids
}
