/**
 * A run's story as a list, for people and for tools: one moment an event, in order. A projection of the journal alone, so
 * equal journals tell equal stories.
 */
import { Result } from "effect"
import { isKnown, type RunEvent } from "./Event.ts"
import { type JsonRecord, record, text } from "./Json.ts"
import type { RecordedEntry } from "./Recording.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import { takeHead } from "./Text.ts"

/** Of one text of a timeline, in UTF-8 bytes. */
const maxText = 16_000

/** What a timeline keeps of an event. */
export interface Moment {
  readonly sequence: number
  /** ISO 8601, UTC. */
  readonly created_at: string
  readonly event_type: string
  /** Whether this version knows the type. */
  readonly known: boolean
  /** The run that the event names as its own. */
  readonly run_id: string | null
  /** Whether a turn of the user's begins or ends here. */
  readonly turn: "starts" | "ends" | null
  /** What was said: the words of a user, a model, a tool, a check. */
  readonly text: string | null
  /** What tells the event apart from others of its type. */
  readonly detail: string | null
}

export interface TimedMoment extends Moment {
  /** The user's turn that it belongs to, `turn-N` from 1; null between turns. */
  readonly turn_id: string | null
}

export interface Timeline {
  /** By sequence. */
  readonly moments: ReadonlyArray<TimedMoment>
  readonly run_id: string | null
  /** The turn that has not ended. */
  readonly active_turn_id: string | null
  readonly completed_turn_ids: ReadonlyArray<string>
  /** The event that ended the last turn; null while one is active. */
  readonly terminal_event_type: string | null
  /** Events of types that this version does not know. */
  readonly unknown: number
}

/** Fields that say what an event is about, the most telling one first. */
const telling = [
  "summary",
  "terminal_reason",
  "reason",
  "error",
  "tool",
  "tool_name",
  "name",
  "model",
  "runtime",
  "provider",
  "base_sha"
] as const

const filled = (value: string): string | null => (value.trim() === "" ? null : takeHead(value, maxText))

const firstOf = (data: JsonRecord): string | null => {
  for (const key of telling) {
    const found = filled(text(data[key]))
    if (found !== null) return found
  }
  return null
}

const knownDetail = (event: RunEvent): string | null => {
  switch (event.event_type) {
    case "repository.read":
      return `${event.data.files} files`
    case "conversation.appended":
      return event.data.item.role === "context" ? event.data.item.source : event.data.item.role
    case "tool.requested":
      return event.data.call.name
    case "tool.completed":
      return event.data.ok ? event.data.name : `${event.data.name} (refused or failed)`
    case "model.retry":
    case "model.failed":
      return filled(event.data.error.message)
    case "model.fallback":
      return `${event.data.to_provider}/${event.data.to_model}`
    case "verification.completed":
      return `${event.data.outcome.name}: ${event.data.outcome.reason ?? event.data.outcome.verdict}`
    case "patch.collected":
      return filled(event.data.files.map((file) => file.path).join(", "))
    case "run.forked":
      return event.data.source_run_id
    default:
      return firstOf(record(event.data))
  }
}

const knownText = (event: RunEvent): string => {
  switch (event.event_type) {
    case "conversation.appended":
      return event.data.item.content
    case "session.continued":
      return event.data.instruction
    case "model.completed":
      return event.data.turn.text
    case "tool.completed":
    case "loop.wind_down_completed":
      return event.data.content
    case "verification.completed":
      return event.data.outcome.output
    case "run.noted":
      return event.data.note
    case "loop.wind_down_failed":
      return event.data.message
    case "approval.requested":
      return event.data.preview
    case "run.ended":
      return event.data.error ?? ""
    default:
      return ""
  }
}

const unknownText = (data: JsonRecord): string =>
  ["text", "content", "message"].map((key) => text(data[key])).find((value) => value !== "") ?? ""

const turnOf = (type: string): Moment["turn"] => {
  if (type === "run.created" || type === "session.continued") return "starts"
  return type === "run.ended" ? "ends" : null
}

/** The moment of an event. Total, also for an event of a type that this version does not know. */
export const momentOf = ({ created_at, event, sequence }: RecordedEntry): Moment => {
  const data = record(event.data)
  const known = isKnown(event)
  return {
    sequence,
    created_at,
    event_type: event.event_type,
    known,
    run_id:
      event.event_type === "run.created" || event.event_type === "run.forked"
        ? filled(text(data["run_id"]))
        : null,
    turn: turnOf(event.event_type),
    text: filled(known ? knownText(event) : unknownText(data)),
    detail: known ? knownDetail(event) : firstOf(data)
  }
}

const faultOf = (moments: ReadonlyArray<Moment>): string | null => {
  for (const [index, { event_type, sequence }] of moments.entries()) {
    if (!Number.isSafeInteger(sequence) || sequence < 0)
      return `an event has the sequence ${sequence}, which is no whole number from 0`
    if (event_type.trim() === "") return `event ${sequence} has no type`
    if (moments[index + 1]?.sequence === sequence) return `there are two events with the sequence ${sequence}`
  }
  return null
}

/** The story of moments that are given in any order. Gaps are allowed; one sequence twice is refused. */
export const timelineOf = (given: ReadonlyArray<Moment>): Result.Result<Timeline, Refusal> => {
  const sorted = given.toSorted((left, right) => left.sequence - right.sequence)
  const fault = faultOf(sorted)
  if (fault !== null) return Result.fail(refuse(fault))
  const completed_turn_ids: Array<string> = []
  let turns = 0
  let active_turn_id: string | null = null
  let terminal_event_type: string | null = null
  const moments = sorted.map((moment): TimedMoment => {
    if (moment.turn === "starts") {
      turns += 1
      active_turn_id = `turn-${turns}`
      terminal_event_type = null
    }
    const timed = { ...moment, turn_id: active_turn_id }
    if (moment.turn === "ends") {
      terminal_event_type = moment.event_type
      if (active_turn_id !== null) completed_turn_ids.push(active_turn_id)
      active_turn_id = null
    }
    return timed
  })
  return Result.succeed({
    moments,
    // A fork names itself after the run that it begins with.
    run_id: sorted.findLast((moment) => moment.run_id !== null)?.run_id ?? null,
    active_turn_id,
    completed_turn_ids,
    terminal_event_type,
    unknown: sorted.filter((moment) => !moment.known).length
  })
}

const withoutNulls = (fields: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

/** The story as one JSON value, without keys that have nothing to say and without the time of day. */
export const replayState = (timeline: Timeline): JsonRecord =>
  withoutNulls({
    schema_version: 1,
    first_sequence: timeline.moments[0]?.sequence ?? null,
    last_sequence: timeline.moments.at(-1)?.sequence ?? null,
    event_count: timeline.moments.length,
    unknown_event_count: timeline.unknown,
    run_id: timeline.run_id,
    active_turn_id: timeline.active_turn_id,
    completed_turn_ids: timeline.completed_turn_ids,
    terminal_event_type: timeline.terminal_event_type,
    timeline: timeline.moments.map(({ detail, event_type, sequence, text, turn_id }) =>
      withoutNulls({ sequence, event_type, turn_id, text, detail })
    )
  })
