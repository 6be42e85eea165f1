/**
 * The recording and how far it has been played. Fibers that tell their parts of a run's story side by side wait for their
 * turns here, so that a run is played in the order in which it happened.
 */
import { Effect } from "effect"
import { isKnown, type RunEvent, type RunEventType, type UnknownEvent } from "../../domain/Event.ts"
import { sameEvent, type Difference, type RecordedEntry, type Segment } from "../../domain/Recording.ts"
import { initial, reduce, type RunState } from "../../domain/Run.ts"
import { StoreError } from "../../services/RunStore.ts"

/** Parts of a run that go on side by side. Events of one part have an order that only the part decides. */
type Lane = "main" | "opening" | "preflight"

const laneOf = ({ event_type, data }: RunEvent): Lane => {
  switch (event_type) {
    case "workspace.prepared":
      return "opening"
    case "verification.started":
    case "verification.completed":
      return data.purpose === "preflight" ? "preflight" : "main"
    default:
      return "main"
  }
}

/** An event of the recording by its type, with its payload. */
export type EventOf<Type extends RunEventType> = Extract<RunEvent, { readonly event_type: Type }>

const isOf =
  <Type extends RunEventType>(type: Type) =>
  (event: RunEvent | UnknownEvent): event is EventOf<Type> =>
    event.event_type === type

const over = new StoreError({
  reason: "busy",
  path: "replay",
  message: "the recorded process ended here"
})

/** What the end of a run says, in this order and each once at most, notes aside. */
const lastWords: ReadonlyArray<string> = ["workspace.scanned", "patch.collected", "run.noted", "run.ended"]

/**
 * Where the last words of a process begin, and where they do when nobody but its main part is listened to: there others
 * may still have something to say.
 */
const lastWordsOf = (entries: ReadonlyArray<RecordedEntry>, { from, to }: Segment) => {
  let next = lastWords.length
  let all: number | null = null
  for (let i = to - 1; i >= from; i--) {
    const event = entries[i]?.event
    if (event === undefined || !isKnown(event) || event.event_type === "run.interrupted") continue
    if (laneOf(event) !== "main") {
      all ??= i + 1
      continue
    }
    const word = lastWords.indexOf(event.event_type)
    if (word < 0 || word > next || (word === next && event.event_type !== "run.noted"))
      return { all: all ?? i + 1, main: i + 1 }
    next = word
  }
  return { all: all ?? from, main: from }
}

/** Whether it is one of the last words of a run, or could be. */
export const isLastWord = ({ event_type }: RunEvent): boolean => lastWords.includes(event_type)

export interface Reel {
  readonly state: () => RunState
  readonly time_ms: () => number
  /** Moves the time on, never back. */
  readonly setTime: (ms: number) => void
  readonly difference: () => Difference | null
  readonly differ: (played: RunEvent | null) => void
  /** Begins a process. What stands between it and the one before is folded. */
  readonly begin: (segment: Segment) => void
  /** The recorded process is over: nothing is taken any more but its own last word. */
  readonly close: () => void
  /** Changes with every event that is played. */
  readonly position: () => number
  /** Whether the recorded process has nothing more to say than that it was interrupted. */
  readonly spent: () => boolean
  /** The next recorded event of all, when it was said; null behind the process's last. */
  readonly upcoming: () => RecordedEntry | null
  /** The next recorded event of the run's main part; null when its process says no more. */
  readonly next: () => RunEvent | null
  /** The first recorded event of a type that is still to come in this process and fits. */
  readonly find: <Type extends RunEventType>(
    type: Type,
    fits?: (event: EventOf<Type>) => boolean
  ) => EventOf<Type> | null
  /** When an event that is still to come was said. */
  readonly timeOf: (event: RunEvent) => number
  /** Whether the main part of the recorded process has nothing more to say than how it ended. */
  readonly concluding: () => boolean
  /** Completes when the recorded process has nothing more to say than how it ended. */
  readonly ending: Effect.Effect<void>
  /** Whether something has failed that ended the run. */
  readonly broken: () => boolean
  readonly breakOff: () => void
  /** Completes when the next recorded event is one of the run's main part, or none. */
  readonly othersDone: Effect.Effect<void>
  /** Plays an event when its turn comes. One that is not the recorded one ends the play. */
  readonly offer: (event: RunEvent) => Effect.Effect<RecordedEntry, StoreError>
}

export const makeReel = (
  entries: ReadonlyArray<RecordedEntry>,
  played: (entry: RecordedEntry, state: RunState) => Effect.Effect<void>
): Reel => {
  let index = 0
  let segment: Segment = { from: 0, to: 0, kind: "created" }
  let state = initial
  let time = 0
  let closed = false
  let broken = false
  let last = { all: 0, main: 0 }
  let difference: Difference | null = null
  let waiting: Array<() => void> = []

  /** Whoever has spoken goes on first, as far as it gets at its own time: what others say moves the time on. */
  const wake = () => {
    const all = waiting
    waiting = []
    if (all.length > 0)
      setImmediate(() => {
        for (const go of all) go()
      })
  }
  const turn = Effect.callback<void>((resume) => {
    const go = () => resume(Effect.void)
    waiting.push(go)
    return Effect.sync(() => {
      waiting = waiting.filter((each) => each !== go)
    })
  })
  const setTime = (ms: number) => {
    time = Math.max(time, ms)
  }
  const fold = (entry: RecordedEntry) => {
    index += 1
    setTime(Date.parse(entry.created_at))
    if (isKnown(entry.event)) state = reduce(state, entry.event)
  }
  /** Events that this version does not know, or that no program says. */
  const skip = () => {
    for (
      let at = entries[index];
      at !== undefined && index < segment.to && !isKnown(at.event);
      at = entries[index]
    )
      fold(at)
  }
  const upcoming = () => (index < segment.to ? (entries[index] ?? null) : null)
  const differ = (event: RunEvent | null) => {
    const at = entries[index]
    difference ??= {
      sequence: at?.sequence ?? (entries.at(-1)?.sequence ?? -1) + 1,
      recorded: at?.event ?? null,
      played: event
    }
    wake()
  }
  const places = Map.groupBy(entries.keys(), (at) => entries[at]?.event.event_type ?? "")
  /** How many places of a type have been passed: a long recording is not read again for every question. */
  const passed = new Map<string, number>()
  const find: Reel["find"] = (type, fits = () => true) => {
    const at = places.get(type) ?? []
    let from = passed.get(type) ?? 0
    while (from < at.length && (at[from] ?? 0) < index) from++
    passed.set(type, from)
    for (let i = from; i < at.length && (at[i] ?? 0) < segment.to; i++) {
      const event = entries[at[i] ?? 0]?.event
      if (event !== undefined && isOf(type)(event) && fits(event)) return event
    }
    return null
  }
  const next = (): RunEvent | null => {
    for (let i = index; i < segment.to; i++) {
      const event = entries[i]?.event
      if (event !== undefined && isKnown(event) && laneOf(event) === "main") return event
    }
    return null
  }

  const offer: Reel["offer"] = (event) =>
    Effect.gen(function* () {
      while (true) {
        const at = upcoming()
        const last = event.event_type === "run.interrupted"
        if (closed && !last) return yield* over
        // What a process was about to say when it was interrupted is not in its recording.
        if (at === null || difference !== null || (at.event.event_type === "run.interrupted" && !last)) {
          if (closed) return yield* over
          yield* turn
          continue
        }
        if (isKnown(at.event) && sameEvent(at.event, event)) {
          fold(at)
          skip()
          yield* played(at, state)
          wake()
          return at
        }
        if (closed) return yield* over
        if (isKnown(at.event) && laneOf(at.event) === laneOf(event)) differ(event)
        else yield* turn
      }
    })

  return {
    state: () => state,
    time_ms: () => time,
    setTime,
    difference: () => difference,
    differ,
    begin: (process) => {
      for (let at = entries[index]; at !== undefined && index < process.from; at = entries[index]) fold(at)
      segment = process
      last = lastWordsOf(entries, segment)
      closed = false
      broken = false
      skip()
      const first = entries[index]
      if (first !== undefined) setTime(Date.parse(first.created_at))
    },
    close: () => {
      closed = true
      wake()
    },
    position: () => index,
    spent: () => {
      const at = upcoming()
      return at === null || at.event.event_type === "run.interrupted"
    },
    upcoming,
    next,
    find,
    timeOf: (event) => {
      for (let i = index; i < segment.to; i++) {
        const at = entries[i]
        if (at?.event === event) return Date.parse(at.created_at)
      }
      return time
    },
    concluding: () => index >= last.main,
    ending: Effect.gen(function* () {
      while (index < last.all) yield* turn
    }),
    broken: () => broken,
    breakOff: () => {
      broken = true
    },
    othersDone: Effect.gen(function* () {
      while (true) {
        const at = upcoming()
        const others = at !== null && isKnown(at.event) && laneOf(at.event) !== "main"
        if (!others || closed || difference !== null) return
        yield* turn
      }
    }),
    offer
  }
}
