/**
 * A run as it was recorded: its request and its journal, every long text in place. Also a file that can be carried to
 * another machine and played there.
 */
import { Schema } from "effect"
import type { RunEvent, UnknownEvent } from "./Event.ts"
import { isKnownType, RunEvent as RunEventSchema } from "./Event.ts"
import type { RunId } from "./Ids.ts"
import { RunId as RunIdSchema } from "./Ids.ts"
import { RunRequest } from "./Request.ts"

export interface RecordedEntry {
  readonly sequence: number
  /** ISO 8601, UTC. */
  readonly created_at: string
  readonly event: RunEvent | UnknownEvent
}

export interface Recording {
  readonly run_id: RunId
  readonly request: RunRequest
  readonly entries: ReadonlyArray<RecordedEntry>
}

/** The portable form. */
export const RecordingFile = Schema.Struct({
  format: Schema.Literal("looplane-recording"),
  version: Schema.Literal(1),
  run_id: RunIdSchema,
  request: RunRequest,
  entries: Schema.Array(
    Schema.Struct({
      sequence: Schema.Int,
      created_at: Schema.String,
      event: Schema.Union([
        RunEventSchema,
        Schema.Struct({
          event_type: Schema.String.check(
            Schema.makeFilter(
              (type: string) => !isKnownType(type) || "an event of this version that does not fit it"
            )
          ),
          data: Schema.Unknown
        })
      ])
    })
  )
})

/** What one process of a run recorded. */
export interface Segment {
  /** Index into the entries: the first of this process, and behind its last. */
  readonly from: number
  readonly to: number
  /** How the process came to the run. */
  readonly kind: "created" | "resumed" | "continued"
}

const startsProcess = (type: string): Segment["kind"] | null =>
  type === "session.resumed" ? "resumed" : type === "session.continued" ? "continued" : null

/** The processes of a run in order. What a fork says of itself belongs to none: it stands between two of them. */
export const segmentsOf = (entries: ReadonlyArray<RecordedEntry>): ReadonlyArray<Segment> => {
  const segments: Array<Segment> = []
  let from = 0
  let kind: Segment["kind"] = "created"
  entries.forEach(({ event }, index) => {
    const next = startsProcess(event.event_type)
    if (event.event_type !== "run.forked" && next === null) return
    if (index > from) segments.push({ from, to: index, kind })
    from = event.event_type === "run.forked" ? index + 1 : index
    kind = next ?? "resumed"
  })
  if (entries.length > from) segments.push({ from, to: entries.length, kind })
  return segments
}

/** Where a run that is played again leaves its recording. */
export interface Difference {
  readonly sequence: number
  /** Null behind the last recorded event. */
  readonly recorded: RunEvent | UnknownEvent | null
  /** Null when the played run had come to its end, or waited for something that never comes. */
  readonly played: RunEvent | null
}

/** Keys whose values are when something was and how long it took: a repetition takes them as recorded. */
const envelope: ReadonlySet<string> = new Set(["duration_seconds", "active_ms", "answered_at_ms"])

/** Whether a played event is the recorded one, beside its envelope values. */
export const sameEvent = (recorded: RunEvent | UnknownEvent, played: RunEvent): boolean =>
  same(recorded, played)

const same = (a: unknown, b: unknown): boolean => {
  if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const left = Object.entries(a)
  const right = new Map(Object.entries(b))
  return (
    left.length === right.size &&
    left.every(([key, value]) => right.has(key) && (envelope.has(key) || same(value, right.get(key))))
  )
}
