/**
 * Folds the chunks of an OpenAI-style chat completion, as the many servers that speak it send them.
 */
import { Result } from "effect"
import { zero, type Usage } from "../Usage.ts"
import { finishReason } from "./FinishReason.ts"
import { protocol, type Delta, type Draft, type Fault, type Fold } from "./Fold.ts"
import { count, isRecord, list, parse, record, text, type JsonRecord } from "../Json.ts"

interface Slot {
  readonly index: number | null
  readonly id: string
  readonly name: string
  readonly arguments: string
}

export interface OpenAiState {
  readonly text: string
  readonly reasoning: string
  readonly refusal: string
  readonly slots: ReadonlyArray<Slot>
  readonly finish: string | null
  readonly usage: Usage
  /** Whether any choice came: an answer without one is none. */
  readonly answered: boolean
  readonly done: boolean
}

const initial: OpenAiState = {
  text: "",
  reasoning: "",
  refusal: "",
  slots: [],
  finish: null,
  usage: zero,
  answered: false,
  done: false
}

const readUsage = (usage: JsonRecord): Usage => {
  const input = count(usage["prompt_tokens"]) ?? 0
  const output = count(usage["completion_tokens"]) ?? 0
  const total = count(usage["total_tokens"])
  const cached =
    count(record(usage["prompt_tokens_details"])["cached_tokens"]) ??
    count(usage["prompt_cache_hit_tokens"]) ??
    count(usage["cached_tokens"]) ??
    0
  const reasoning = count(record(usage["completion_tokens_details"])["reasoning_tokens"]) ?? 0
  return {
    input_tokens: input,
    output_tokens: output,
    cached_input_tokens: Math.min(cached, input),
    cache_write_tokens: 0,
    // A provider that counts reasoning beside the output shows that in its total.
    reasoning_tokens: Math.min(reasoning, output),
    provider_total_tokens: total === input + output ? null : total
  }
}

/** The last usage wins: the numbers of a stream are running totals. */
const usageOf = (chunk: JsonRecord, choice: JsonRecord, before: Usage): Usage => {
  const found = [chunk["usage"], record(chunk["x_groq"])["usage"], choice["usage"]].find(isRecord)
  return found === undefined ? before : readUsage(found)
}

const isComplete = (json: string) => isRecord(parse(json))

/** Which slot a piece of a call belongs to; -1 for a new one. */
const slotOf = (
  slots: ReadonlyArray<Slot>,
  index: number | null,
  id: string,
  name: string,
  args: string
): number => {
  const at =
    index !== null
      ? slots.findLastIndex((slot) => slot.index === index)
      : id === ""
        ? slots.length - 1
        : slots.findIndex((slot) => slot.id === id)
  const slot = slots[at]
  if (slot === undefined) return -1
  if (id !== "" && slot.id !== "" && id !== slot.id) return -1
  // Several whole calls may share one index and bring no ids.
  return id === "" && name !== "" && args !== "" && isComplete(slot.arguments) ? -1 : at
}

/** A name may be repeated whole, grow, or arrive in pieces. */
const joinName = (before: string, next: string): string =>
  next === "" || next === before ? before : next.startsWith(before) ? next : before + next

const pushCall = (slots: ReadonlyArray<Slot>, piece: JsonRecord): ReadonlyArray<Slot> => {
  const call = isRecord(piece["function"]) ? piece["function"] : piece
  const index = count(piece["index"])
  const id = text(piece["id"])
  const name = text(call["name"])
  const given = call["arguments"]
  const args = isRecord(given) ? JSON.stringify(given) : text(given)
  const at = slotOf(slots, index, id, name, args)
  const slot = slots[at]
  if (slot === undefined) return [...slots, { index, id, name, arguments: args }]
  const next = {
    index: slot.index,
    id: slot.id === "" ? id : slot.id,
    name: joinName(slot.name, name),
    arguments: slot.arguments + args
  }
  return slots.map((each, place) => (place === at ? next : each))
}

const partText = (part: unknown): string =>
  typeof part === "string" ? part : text(record(part)["text"]) || text(record(part)["content"])

/** Content is a string or a list of parts, some of which are thoughts. */
const readContent = (content: unknown): ReadonlyArray<Delta> =>
  (typeof content === "string" ? [content] : list(content)).map((part) => {
    const thinking = record(part)["thinking"] ?? record(part)["reasoning"]
    if (thinking === undefined) return { type: "text", text: partText(part) }
    return {
      type: "reasoning",
      text: typeof thinking === "string" ? thinking : list(thinking).map(partText).join("")
    }
  })

const joined = (deltas: ReadonlyArray<Delta>, type: Delta["type"]) =>
  deltas.map((delta) => (delta.type === type ? delta.text : "")).join("")

const pushChoice = (
  state: OpenAiState,
  chunk: JsonRecord,
  choice: JsonRecord
): readonly [OpenAiState, ReadonlyArray<Delta>] => {
  // A server that does not stream sends the whole message in one piece.
  const delta = record(choice["delta"] ?? choice["message"])
  const thought = text(delta["reasoning_content"]) || text(delta["reasoning"])
  const deltas = [{ type: "reasoning", text: thought } as const, ...readContent(delta["content"])].filter(
    (each) => each.text !== ""
  )
  const legacy = isRecord(delta["function_call"]) ? [{ index: 0, function: delta["function_call"] }] : []
  const pieces = [...list(delta["tool_calls"]), ...legacy].filter(isRecord)
  const next = {
    ...state,
    answered: true,
    text: state.text + joined(deltas, "text"),
    reasoning: state.reasoning + joined(deltas, "reasoning"),
    refusal: state.refusal + text(delta["refusal"]),
    slots: pieces.reduce(pushCall, state.slots),
    finish: text(choice["finish_reason"]) || state.finish,
    usage: usageOf(chunk, choice, state.usage)
  }
  return [next, deltas]
}

const push = (
  state: OpenAiState,
  data: string
): Result.Result<readonly [OpenAiState, ReadonlyArray<Delta>], Fault> => {
  if (data.trim() === "[DONE]") return Result.succeed([{ ...state, done: true }, []])
  const chunk = parse(data)
  if (!isRecord(chunk)) return Result.fail({ _tag: "Unparsable" })
  const choice = list(chunk["choices"]).find((each) => isRecord(each) && (count(each["index"]) ?? 0) === 0)
  const error = chunk["error"] ?? record(choice)["error"]
  if (error !== undefined && error !== null)
    return Result.fail({ _tag: "Reported", body: JSON.stringify({ error }) })
  if (!isRecord(choice)) return Result.succeed([{ ...state, usage: usageOf(chunk, {}, state.usage) }, []])
  if (choice["finish_reason"] === "error") return Result.fail({ _tag: "Reported", body: data })
  return Result.succeed(pushChoice(state, chunk, choice))
}

const draft = (state: OpenAiState): Result.Result<Draft, Fault> => {
  if (!state.answered) return Result.fail({ _tag: "Empty" })
  if (state.slots.some((slot) => slot.name === "")) return protocol("a tool call came without a name")
  const slots = state.slots.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
  return Result.succeed({
    text: state.text,
    reasoning: state.reasoning === "" ? [] : [{ text: state.reasoning }],
    calls: slots.map((slot) => ({
      id: slot.id === "" ? null : slot.id,
      name: slot.name,
      arguments: slot.arguments
    })),
    finish_reason: finishReason(state.finish, { calls: slots.length > 0, refused: state.refusal !== "" }),
    refusal: state.refusal === "" ? null : state.refusal,
    usage: state.usage
  })
}

export const openAiFold: Fold<OpenAiState> = {
  initial,
  push,
  progress: (state) => (state.done ? "done" : state.finish === null ? "open" : "enough"),
  draft
}
