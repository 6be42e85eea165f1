/**
 * A run that is gone on with: one that was cut off, from exactly where it stood, or one that ended, with a follow-up
 * task in the same conversation and workspace.
 */
import { Effect } from "effect"
import { refuse } from "../domain/Refusal.ts"
import type { RunRequest } from "../domain/Request.ts"
import type { RunState } from "../domain/Run.ts"
import { Models } from "../services/Model.ts"
import type { Journal, TakenOver } from "../services/RunStore.ts"
import { Workspaces } from "../services/Workspace.ts"
import { finishAgain } from "./Finish.ts"
import { modelsOf, play, type Announcing, type FinishedRun } from "./Run.ts"

/** What a model hears of an action that nobody had decided on. */
const abandonedAnswer =
  "the action was not performed: the run was interrupted before anybody decided on it; ask again if it is still needed"

/** A question that was open is nobody's any more: it is answered with the fact, and the run says so. */
const abandon = Effect.fnUntraced(function* (journal: Journal, pending: RunState["pending"]) {
  for (const { call, question } of pending) {
    if (question === null) continue
    const { action_id, effect, request_id } = question
    yield* journal.append({
      event_type: "approval.abandoned",
      data: { request_id, action_id, effect, reason: "process_interrupted_before_decision" }
    })
    yield* journal.append({
      event_type: "tool.completed",
      data: { tool_call_id: call.id, name: call.name, ok: false, content: abandonedAnswer, tree: null }
    })
    yield* journal.append({
      event_type: "run.noted",
      data: { note: `an approval was pending when the run was interrupted: ${call.name} was not performed` }
    })
  }
})

/** What differs from what the run was asked with; null when nothing does. */
const changedModel = (
  { models }: RunRequest,
  { model, provider }: RunState,
  now: Models["Service"]["candidates"]
): string | null => {
  const known = models.find((each) => each.provider === provider && each.model === model) ?? models[0]
  const same = now.some((each) => each.provider === provider && each.model === model)
  const [first] = now
  if (!same)
    return `the run goes on with ${first.provider}/${first.model}; it was ${provider}/${model} before`
  const endpoints = now.filter((each) => each.provider === provider && each.model === model)
  return endpoints.some((each) => each.endpoint === known.endpoint)
    ? null
    : `the run goes on at ${first.endpoint ?? "another endpoint"}; it was ${known.endpoint ?? "none"} before`
}

export interface ResumeOptions {
  /** The follow-up task; null to go on with the one that the run has. */
  readonly instruction: string | null
}

/**
 * The workspace as the journal knows it; null when the run's process died before it had one. A run whose workspace cannot
 * be had now is not over: what is missing may come back, so it is refused and stays what it is.
 */
const restore = Effect.fnUntraced(function* (
  { directory, run_id }: Journal,
  task: RunRequest["task"],
  { prepared, tree }: RunState
) {
  if (prepared === null) return null
  const workspaces = yield* Workspaces
  return yield* workspaces
    .open({ task, directory, resume: { prepared, tree: tree ?? prepared.tree } })
    .pipe(Effect.mapError(({ message }) => refuse(`run ${run_id} cannot be gone on with: ${message}`)))
})

/** Whether there is anything to do for a run without a follow-up task. */
const demandWork = (state: RunState, hasResult: boolean, instruction: string | null) =>
  state.ended !== null && hasResult && instruction === null
    ? Effect.fail(
        refuse(
          `run ${state.run_id ?? ""} has ended (${state.ended.terminal_reason}): give it a follow-up task, as in looplane resume ${state.run_id ?? "RUN"} "next task"`
        )
      )
    : Effect.void

/**
 * Goes on with a run that the store has handed over. Fails with a `Refusal` when there is nothing to go on with, and
 * when the store does; everything else is a result.
 */
export const resume = Effect.fn("Resume.resume")(function* <E = never>(
  { active_ms, complete, discard, journal, lost, request }: TakenOver,
  options: ResumeOptions & Announcing<E>
) {
  const { instruction } = options
  const { task } = request
  const state = yield* journal.state
  yield* demandWork(state, complete, instruction)
  if (state.ended !== null && instruction === null) {
    return yield* Effect.uninterruptible(
      Effect.gen(function* () {
        const result = yield* finishAgain(journal, request)
        const finished: FinishedRun = { result, directory: journal.directory }
        if (options.announce !== undefined) yield* options.announce(finished)
        return finished
      })
    )
  }
  const { candidates } = yield* Models
  const standing = candidates.find(
    ({ model, provider }) => provider === state.provider && model === state.model
  )
  const { model, provider } = standing ?? candidates[0]
  const successor = {
    provider,
    model,
    base_sha: task.base.commit,
    resumed_step: state.answered_step,
    models: modelsOf(candidates)
  }
  const workspace = yield* restore(journal, task, state)
  if (instruction !== null) yield* discard
  yield* instruction === null
    ? journal.append({
        event_type: "session.resumed",
        data: { ...successor, active_ms, lost_events: lost }
      })
    : journal.append({
        event_type: "session.continued",
        data: { ...successor, active_ms: 0, instruction, ...(lost === 0 ? {} : { lost_events: lost }) }
      })
  if (workspace !== null)
    yield* journal.append({
      event_type: "workspace.restored",
      data: { tree: yield* workspace.tree, found: workspace.found }
    })
  const change = changedModel(request, state, candidates)
  const notes = [
    ...(change === null ? [] : [change]),
    ...(lost === 0 ? [] : [`${lost} event${lost === 1 ? " was" : "s were"} lost and gone on without`])
  ]
  for (const note of notes) yield* journal.append({ event_type: "run.noted", data: { note } })
  // As they were found: a follow-up task has none.
  yield* abandon(journal, state.pending)
  yield* journal.barrier
  return yield* play(journal, request, instruction === null ? active_ms : 0, workspace, options)
}, Effect.scoped)
