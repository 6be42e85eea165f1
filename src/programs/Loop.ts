/**
 * The loop of moves. What comes next is asked of the folded state alone (`Next.ts`); this is how each move is made.
 */
import { type Duration, Effect } from "effect"
import type { Ending } from "../domain/Ending.ts"
import { ending, providerEnding } from "../domain/Ending.ts"
import { next, stallSteps, type Move } from "../domain/Next.ts"
import type { RunState } from "../domain/Run.ts"
import { nudges, type Nudge } from "../domain/SystemPrompt.ts"
import type { Task } from "../domain/Task.ts"
import { judge, reportOf } from "../domain/Verdict.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import type { OpenWorkspace, WorkspaceError } from "../services/Workspace.ts"
import { begin } from "./Begin.ts"
import { collect } from "./Collect.ts"
import type { Stopwatch } from "./Stopwatch.ts"
import { answerCalls, type Calling } from "./ToolCalls.ts"
import { ask, type Asking } from "./Turn.ts"
import { verify } from "./Verify.ts"

/** The last words of a run that used up its steps take at most this long. */
const windDownTimeout = "60 seconds"
/** A check that the run's time cuts off takes at most this long to end, and to say so. */
const checkGrace = "5 seconds"

export interface Looping extends Asking, Calling {
  readonly task: Task
  readonly stopwatch: Stopwatch
  readonly workspace: Effect.Effect<OpenWorkspace, WorkspaceError | StoreError>
}

/** What the harness adds for the model to read. */
const inject = (journal: Journal, nudge: Nudge) =>
  journal.append({ event_type: "conversation.appended", data: { item: { role: "context", ...nudge } } })

const wallTime = (task: Task): Ending =>
  ending(
    "wall_time_exceeded",
    `${task.limits.wall_time_seconds} seconds of active time are used up (--wall-time)`
  )

/**
 * Interrupts an effect when the run's active time and a grace are used up, however often the clock was paused
 * meanwhile. One that would only begin then does not.
 */
const withinWallTime = <A, E, R>(
  looping: Looping,
  effect: Effect.Effect<A, E, R>,
  grace: Duration.Input = 0
): Effect.Effect<A | Ending, E, R> => {
  const expired = Effect.map(looping.stopwatch.remaining_ms, (remaining) => remaining <= 0)
  const expire: Effect.Effect<Ending> = Effect.gen(function* () {
    if (yield* expired) return yield* Effect.as(Effect.sleep(grace), wallTime(looping.task))
    yield* Effect.sleep(yield* looping.stopwatch.remaining_ms)
    return yield* expire
  })
  return Effect.flatMap(expired, (late) =>
    late ? Effect.succeed(wallTime(looping.task)) : Effect.raceFirst(effect, expire)
  )
}

/** One last turn without tools. It cannot rescue the run. */
const windDown = Effect.fnUntraced(function* (looping: Looping, step: number) {
  const { journal } = looping
  const { wind_down } = yield* journal.state
  if (wind_down === null) yield* journal.append({ event_type: "loop.wind_down_started", data: { step } })
  if (wind_down !== "told") yield* inject(journal, nudges.windDown)
  yield* ask(looping, step, "wind_down").pipe(
    Effect.timeoutOption(windDownTimeout),
    Effect.flatMap((turn) =>
      journal.append(
        turn._tag === "Some"
          ? { event_type: "loop.wind_down_completed", data: { content: turn.value.text } }
          : { event_type: "loop.wind_down_failed", data: { message: `no answer within ${windDownTimeout}` } }
      )
    ),
    Effect.catchTag("ModelError", (error) =>
      journal.append({ event_type: "loop.wind_down_failed", data: { message: error.message } })
    )
  )
})

/** Runs what is left of a final verification. */
const runChecks = Effect.fnUntraced(function* (
  looping: Looping,
  move: Extract<Move, { readonly _tag: "Verify" }>
) {
  const { journal, stopwatch, task } = looping
  const workspace = yield* looping.workspace
  const outcomes = yield* verify({ journal, task, workspace, stopwatch }, move)
  const late = judge(outcomes)._tag !== "Verified" && (yield* stopwatch.remaining_ms) <= 0
  return late ? wallTime(task) : undefined
})

const report = (state: RunState, failing: Extract<Move, { readonly _tag: "Report" }>["failing"]): Nudge => {
  const unrecorded = state.patch?.unrecorded ?? []
  const aside =
    unrecorded.length === 0
      ? ""
      : `\n\nNot part of your change, so the checks did not see it:\n${unrecorded.join("\n")}`
  return nudges.checksFailed(failing.map(reportOf).join("\n\n") + aside)
}

/** Makes a move. It changes the state, or ends the run. */
const perform = Effect.fnUntraced(function* (looping: Looping, move: Exclude<Move, { _tag: "End" }>) {
  const { journal, task } = looping
  switch (move._tag) {
    case "Begin":
      return yield* begin(journal, task, looping.tools)
    case "Ask":
      return yield* withinWallTime(looping, ask(looping, move.step, "primary")).pipe(
        Effect.map((turn) => ("reason" in turn ? turn : undefined)),
        Effect.catchTag("ModelError", (error) => Effect.succeed(providerEnding(error)))
      )
    case "Answer":
      return yield* withinWallTime(looping, answerCalls(looping, move.calls), checkGrace)
    case "Nudge":
      return yield* Effect.asVoid(inject(journal, move.nudge))
    case "Stalled":
      yield* journal.append({
        event_type: "loop.read_only_stall_nudge",
        data: { consecutive_read_only_steps: stallSteps, steps_remaining: move.remaining }
      })
      return yield* Effect.asVoid(inject(journal, nudges.readOnlyStall(stallSteps, move.remaining)))
    case "Scan":
      return yield* withinWallTime(
        looping,
        Effect.gen(function* () {
          const workspace = yield* looping.workspace
          yield* journal.append({
            event_type: "workspace.scanned",
            data: { tree: yield* workspace.scan }
          })
        })
      )
    case "Collect":
      return yield* withinWallTime(
        looping,
        Effect.flatMap(looping.workspace, (workspace) =>
          Effect.asVoid(collect(journal, workspace, move.tree))
        )
      )
    case "Verify":
      return yield* withinWallTime(looping, runChecks(looping, move), checkGrace)
    case "Report":
      return yield* Effect.asVoid(inject(journal, report(yield* journal.state, move.failing)))
    case "WindDown":
      return yield* withinWallTime(looping, windDown(looping, move.step))
  }
})

/** Makes moves until one of them ends the run. */
export const loop = Effect.fn("Loop.loop")(function* (looping: Looping) {
  const { journal, task } = looping
  while (true) {
    const move = next(yield* journal.state, task)
    if (move._tag === "End") {
      const { notes } = yield* journal.state
      if (move.note !== null && !notes.includes(move.note))
        yield* journal.append({ event_type: "run.noted", data: { note: move.note } })
      return move.ending
    }
    const ended = yield* perform(looping, move)
    if (ended !== undefined) return ended
  }
})
