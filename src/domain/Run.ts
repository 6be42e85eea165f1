/**
 * A run's state, and the one reducer that makes it from events. Whatever decides what happens next is in it, so a run
 * goes on the same whether its process is the one that began it or not (`Next.ts`).
 */
import type { ConversationItem, FinishReason, ToolCall } from "./Conversation.ts"
import type { ActionEffect, ApprovalDecision, EventData, RunEvent } from "./Event.ts"
import type { RunId, TreeId } from "./Ids.ts"
import { callText, remember, type Round } from "./Repetition.ts"
import type { CheckOutcome, ModelUsage } from "./Result.ts"
import { nudges } from "./SystemPrompt.ts"
import type { SandboxKind } from "./SandboxRule.ts"
import * as Usage from "./Usage.ts"
import { failureOf, type Failure } from "./Verdict.ts"

/** A call of the last turn that has no answer yet. */
export interface PendingCall {
  readonly call: ToolCall
  /** Null before it was looked at, and when no tool of that name exists. */
  readonly effect: ActionEffect | null
  /** The tree that it was started on; null when it was not. A run that finds one here goes on after a crash. */
  readonly started_on: TreeId | null
  /** The question that nobody has answered. */
  readonly question: EventData<"approval.requested"> | null
  readonly decision: ApprovalDecision | null
}

/** A turn without tool calls: a candidate for the end, until something is said to it. */
export interface FinalAnswer {
  readonly finish_reason: FinishReason
  readonly blank: boolean
}

/** How far the last words of a run that used up its steps have come. */
export type WindDown = "started" | "told" | "done"

export interface RunState {
  readonly run_id: RunId | null
  /** The last step that a model was asked in. */
  readonly step: number
  /** The last step that was answered. */
  readonly answered_step: number
  /** The step that the current task began after: the limit on steps counts from there. */
  readonly first_step: number
  readonly repository: EventData<"repository.read"> | null
  readonly prompt: EventData<"prompt.built"> | null
  readonly prepared: EventData<"workspace.prepared"> | null
  readonly conversation: ReadonlyArray<ConversationItem>
  readonly usage: Usage.Usage
  readonly model_usage: ReadonlyArray<ModelUsage>
  /** The provider and model that answer now: later turns start there. */
  readonly provider: string
  readonly model: string
  /** Where its commands run; null for a run of before that was written down. */
  readonly sandbox: SandboxKind | null
  readonly base_tree: TreeId | null
  readonly tree: TreeId | null
  /** The model's last words. */
  readonly summary: string
  /** In call order. */
  readonly pending: ReadonlyArray<PendingCall>
  /** Whether a call of the last turn did more than read. */
  readonly acted: boolean
  /** Turns in a row that only read. */
  readonly read_only_steps: number
  readonly empty_answers: number
  readonly rounds: ReadonlyArray<Round>
  readonly final: FinalAnswer | null
  readonly wind_down: WindDown | null
  /** The tree of the last final answer; null from the next request on. */
  readonly scanned: TreeId | null
  /** What is handed over of the scanned tree. */
  readonly patch: EventData<"patch.collected"> | null
  /** Outcomes of the final verification of the scanned tree, as far as it has come. */
  readonly outcomes: ReadonlyArray<CheckOutcome>
  /** Whether that verification is settled. */
  readonly settled: boolean
  /** Outcomes of the last settled final verification, and the tree that it ran on. */
  readonly verification: ReadonlyArray<CheckOutcome>
  readonly verification_tree: TreeId | null
  /** What failed in the last settled verification before that. */
  readonly failure: Failure | null
  /** Every check that was run, in the order in which they ended. */
  readonly checks: ReadonlyArray<EventData<"verification.completed">>
  readonly notes: ReadonlyArray<string>
  readonly ended: Omit<EventData<"run.ended">, "usage"> | null
  readonly interrupted: boolean
}

const unchecked = { outcomes: [], settled: false }

/** How a task begins, whatever came before it. */
const untouched = {
  pending: [],
  acted: false,
  read_only_steps: 0,
  empty_answers: 0,
  rounds: [],
  final: null,
  wind_down: null,
  scanned: null,
  patch: null,
  ...unchecked,
  verification: [],
  verification_tree: null,
  failure: null,
  ended: null,
  interrupted: false
} satisfies Partial<RunState>

export const initial: RunState = {
  run_id: null,
  step: 0,
  answered_step: 0,
  first_step: 0,
  repository: null,
  prompt: null,
  prepared: null,
  conversation: [],
  usage: Usage.zero,
  model_usage: [],
  provider: "",
  model: "",
  sandbox: null,
  base_tree: null,
  tree: null,
  summary: "",
  checks: [],
  notes: [],
  ...untouched
}

const addUsage = (all: ReadonlyArray<ModelUsage>, one: ModelUsage): ReadonlyArray<ModelUsage> => {
  const at = all.findIndex((u) => u.lane === one.lane && u.provider === one.provider && u.model === one.model)
  return at === -1
    ? [...all, one]
    : all.map((u, i) => (i === at ? { ...u, usage: Usage.add(u.usage, one.usage) } : u))
}

const withCall = (
  state: RunState,
  id: string,
  change: (pending: PendingCall) => PendingCall
): RunState["pending"] => state.pending.map((each) => (each.call.id === id ? change(each) : each))

const completed = (state: RunState, data: EventData<"model.completed">): RunState => {
  const { lane, model, provider, step, turn } = data
  const said = turn.text !== "" ? turn.text : (turn.refusal ?? "")
  const next: RunState = {
    ...state,
    usage: Usage.add(state.usage, turn.usage),
    model_usage: addUsage(state.model_usage, { lane, provider, model, usage: turn.usage }),
    summary: said === "" ? state.summary : said,
    conversation: [
      ...state.conversation,
      { role: "assistant", provider, content: said, reasoning: turn.reasoning, tool_calls: turn.tool_calls }
    ]
  }
  if (lane === "wind_down") return { ...next, wind_down: "done" }
  const calls = turn.tool_calls.length > 0
  return {
    ...next,
    answered_step: step,
    acted: false,
    pending: turn.tool_calls.map((call) => ({
      call,
      effect: null,
      started_on: null,
      question: null,
      decision: null
    })),
    final: calls ? null : { finish_reason: turn.finish_reason, blank: turn.text.trim() === "" },
    empty_answers: calls ? 0 : state.empty_answers,
    read_only_steps: calls ? state.read_only_steps : 0
  }
}

const answered = (state: RunState, data: EventData<"tool.completed">): RunState => {
  const { content, name, ok, tool_call_id, tree } = data
  const call = state.pending.find((each) => each.call.id === tool_call_id)?.call
  const pending = state.pending.filter((each) => each.call.id !== tool_call_id)
  const last = pending.length === 0 && state.pending.length > 0
  return {
    ...state,
    pending,
    read_only_steps: last ? (state.acted ? 0 : state.read_only_steps + 1) : state.read_only_steps,
    rounds:
      call === undefined
        ? state.rounds
        : remember(state.rounds, {
            call: callText(call.name, call.invalid_arguments ?? call.arguments),
            observation: content
          }),
    tree: tree ?? state.tree,
    conversation: [...state.conversation, { role: "tool", tool_call_id, name, ok, content }]
  }
}

/** What the harness or the user says to a final answer takes it back. */
const said = (state: RunState, item: ConversationItem): RunState => {
  const next = { ...state, conversation: [...state.conversation, item], final: null }
  if (item.role !== "context") return next
  switch (item.source) {
    case nudges.readOnlyStallSource:
      return { ...next, read_only_steps: 0 }
    case nudges.emptyAnswer.source:
      return { ...next, empty_answers: state.empty_answers + 1 }
    case nudges.windDown.source:
      return { ...next, wind_down: state.wind_down === "started" ? "told" : state.wind_down }
    default:
      return next
  }
}

/** Nothing of the task before decides what happens in this one. */
const anew = (state: RunState): RunState => ({
  ...state,
  first_step: state.answered_step,
  ...untouched
})

/** What a reader should know of a dirty source. */
export const leftOut = ({ left_out }: EventData<"workspace.prepared">): ReadonlyArray<string> => {
  if (left_out.length === 0) return []
  const shown = left_out.slice(0, 5).join(", ")
  const more = left_out.length > 5 ? ` and ${left_out.length - 5} more` : ""
  return [
    `the run starts from the commit; left out of it: ${shown}${more} (--base working-tree takes them along)`
  ]
}

/** The next state. Total: an event that changes nothing returns the state it was given. */
export const reduce = (state: RunState, event: RunEvent): RunState => {
  switch (event.event_type) {
    case "run.created":
      return {
        ...state,
        run_id: event.data.run_id,
        provider: event.data.provider,
        model: event.data.model,
        sandbox: event.data.sandbox ?? null
      }
    case "run.forked":
      return { ...state, run_id: event.data.run_id, ended: null, interrupted: false }
    case "session.resumed":
      return { ...state, provider: event.data.provider, model: event.data.model, interrupted: false }
    case "session.continued": {
      const { instruction, model, provider } = event.data
      return said({ ...anew(state), provider, model }, { role: "user", content: instruction })
    }
    case "repository.read":
      return { ...state, repository: event.data }
    case "prompt.built":
      return { ...state, prompt: event.data }
    case "workspace.prepared":
      return {
        ...state,
        prepared: event.data,
        base_tree: event.data.tree,
        tree: event.data.tree,
        notes: [...state.notes, ...leftOut(event.data)]
      }
    case "workspace.scanned":
      return { ...state, tree: event.data.tree, scanned: event.data.tree, patch: null, ...unchecked }
    case "patch.collected":
      return { ...state, patch: event.data }
    case "conversation.appended":
      return said(state, event.data.item)
    case "model.requested":
      return {
        ...state,
        step: event.data.step,
        final: null,
        scanned: null,
        patch: null,
        ...unchecked,
        interrupted: false
      }
    case "model.completed":
      return completed(state, event.data)
    case "model.fallback":
      return { ...state, provider: event.data.to_provider, model: event.data.to_model }
    case "tool.requested": {
      const { call, effect } = event.data
      return { ...state, pending: withCall(state, call.id, (each) => ({ ...each, effect })) }
    }
    case "tool.started": {
      const { tool_call_id, tree } = event.data
      const effect = state.pending.find((each) => each.call.id === tool_call_id)?.effect ?? "read"
      return {
        ...state,
        acted: state.acted || effect !== "read",
        pending: withCall(state, tool_call_id, (each) => ({ ...each, started_on: tree }))
      }
    }
    case "tool.completed":
      return answered(state, event.data)
    case "approval.requested": {
      const { data } = event
      const pending = withCall(state, data.action_id, (each) => ({ ...each, question: data }))
      return { ...state, pending }
    }
    case "approval.resolved":
    case "approval.abandoned": {
      const { action_id } = event.data
      const decision = event.event_type === "approval.resolved" ? event.data.decision : null
      const pending = withCall(state, action_id, (each) => ({ ...each, question: null, decision }))
      return { ...state, pending }
    }
    case "verification.completed": {
      const { outcome, purpose } = event.data
      return {
        ...state,
        checks: [...state.checks, event.data],
        outcomes: purpose === "final" ? [...state.outcomes, outcome] : state.outcomes
      }
    }
    case "verification.settled": {
      const { outcomes, tree } = event.data
      return {
        ...state,
        failure:
          state.verification_tree === null
            ? state.failure
            : failureOf(state.verification_tree, state.verification),
        settled: true,
        verification: outcomes,
        verification_tree: tree
      }
    }
    case "loop.wind_down_started":
      return { ...state, wind_down: "started" }
    case "loop.wind_down_completed":
    case "loop.wind_down_failed":
      return { ...state, wind_down: "done" }
    case "run.noted":
      return { ...state, notes: [...state.notes, event.data.note] }
    case "run.interrupted":
      return { ...state, interrupted: true }
    case "run.ended": {
      const { changed_files, error, status, terminal_reason, tree } = event.data
      return { ...state, ended: { changed_files, error, status, terminal_reason, tree }, interrupted: false }
    }
    case "workspace.restored":
    case "model.exchanged":
    case "model.retry":
    case "model.failed":
    case "tool.batch_started":
    case "tool.batch_completed":
    case "verification.started":
    case "loop.read_only_stall_nudge":
      return state
  }
}
