/**
 * A provider's stream folds into a draft, and a draft into a turn. What every wire format shares.
 */
import { Result } from "effect"
import { ToolCallId } from "../Ids.ts"
import type { FinishReason, ModelTurn, Reasoning, ToolCall } from "../Conversation.ts"
import type { Usage } from "../Usage.ts"
import { isRepairable, parseArguments, repairArguments, type Repair } from "./Arguments.ts"

/** A piece of the answer as it arrives. */
export interface Delta {
  readonly type: "text" | "reasoning"
  readonly text: string
}

export interface DraftCall {
  /** Null when the provider sent none. */
  readonly id: string | null
  readonly name: string
  /** As the model wrote them. */
  readonly arguments: string
}

/** A whole answer whose calls still are what the provider sent. */
export interface Draft {
  readonly text: string
  readonly reasoning: ReadonlyArray<Reasoning>
  readonly calls: ReadonlyArray<DraftCall>
  readonly finish_reason: FinishReason
  readonly refusal: string | null
  readonly usage: Usage
}

/** Why a stream is no answer. */
export type Fault =
  /** The provider says so itself; `body` is its error as JSON. */
  | { readonly _tag: "Reported"; readonly body: string }
  | { readonly _tag: "Protocol"; readonly message: string }
  /** A piece that is no JSON: broken, or cut when it is the last. */
  | { readonly _tag: "Unparsable" }
  | { readonly _tag: "Empty" }

/** How far the stream has come: `enough` is a good turn when nothing follows, `done` is one at once. */
export type Progress = "open" | "enough" | "done"

/** The fold of one wire format over the `data` of its events. */
export interface Fold<S> {
  readonly initial: S
  readonly push: (state: S, data: string) => Result.Result<readonly [S, ReadonlyArray<Delta>], Fault>
  readonly progress: (state: S) => Progress
  readonly draft: (state: S) => Result.Result<Draft, Fault>
}

export const protocol = (message: string) => Result.fail<Fault>({ _tag: "Protocol", message })

/**
 * An id for every call, none of which is taken: the provider's own where it is new, else one that depends on nothing
 * but the conversation, so that a repeated request makes the same.
 */
export const uniqueIds = (
  wanted: ReadonlyArray<string | null>,
  taken: ReadonlySet<string>
): ReadonlyArray<string> => {
  const used = new Set(taken)
  return wanted.map((id) => {
    const [stem, join, first] = id === null ? ["call", "_", used.size + 1] : [id, "_", 2]
    let next = id ?? `${stem}${join}${first}`
    for (let n = first; used.has(next); n++) next = `${stem}${join}${n}`
    used.add(next)
    return next
  })
}

/** No service takes a longer name. */
const maxNameChars = 64

/**
 * A tool's name as services take it in a history. Models make names up, and for one that is against the rules the whole
 * conversation would be refused from then on.
 */
export const legalName = (name: string): string =>
  name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, maxNameChars) || "_"

/** Whether a call's arguments are broken in a way that a repair may mend. */
export const wantsRepair = (draft: Draft): boolean =>
  draft.finish_reason !== "length" &&
  draft.calls.some((call) => Result.isFailure(parseArguments(call.arguments)) && isRepairable(call.arguments))

const toolCall = (call: DraftCall, id: string, repair: Repair | null): ToolCall => {
  const read = repair === null ? parseArguments(call.arguments) : repairArguments(call.arguments, repair)
  return {
    id: ToolCallId.make(id),
    name: call.name,
    ...Result.match(read, {
      onSuccess: (value) => ({ arguments: value }),
      onFailure: (invalid) => ({ arguments: {}, invalid_arguments: invalid })
    })
  }
}

/** The turn of a draft. `taken` are the ids of the calls so far; without `repair` broken arguments stay broken. */
export const toTurn = (draft: Draft, taken: ReadonlySet<string>, repair: Repair | null): ModelTurn => {
  const ids = uniqueIds(
    draft.calls.map((call) => call.id),
    taken
  )
  return {
    text: draft.text,
    reasoning: draft.reasoning,
    tool_calls: draft.calls.map((call, at) => toolCall(call, ids[at] ?? `call_${at}`, repair)),
    finish_reason: draft.finish_reason,
    ...(draft.refusal === null ? {} : { refusal: draft.refusal }),
    usage: draft.usage
  }
}
