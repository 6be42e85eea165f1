/**
 * A run as it was recorded: its request and its journal, every long text in place.
 */
import { isKnown, type RunEvent, type UnknownEvent } from "./Event.ts"
import type { RunId } from "./Ids.ts"
import { isRecord } from "./Json.ts"
import type { RunRequest } from "./Request.ts"
import type { Dependencies } from "./Task.ts"

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

/** What stands in a portable recording for the repository, and for a directory of dependencies that was named. */
export const portablePaths = { repository: "/repository", dependencies: "/dependencies" } as const

const portableDependencies = (given: Dependencies): Dependencies =>
  given.mode === "path" ? { mode: "path", path: portablePaths.dependencies } : given

const portableEntry = (entry: RecordedEntry): RecordedEntry => {
  const { event } = entry
  if (!isKnown(event) || event.event_type !== "workspace.prepared") return entry
  const dependencies = {
    ...event.data.dependencies,
    requested: portableDependencies(event.data.dependencies.requested)
  }
  return { ...entry, event: { ...event, data: { ...event.data, dependencies } } }
}

/**
 * The recording without the two places of its machine that a run always knows, and that no word of its prompt depends
 * on. What was said, asked and answered stays byte for byte: a digest of a request or the cut of an answer would not
 * fit any other text.
 */
export const portable = ({ entries, request, run_id }: Recording): Recording => ({
  run_id,
  request: {
    ...request,
    task: {
      ...request.task,
      repository: portablePaths.repository,
      dependencies: portableDependencies(request.task.dependencies)
    }
  },
  entries: entries.map(portableEntry)
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

/** The first version of the store whose journals hold everything that a run asked of its world. */
const firstPlayable = 2

/** The version of the store in which a run began, when that one's journals do not hold what a replay needs. */
export const tooOldToPlay = ({ entries }: Recording): number | null => {
  const first = entries[0]?.event
  if (first === undefined || !isKnown(first) || first.event_type !== "run.created") return null
  const { store_version } = first.data
  return store_version < firstPlayable ? store_version : null
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

/** One place where two events differ, as `data.turn.tool_calls[0].name`; undefined where one of them has nothing. */
export interface DifferingPlace {
  readonly path: string
  readonly recorded: unknown
  readonly played: unknown
}

/** Everywhere that a played event is not the recorded one, beside its envelope values. */
export const differingPlaces = (
  recorded: unknown,
  played: unknown,
  path = ""
): ReadonlyArray<DifferingPlace> => {
  if (same(recorded, played)) return []
  if (Array.isArray(recorded) && Array.isArray(played)) {
    return Array.from({ length: Math.max(recorded.length, played.length) }).flatMap((_, index) =>
      differingPlaces(recorded[index], played[index], `${path}[${index}]`)
    )
  }
  if (!isRecord(recorded) || !isRecord(played)) return [{ path, recorded, played }]
  return [...new Set([...Object.keys(recorded), ...Object.keys(played)])]
    .toSorted()
    .filter((key) => !(envelope.has(key) && Object.hasOwn(recorded, key) && Object.hasOwn(played, key)))
    .flatMap((key) => differingPlaces(recorded[key], played[key], path === "" ? key : `${path}.${key}`))
}
