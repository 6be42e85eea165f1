/**
 * A run's state, and the one reducer that makes it from events.
 */
import type { ConversationItem } from "./Conversation.ts"
import type { EventData, RunEvent } from "./Event.ts"
import type { RunId, ToolCallId, TreeId } from "./Ids.ts"
import type { CheckOutcome, ModelUsage } from "./Result.ts"
import * as Usage from "./Usage.ts"

export interface RunState {
  readonly run_id: RunId | null
  readonly step: number
  readonly conversation: ReadonlyArray<ConversationItem>
  readonly usage: Usage.Usage
  readonly model_usage: ReadonlyArray<ModelUsage>
  /** The provider and model that answer now: later turns start there. */
  readonly provider: string
  readonly model: string
  readonly base_tree: TreeId | null
  readonly tree: TreeId | null
  /** The model's last words. */
  readonly summary: string
  /** Calls that were started and never completed: a crash's loose ends. */
  readonly started_calls: ReadonlyArray<ToolCallId>
  /** Outcomes of the last settled final verification, and the tree that it ran on. */
  readonly verification: ReadonlyArray<CheckOutcome>
  readonly verification_tree: TreeId | null
  /** Every check that was run, in the order in which they ended. */
  readonly checks: ReadonlyArray<EventData<"verification.completed">>
  readonly notes: ReadonlyArray<string>
  readonly ended: Omit<EventData<"run.ended">, "usage"> | null
  readonly interrupted: boolean
}

export const initial: RunState = {
  run_id: null,
  step: 0,
  conversation: [],
  usage: Usage.zero,
  model_usage: [],
  provider: "",
  model: "",
  base_tree: null,
  tree: null,
  summary: "",
  started_calls: [],
  verification: [],
  verification_tree: null,
  checks: [],
  notes: [],
  ended: null,
  interrupted: false
}

const addUsage = (all: ReadonlyArray<ModelUsage>, one: ModelUsage): ReadonlyArray<ModelUsage> => {
  const at = all.findIndex((u) => u.lane === one.lane && u.provider === one.provider && u.model === one.model)
  return at === -1
    ? [...all, one]
    : all.map((u, i) => (i === at ? { ...u, usage: Usage.add(u.usage, one.usage) } : u))
}

/** The next state. Total: an event that changes nothing returns the state it was given. */
export const reduce = (state: RunState, event: RunEvent): RunState => {
  switch (event.event_type) {
    case "run.created":
      return { ...state, run_id: event.data.run_id, provider: event.data.provider, model: event.data.model }
    case "workspace.prepared":
      return { ...state, base_tree: event.data.tree, tree: event.data.tree }
    case "conversation.appended":
      return { ...state, conversation: [...state.conversation, event.data.item] }
    case "model.requested":
      return { ...state, step: event.data.step, interrupted: false }
    case "model.completed": {
      const { lane, model, provider, turn } = event.data
      const said = turn.text !== "" ? turn.text : (turn.refusal ?? "")
      return {
        ...state,
        usage: Usage.add(state.usage, turn.usage),
        model_usage: addUsage(state.model_usage, { lane, provider, model, usage: turn.usage }),
        summary: said === "" ? state.summary : said,
        conversation: [
          ...state.conversation,
          {
            role: "assistant",
            provider,
            content: said,
            reasoning: turn.reasoning,
            tool_calls: turn.tool_calls
          }
        ]
      }
    }
    case "model.fallback":
      return { ...state, provider: event.data.to_provider, model: event.data.to_model }
    case "tool.started":
      return { ...state, started_calls: [...state.started_calls, event.data.tool_call_id] }
    case "tool.completed": {
      const { content, name, ok, tool_call_id, tree } = event.data
      return {
        ...state,
        started_calls: state.started_calls.filter((id) => id !== tool_call_id),
        tree: tree ?? state.tree,
        conversation: [...state.conversation, { role: "tool", tool_call_id, name, ok, content }]
      }
    }
    case "verification.completed":
      return { ...state, checks: [...state.checks, event.data] }
    case "verification.settled":
      return { ...state, verification: event.data.outcomes, verification_tree: event.data.tree }
    case "run.noted":
      return { ...state, notes: [...state.notes, event.data.note] }
    case "run.interrupted":
      return { ...state, interrupted: true }
    case "run.ended": {
      const { changed_files, error, status, terminal_reason, tree } = event.data
      return { ...state, ended: { changed_files, error, status, terminal_reason, tree }, interrupted: false }
    }
    case "prompt.built":
    case "model.retry":
    case "model.failed":
    case "tool.requested":
    case "tool.batch_started":
    case "tool.batch_completed":
    case "approval.requested":
    case "approval.resolved":
    case "verification.started":
    case "loop.read_only_stall_nudge":
    case "loop.wind_down_started":
    case "loop.wind_down_completed":
    case "loop.wind_down_failed":
      return state
  }
}
