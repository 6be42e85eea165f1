/**
 * Everything that a run needs, out of a recording: no network, no process, no file, no clock but the recording's.
 */
import { Clock, Context, Effect, Fiber, Layer, Stream } from "effect"
import { noLine } from "../../domain/JournalCodec.ts"
import { ModelError } from "../../domain/ModelError.ts"
import { isKnown, type RunEvent } from "../../domain/Event.ts"
import type { RecordedEntry, Recording, Segment } from "../../domain/Recording.ts"
import type { RunState } from "../../domain/Run.ts"
import { Approval } from "../../services/Approval.ts"
import { Checks } from "../../services/Checks.ts"
import { Git } from "../../services/Git.ts"
import type { Model } from "../../services/Model.ts"
import { type Journal, RunStore, StoreError } from "../../services/RunStore.ts"
import { Sandbox } from "../../services/Sandbox.ts"
import { Tape } from "../../services/Tape.ts"
import { Tools } from "../../services/Tools.ts"
import { Wire } from "../../services/Wire.ts"
import { Workspaces } from "../../services/Workspace.ts"
import { replayedModel } from "../model/Replayed.ts"
import { makeReelClock } from "./Clock.ts"
import { makeReel, type Reel } from "./Reel.ts"
import * as World from "./World.ts"

export interface ReplayOptions {
  /** Hears of every event that was played again, with the state that it made. */
  readonly onEvent?: (entry: RecordedEntry, state: RunState) => Effect.Effect<void>
  /** Another outcome in place of a recorded one: null keeps it. What follows from it differs from the recording. */
  readonly substitute?: (entry: RecordedEntry) => RunEvent | null
}

/** Turns of the event loop in which nothing happens before the recording's time moves on. */
const quietTurns = 3
/** And before a run that nobody will wake is said to be stuck. */
const stuckTurns = 200

const eventLoopTurn = Effect.callback<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

const withSubstitutes = (
  { entries }: Recording,
  substitute: NonNullable<ReplayOptions["substitute"]>
): ReadonlyArray<RecordedEntry> =>
  entries.map((entry) => {
    const event = substitute(entry)
    return event === null ? entry : { ...entry, event }
  })

/** A model that answers as it did: through its adapter where bytes were kept, by its turns where none were. */
const played = (reel: Reel, real: Model): Model => ({
  ...real,
  stream: (request) =>
    Stream.unwrap(
      Effect.suspend(() => {
        const next = reel.next()
        switch (next?.event_type) {
          case "model.exchanged":
            return Effect.succeed(real.stream(request))
          case "model.completed":
            return Effect.succeed(Stream.make({ type: "completed", turn: next.data.turn } as const))
          case "model.retry":
          case "model.fallback":
          case "model.failed":
            return Effect.succeed(Stream.fail(new ModelError(next.data.error)))
          default:
            return World.outcome<never>(reel, () => null)
        }
      })
    )
})

const journalOf = (reel: Reel, run_id: Journal["run_id"]): Journal => ({
  run_id,
  directory: "/replay",
  append: (event) =>
    Effect.map(reel.offer(event), ({ created_at, sequence }) => ({
      version: 1,
      sequence,
      previous: noLine,
      created_at,
      event
    })),
  barrier: Effect.void,
  rendezvous: reel.othersDone,
  state: Effect.sync(reel.state),
  head: Effect.sync(() => ({ sequence: reel.position() - 1, hash: noLine })),
  checkpoint: Effect.void,
  writeFile: () => Effect.void
})

/** The services of a run and the tape that plays it. */
export const layerReplay = (
  recording: Recording,
  options: ReplayOptions = {}
): Layer.Layer<Tape | RunStore | Workspaces | Checks | Tools | Approval | Git | Sandbox, never, Tools> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const realTools = yield* Tools
      const entries =
        options.substitute === undefined ? recording.entries : withSubstitutes(recording, options.substitute)
      const { request } = recording
      const reel = makeReel(entries, options.onEvent ?? (() => Effect.void))
      const { advance, clock } = makeReelClock(reel)
      /** An answer that is being read takes turns of the event loop that nobody counts. */
      let reading: number | null = null

      const wire = {
        keep: () => Effect.void,
        recorded: Effect.suspend(() => {
          const next = reel.next()
          if (next?.event_type !== "model.exchanged") return Effect.never
          if (next.data.exchange.fault?.kind !== "silent") reading = reel.position()
          return Effect.succeed(next.data.exchange)
        })
      }

      /** Completes when the recorded process has said its last, or the play has left the recording. */
      const watch = Effect.gen(function* () {
        let at = reel.position()
        let quiet = 0
        while (reel.difference() === null) {
          const ends = reel.spent() && !isEnded(reel)
          if (ends && quiet >= quietTurns) return
          yield* eventLoopTurn
          const moved = reel.position() !== at
          at = reel.position()
          // The exchange itself is played before the turn that it became, if its process came to that.
          const busy = reading !== null && at <= reading + 1 && !reel.spent()
          if (!busy) reading = null
          quiet = moved || busy ? 0 : quiet + 1
          if (quiet < quietTurns) continue
          const upcoming = reel.upcoming()
          const until = upcoming === null ? reel.time_ms() : Date.parse(upcoming.created_at)
          if (advance(until)) quiet = 0
          else if (quiet >= stuckTurns) return reel.spent() ? undefined : reel.differ(null)
        }
      })

      const play: Tape["Service"]["play"] = (segment, program) =>
        Effect.gen(function* () {
          reel.begin(segment)
          reading = null
          const fiber = yield* program.pipe(
            Effect.exit,
            Effect.provideService(Clock.Clock, clock),
            Effect.provideService(Wire, wire),
            Effect.forkChild({ startImmediately: true })
          )
          const exit = yield* Effect.raceFirst(Fiber.join(fiber), Effect.as(watch, null))
          if (exit === null) {
            reel.close()
            yield* Fiber.interrupt(fiber)
          }
          if (reel.upcoming() !== null && reel.difference() === null) reel.differ(null)
          return exit
        })

      const models: Tape["Service"]["models"] = Effect.fnUntraced(function* (segment: Segment) {
        const first = entries[segment.from]?.event
        const recorded =
          first !== undefined &&
          isKnown(first) &&
          (first.event_type === "session.resumed" || first.event_type === "session.continued")
            ? first.data.models
            : request.models
        const make = Effect.fnUntraced(function* (spec: (typeof recorded)[number]) {
          // What was recorded has been a model: a recording that says otherwise was made by nobody.
          const real = yield* replayedModel({ ...spec, allow_custom_endpoint: true }).pipe(Effect.orDie)
          const model = played(reel, real)
          yield* model.warm
          return model
        })
        const [head, ...rest] = recorded
        return [yield* make(head), ...(yield* Effect.forEach(rest, make))] as const
      })

      const store = RunStore.of({
        create: ({ created, run_id }) =>
          Effect.gen(function* () {
            const first = entries[0]?.event
            const known =
              first !== undefined && isKnown(first) && first.event_type === "run.created" ? first.data : null
            const { sandbox, ...rest } = created
            const data = {
              ...{ run_id, ...rest, store_version: known?.store_version ?? 0 },
              // Of a recording from before it was written down, nothing is made up.
              ...(sandbox === undefined || (known !== null && known.sandbox === undefined) ? {} : { sandbox })
            }
            const journal = journalOf(reel, run_id)
            yield* journal.append({ event_type: "run.created", data })
            return journal
          }),
        open: () => absent,
        fork: () => absent,
        entries: () => Stream.fromEffect(absent),
        unfinished: Effect.succeed(null),
        find: () => absent,
        show: () => absent,
        list: () => Effect.succeed([])
      })

      const places = new Map<string, { readonly wrote: Array<string> }>()
      return Context.make(
        Tape,
        Tape.of({
          recording,
          repository: World.repository(reel),
          takeOver: Effect.sync(() => {
            const next = reel.next()
            const taken =
              next?.event_type === "session.resumed" || next?.event_type === "session.continued"
                ? next.data
                : null
            return {
              journal: journalOf(reel, reel.state().run_id ?? recording.run_id),
              request,
              active_ms: taken?.active_ms ?? 0,
              complete: reel.state().ended !== null,
              discard: Effect.void,
              lost: taken?.lost_events ?? 0
            }
          }),
          models,
          play,
          difference: Effect.sync(reel.difference)
        })
      ).pipe(
        Context.add(RunStore, store),
        Context.add(Workspaces, World.workspaces(reel, places)),
        Context.add(Checks, World.checks(reel, places)),
        Context.add(Tools, World.tools(reel, realTools)),
        Context.add(Approval, World.approval(reel)),
        Context.add(Git, World.git),
        Context.add(Sandbox, World.sandbox(request.sandbox))
      )
    })
  )

/** Whether the program has its own way to the end from here: it only writes the bundle. */
const isEnded = (reel: Reel): boolean => reel.state().ended !== null

const absent = Effect.fail(
  new StoreError({ reason: "not_found", path: "replay", message: "a replay has no other runs" })
)
