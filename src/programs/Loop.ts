/**
 * The loop of turns. Each turn's outcome is a value; what a turn contains, not what the provider claims, decides.
 */
import { type Duration, Effect, Ref } from "effect"
import type { ModelTurn } from "../domain/Conversation.ts"
import type { TreeId } from "../domain/Ids.ts"
import type { CheckOutcome } from "../domain/Result.ts"
import { nudges } from "../domain/SystemPrompt.ts"
import type { Task } from "../domain/Task.ts"
import { totalTokens } from "../domain/Usage.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import type { Tool } from "../services/Tools.ts"
import type { OpenWorkspace, WorkspaceError } from "../services/Workspace.ts"
import { ending, providerEnding, type Ending } from "./Ending.ts"
import type { Stopwatch } from "./Stopwatch.ts"
import { answerCalls, type Calling } from "./ToolCalls.ts"
import { ask, type Asking } from "./Turn.ts"
import { verify } from "./Verify.ts"

/** Steps that only read before the model is told to get on with it (the reference's number). */
const stallSteps = 4
/** The last words of a run that used up its steps take at most this long. */
const windDownTimeout = "60 seconds"
/** A check that the run's time cuts off takes at most this long to end, and to say so. */
const checkGrace = "5 seconds"
/** Of a failed check's output, as the model gets it back, in characters. */
const maxReport = 12_000

export interface Looping extends Asking, Omit<Calling, "tools"> {
  readonly task: Task
  readonly stopwatch: Stopwatch
  readonly toolset: ReadonlyArray<Tool>
  readonly workspace: Effect.Effect<OpenWorkspace, WorkspaceError | StoreError>
  /** Set to the tree that passed. */
  readonly verified: Ref.Ref<TreeId | null>
}

/** What the harness adds for the model to read. */
const inject = (journal: Journal, nudge: { readonly source: string; readonly content: string }) =>
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

/** Steps are used up: one last turn without tools, for a summary. It cannot rescue the run. */
const windDown = Effect.fnUntraced(function* (looping: Looping, step: number) {
  const { journal, task } = looping
  const exceeded = ending("max_steps_exceeded", `${task.limits.max_steps} steps are used up (--max-steps)`)
  const { max_total_tokens } = task.limits
  if (max_total_tokens !== null && totalTokens((yield* journal.state).usage) >= max_total_tokens)
    return exceeded
  yield* journal.append({ event_type: "loop.wind_down_started", data: { step } })
  yield* inject(journal, nudges.windDown)
  yield* ask(looping, step, "wind_down", []).pipe(
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
  return exceeded
})

const report = (outcome: CheckOutcome): string => {
  const head = `check ${outcome.name} failed (exit ${outcome.exit_code ?? "none"})${outcome.reason === null ? "" : `: ${outcome.reason}`}`
  const { output } = outcome
  return output.length <= maxReport
    ? `${head}\n${output}`
    : `${head}\n[the first ${output.length - maxReport} characters are cut]\n${output.slice(-maxReport)}`
}

/** What the last final answer was worth: the same again means that the model has nothing more to give. */
interface Failure {
  readonly tree: TreeId
  readonly failing: string
}

/** A turn without tool calls is a candidate for the end. */
const settle = Effect.fnUntraced(function* (looping: Looping, last: Failure | null) {
  const { journal, task } = looping
  const workspace = yield* looping.workspace
  const tree = yield* workspace.scan
  if (tree === workspace.prepared.tree) return ending("no_changes")
  if (task.verification.mode !== "checks") {
    return ending(
      "unverified",
      task.verification.mode === "waived" ? null : "no check was declared (--check)"
    )
  }
  const { stopwatch } = looping
  const verdict = yield* verify({ journal, task, workspace, stopwatch }, tree)
  if (verdict._tag !== "Verified" && (yield* stopwatch.remaining_ms) <= 0) return wallTime(task)
  switch (verdict._tag) {
    case "Verified":
      if (last?.tree === tree) {
        const note = `${last.failing} failed before on exactly these files: not every run of it comes out the same`
        yield* journal.append({ event_type: "run.noted", data: { note } })
      }
      yield* Ref.set(looping.verified, tree)
      return ending("verified")
    case "CouldNotVerify":
      return ending("could_not_verify", verdict.why)
    case "Failed": {
      const failing = verdict.failing.map((outcome) => outcome.name).join(", ")
      if (last !== null && last.tree === tree && last.failing === failing) {
        return ending(
          "checks_failed",
          `the model finished twice with the same files, and ${failing} failed both times`
        )
      }
      const unrecorded = yield* workspace.unrecorded
      const aside =
        unrecorded.length === 0
          ? ""
          : `\n\nNot part of your change, so the checks did not see it:\n${unrecorded.join("\n")}`
      yield* inject(journal, nudges.checksFailed(verdict.failing.map(report).join("\n\n") + aside))
      return { tree, failing } satisfies Failure
    }
  }
})

const isEnding = (value: Ending | Failure | ModelTurn): value is Ending => "reason" in value

/** Runs turns until one of them ends the run. */
export const loop = Effect.fn("Loop.loop")(function* (looping: Looping) {
  const { journal, task, toolset } = looping
  const { max_steps, max_total_tokens } = task.limits
  const calling: Calling = { ...looping, tools: toolset }
  const definitions = toolset.map((tool) => tool.definition)
  let readOnlySteps = 0
  let emptyAnswers = 0
  let failure: Failure | null = null

  for (let step = 1; step <= max_steps; step++) {
    const turn = yield* withinWallTime(looping, ask(looping, step, "primary", definitions)).pipe(
      Effect.catchTag("ModelError", (error) => Effect.succeed(providerEnding(error)))
    )
    if (isEnding(turn)) return turn
    const used = totalTokens((yield* journal.state).usage)
    if (max_total_tokens !== null && used > max_total_tokens) {
      return ending(
        "token_budget_exceeded",
        `${used} tokens were used, and ${max_total_tokens} are allowed (--max-total-tokens)`
      )
    }

    if (turn.tool_calls.length > 0) {
      emptyAnswers = 0
      const outcome = yield* withinWallTime(looping, answerCalls(calling, turn.tool_calls), checkGrace)
      if ("reason" in outcome) return outcome
      if (outcome._tag === "Ended") return outcome.ending
      readOnlySteps = outcome.acted ? 0 : readOnlySteps + 1
      if (readOnlySteps === stallSteps) {
        const remaining = max_steps - step
        yield* journal.append({
          event_type: "loop.read_only_stall_nudge",
          data: { consecutive_read_only_steps: stallSteps, steps_remaining: remaining }
        })
        yield* inject(journal, nudges.readOnlyStall(stallSteps, remaining))
        readOnlySteps = 0
      }
      continue
    }
    readOnlySteps = 0
    if (turn.finish_reason === "refusal" || turn.finish_reason === "content_filter") {
      return ending("refused", `the provider stopped the answer (${turn.finish_reason})`)
    }
    if (turn.finish_reason === "length") {
      yield* inject(journal, nudges.lengthCut)
      continue
    }
    if (turn.finish_reason === "pause") continue
    if (turn.text.trim() === "" && emptyAnswers === 0) {
      emptyAnswers += 1
      yield* inject(journal, nudges.emptyAnswer)
      continue
    }
    const settled: Ending | Failure = yield* withinWallTime(looping, settle(looping, failure), checkGrace)
    if (isEnding(settled)) return settled
    failure = settled
  }
  return yield* withinWallTime(looping, windDown(looping, max_steps))
})
