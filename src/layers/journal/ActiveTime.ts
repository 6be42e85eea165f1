/**
 * How much of its time a run has used, from its journal: the last count that is written there, and the clock since.
 */
import type { StoredEntry } from "../../services/RunStore.ts"

export interface ActiveTime {
  readonly active_ms: number
  /** Null before the first count. */
  readonly last_ms: number | null
  /** Questions that wait for somebody: that time is not the run's. */
  readonly waiting: ReadonlySet<string>
  /** The process ended here, or the history of another run did. */
  readonly paused: boolean
}
export const noTime: ActiveTime = { active_ms: 0, last_ms: null, waiting: new Set(), paused: false }

const countedIn = (data: unknown): number | null =>
  typeof data === "object" && data !== null && "active_ms" in data && typeof data.active_ms === "number"
    ? data.active_ms
    : null

const waitingAfter = (waiting: ReadonlySet<string>, { event_type, data }: StoredEntry["event"]) => {
  const id = typeof data === "object" && data !== null && "request_id" in data ? String(data.request_id) : ""
  switch (event_type) {
    case "approval.requested":
      return new Set([...waiting, id])
    case "approval.resolved":
    case "approval.abandoned":
      return new Set([...waiting].filter((each) => each !== id))
    default:
      return waiting
  }
}

/** The time that is used when an entry is written. */
export const countTime = (before: ActiveTime, { created_at, event }: StoredEntry): ActiveTime => {
  const { event_type } = event
  const at = Date.parse(created_at)
  const now = Number.isNaN(at) ? before.last_ms : at
  const counts =
    event_type === "model.requested" || event_type === "session.resumed" || event_type === "session.continued"
  const counted = counts ? countedIn(event.data) : null
  const waiting = waitingAfter(before.waiting, event)
  const paused = event_type === "run.interrupted"
  if (counted !== null) return { active_ms: counted, last_ms: now, waiting, paused }
  if (before.last_ms === null || now === null) return { ...before, waiting, paused }
  const idle = before.paused || before.waiting.size > 0 || event_type === "run.forked"
  // A clock that was put back takes nothing away.
  const passed = idle ? 0 : Math.max(0, now - before.last_ms)
  return { active_ms: before.active_ms + passed, last_ms: now, waiting, paused }
}
