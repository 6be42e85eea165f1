/**
 * What a run does next. A pure function of its folded state: a run that is resumed goes on exactly as the one that was
 * cut off would have.
 */
import { ending, type Ending } from "./Ending.ts"
import type { CheckOutcome } from "./Result.ts"
import type { TreeId } from "./Ids.ts"
import type { PendingCall, RunState } from "./Run.ts"
import { nudges, type Nudge } from "./SystemPrompt.ts"
import { checksOf, type Check, type Task } from "./Task.ts"
import { totalTokens } from "./Usage.ts"
import { judge } from "./Verdict.ts"

/** Steps that only read before the model is told to get on with it (the reference's number). */
export const stallSteps = 4

export type Move =
  /** Read the repository, build the prompt, say the task: as much of it as is not done. */
  | { readonly _tag: "Begin" }
  | { readonly _tag: "Ask"; readonly step: number }
  | { readonly _tag: "Answer"; readonly calls: ReadonlyArray<PendingCall> }
  | { readonly _tag: "Nudge"; readonly nudge: Nudge }
  /** The model only reads; `remaining` steps are left. */
  | { readonly _tag: "Stalled"; readonly remaining: number }
  /** A final answer is judged by the workspace as it is. */
  | { readonly _tag: "Scan" }
  | { readonly _tag: "Collect"; readonly tree: TreeId }
  | {
      readonly _tag: "Verify"
      readonly tree: TreeId
      readonly checks: ReadonlyArray<Check>
      readonly done: ReadonlyArray<CheckOutcome>
    }
  /** The model hears what failed. */
  | { readonly _tag: "Report"; readonly failing: ReadonlyArray<CheckOutcome> }
  | { readonly _tag: "WindDown"; readonly step: number }
  | { readonly _tag: "End"; readonly ending: Ending; readonly note: string | null }

const end = (ending: Ending, note: string | null = null): Move => ({ _tag: "End", ending, note })

/** Of a final answer whose tree is known. */
const judged = (state: RunState, task: Task, tree: TreeId): Move => {
  if (tree === state.base_tree) return end(ending("no_changes"))
  if (state.patch === null) return { _tag: "Collect", tree }
  if (task.verification.mode !== "checks")
    return end(
      ending("unverified", task.verification.mode === "waived" ? null : "no check was declared (--check)")
    )
  if (!state.settled) {
    const done = state.outcomes
    return { _tag: "Verify", tree, checks: checksOf(task).slice(done.length), done }
  }
  const verdict = judge(state.verification)
  const again = state.failure?.tree === tree ? state.failure.failing : null
  switch (verdict._tag) {
    case "Verified":
      return end(
        ending("verified"),
        again === null
          ? null
          : `${again} failed before on exactly these files: not every run of it comes out the same`
      )
    case "CouldNotVerify":
      return end(ending("could_not_verify", verdict.why))
    case "Failed": {
      const failing = verdict.failing.map((outcome) => outcome.name).join(", ")
      return again === failing
        ? end(
            ending(
              "checks_failed",
              `the model finished twice with the same files, and ${failing} failed both times`
            )
          )
        : { _tag: "Report", failing: verdict.failing }
    }
  }
}

/** A turn that called no tool; null when the model is simply asked again. */
const finalMove = (state: RunState, task: Task): Move | null => {
  if (state.final === null) return null
  const { blank, finish_reason } = state.final
  switch (finish_reason) {
    case "refusal":
    case "content_filter":
      return end(ending("refused", `the provider stopped the answer (${finish_reason})`))
    case "length":
      return { _tag: "Nudge", nudge: nudges.lengthCut }
    case "pause":
      return null
    case "stop":
    case "tool_use":
      if (blank && state.empty_answers === 0) return { _tag: "Nudge", nudge: nudges.emptyAnswer }
      return state.scanned === null ? { _tag: "Scan" } : judged(state, task, state.scanned)
  }
}

/** The next move of a run that has not ended. */
export const next = (state: RunState, task: Task): Move => {
  const { max_steps, max_total_tokens } = task.limits
  if (state.prompt === null || state.conversation.length === 0) return { _tag: "Begin" }
  const taken = state.answered_step - state.first_step
  if (state.wind_down !== null) return windDown(state, task)
  const used = totalTokens(state.usage)
  if (taken > 0 && max_total_tokens !== null && used > max_total_tokens) {
    return end(
      ending(
        "token_budget_exceeded",
        `${used} tokens were used, and ${max_total_tokens} are allowed (--max-total-tokens)`
      )
    )
  }
  if (state.pending.length > 0) return { _tag: "Answer", calls: state.pending }
  if (state.read_only_steps === stallSteps) return { _tag: "Stalled", remaining: max_steps - taken }
  const final = finalMove(state, task)
  if (final !== null) return final
  return taken < max_steps ? { _tag: "Ask", step: state.answered_step + 1 } : windDown(state, task)
}

/** Steps are used up: one last turn without tools, for a summary, if the tokens allow it. It cannot rescue the run. */
const windDown = (state: RunState, task: Task): Move => {
  const { max_steps, max_total_tokens } = task.limits
  const spent = max_total_tokens !== null && totalTokens(state.usage) >= max_total_tokens
  return state.wind_down === "done" || spent
    ? end(ending("max_steps_exceeded", `${max_steps} steps are used up (--max-steps)`))
    : { _tag: "WindDown", step: state.answered_step }
}
