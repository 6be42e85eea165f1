/**
 * Many events made into a state without copying what grows: the reducer's lists are only ever added to, so they are kept
 * aside, empty in the state that it sees, and put back in the end.
 */
import type { RunEvent } from "../../domain/Event.ts"
import { initial, reduce, type RunState } from "../../domain/Run.ts"

type Growing = "conversation" | "notes" | "checks"

export interface Collector {
  readonly add: (event: RunEvent) => void
  /** The state that `reduce` makes of all events, one after the other. */
  readonly state: () => RunState
}

export const makeCollector = (): Collector => {
  let state = initial
  const conversation: Array<RunState["conversation"][number]> = []
  const notes: Array<RunState["notes"][number]> = []
  const checks: Array<RunState["checks"][number]> = []
  const empty: Pick<RunState, Growing> = { conversation: [], notes: [], checks: [] }
  return {
    add: (event) => {
      state = reduce(state, event)
      if (state.conversation.length + state.notes.length + state.checks.length === 0) return
      conversation.push(...state.conversation)
      notes.push(...state.notes)
      checks.push(...state.checks)
      state = { ...state, ...empty }
    },
    state: () => ({ ...state, conversation: [...conversation], notes: [...notes], checks: [...checks] })
  }
}
