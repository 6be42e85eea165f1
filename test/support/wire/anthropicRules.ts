import { asArray, isRecord, type JsonRecord } from "./types.ts"

const toolName = /^[a-zA-Z0-9_-]{1,128}$/
const toolUseId = /^[a-zA-Z0-9_-]+$/

/** Why the real service would refuse this request with 400, or undefined. */
export const refuseAnthropic = (
  body: unknown,
  headers: Readonly<Record<string, string>>
): string | undefined => {
  if (headers["anthropic-version"] === undefined) return "anthropic-version: header is required"
  if (!isRecord(body)) return "The request body is not valid JSON."
  if (typeof body["model"] !== "string") return "model: Field required"
  const max = body["max_tokens"]
  if (max === undefined) return "max_tokens: Field required"
  if (typeof max !== "number" || !Number.isInteger(max) || max < 1)
    return "max_tokens: Input should be greater than or equal to 1"
  if (cacheBreakpoints(body) > 4) return "A maximum of 4 blocks with cache_control may be provided."
  return refuseTools(asArray(body["tools"])) ?? refuseMessages(asArray(body["messages"]))
}

const cacheBreakpoints = (value: unknown): number => {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + cacheBreakpoints(item), 0)
  if (!isRecord(value)) return 0
  const own = isRecord(value["cache_control"]) ? 1 : 0
  return ["system", "tools", "messages", "content"].reduce(
    (sum, key) => sum + cacheBreakpoints(value[key]),
    own
  )
}

const refuseTools = (tools: ReadonlyArray<unknown>): string | undefined => {
  const names = new Set<string>()
  for (const [at, tool] of tools.entries()) {
    if (!isRecord(tool) || typeof tool["name"] !== "string" || !toolName.test(tool["name"]))
      return `tools.${at}.name: String should match pattern '${toolName.source}'`
    if (!isRecord(tool["input_schema"]) || tool["input_schema"]["type"] !== "object")
      return `tools.${at}.input_schema.type: Input should be 'object'`
    if (names.has(tool["name"])) return "tools: Tool names must be unique."
    names.add(tool["name"])
  }
  return undefined
}

interface Folded {
  readonly role: string
  readonly at: number
  readonly blocks: ReadonlyArray<JsonRecord>
}

const refuseMessages = (messages: ReadonlyArray<unknown>): string | undefined => {
  if (messages.length === 0) return "messages: at least one message is required"
  const folded: Array<Folded> = []
  for (const [at, message] of messages.entries()) {
    const next = readMessage(message, at, at === messages.length - 1)
    if (typeof next === "string") return next
    const last = folded.at(-1)
    if (last === undefined || last.role !== next.role) folded.push(next)
    else folded[folded.length - 1] = { ...last, blocks: [...last.blocks, ...next.blocks] }
  }
  if (folded[0]?.role !== "user") return 'messages: first message must use the "user" role'
  const used = new Set<string>()
  for (const [place, message] of folded.entries()) {
    const fault =
      message.role === "assistant"
        ? refuseAssistant(message, folded[place + 1], used)
        : refuseResults(message, folded[place - 1])
    if (fault !== undefined) return fault
  }
  return undefined
}

const readMessage = (message: unknown, at: number, last: boolean): Folded | string => {
  if (!isRecord(message)) return `messages.${at}: Input should be an object`
  const role = message["role"]
  if (role !== "user" && role !== "assistant")
    return `messages.${at}.role: Unexpected role "${String(role)}". Allowed roles are "user" or "assistant"`
  const content = message["content"]
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : asArray(content)
  const empty = blocks.length === 0 || content === ""
  if (empty && !(last && role === "assistant"))
    return `messages.${at}: all messages must have non-empty content except for the optional final assistant message`
  const read: Array<JsonRecord> = []
  for (const [place, block] of blocks.entries()) {
    if (!isRecord(block) || typeof block["type"] !== "string")
      return `messages.${at}.content.${place}.type: Field required`
    if (
      block["type"] === "text" &&
      (typeof block["text"] !== "string" || block["text"].trim() === "") &&
      !empty
    )
      return "messages: text content blocks must contain non-whitespace text"
    read.push(block)
  }
  const end = read.at(-1)
  if (last && role === "assistant" && end?.["type"] === "text" && /\s$/u.test(String(end["text"])))
    return "messages: final assistant content cannot end with trailing whitespace"
  return { role, at, blocks: read }
}

/** Only results that come before any other content count as "immediately after". */
const leadingResults = (message: Folded | undefined): ReadonlySet<unknown> => {
  const blocks = message?.blocks ?? []
  const other = blocks.findIndex((block) => block["type"] !== "tool_result")
  return new Set(blocks.slice(0, other === -1 ? blocks.length : other).map((block) => block["tool_use_id"]))
}

const refuseAssistant = (
  message: Folded,
  next: Folded | undefined,
  used: Set<string>
): string | undefined => {
  const answered = leadingResults(next)
  const orphans: Array<string> = []
  for (const block of message.blocks) {
    if (block["type"] === "tool_result")
      return `messages.${message.at}: \`tool_result\` blocks can only be in \`user\` messages`
    if (block["type"] !== "tool_use") continue
    const id = block["id"]
    if (typeof id !== "string" || !toolUseId.test(id))
      return `messages.${message.at}.content.tool_use.id: String should match pattern '${toolUseId.source}'`
    if (used.has(id)) return `messages.${message.at}: \`tool_use\` ids must be unique`
    used.add(id)
    if (typeof block["name"] !== "string" || !toolName.test(block["name"]))
      return `messages.${message.at}.content.tool_use.name: String should match pattern '${toolName.source}'`
    if (!isRecord(block["input"]))
      return `messages.${message.at}.content.tool_use.input: Input should be a valid dictionary`
    if (!answered.has(id)) orphans.push(id)
  }
  if (orphans.length === 0) return undefined
  return (
    `messages.${message.at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ` +
    `${orphans.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
  )
}

const refuseResults = (message: Folded, previous: Folded | undefined): string | undefined => {
  const asked = new Set(
    (previous?.blocks ?? []).filter((block) => block["type"] === "tool_use").map((block) => block["id"])
  )
  const seen = new Set<unknown>()
  for (const block of message.blocks) {
    if (block["type"] === "tool_use")
      return `messages.${message.at}: \`tool_use\` blocks can only be in \`assistant\` messages`
    if (block["type"] !== "tool_result") continue
    const id = block["tool_use_id"]
    if (!asked.has(id))
      return `messages.${message.at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
    if (seen.has(id)) return `messages.${message.at}: each tool_use must have a single result: ${String(id)}`
    seen.add(id)
  }
  return undefined
}
