/**
 * Verification: every declared check, each in a fresh place that holds exactly what is handed over.
 */
import { Effect } from "effect"
import type { CheckPurpose } from "../domain/Event.ts"
import type { TreeId } from "../domain/Ids.ts"
import { unrun, type CheckOutcome } from "../domain/Result.ts"
import { checksOf, type Check, type Task } from "../domain/Task.ts"
import { Checks } from "../services/Checks.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import type { OpenWorkspace } from "../services/Workspace.ts"
import type { Stopwatch } from "./Stopwatch.ts"

export interface Verifying {
  readonly journal: Journal
  readonly task: Task
  readonly workspace: OpenWorkspace
  readonly stopwatch: Stopwatch
}

/** One run of a check on a tree, in a fresh place of its own, and what it wrote there. */
export const runAlone = Effect.fnUntraced(function* (
  workspace: OpenWorkspace,
  task: Task,
  tree: TreeId,
  check: Check,
  options: { readonly purpose: CheckPurpose; readonly remaining_ms: Effect.Effect<number> }
) {
  const checks = yield* Checks
  const place = yield* workspace.materialise(tree)
  const outcome = yield* checks.run(
    check,
    {
      root: place.root,
      subdirectory: task.subdirectory,
      source: task.repository,
      layers: place.layers,
      distrust: place.distrust
    },
    {
      purpose: options.purpose,
      remaining_ms: yield* options.remaining_ms,
      max_output_bytes: task.limits.max_tool_output_bytes
    }
  )
  return { outcome, wrote: yield* place.wrote }
}, Effect.scoped)

/** Runs one check on a tree and journals both ends. */
export const runCheck = Effect.fn("Verify.runCheck")(function* (
  verifying: Verifying,
  check: Check,
  tree: TreeId,
  purpose: CheckPurpose
): Effect.fn.Return<CheckOutcome, StoreError, Checks> {
  const { journal, stopwatch, task, workspace } = verifying
  const { sandbox } = yield* journal.state
  yield* journal.append({
    event_type: "verification.started",
    data: { name: check.name, argv: check.argv, purpose, tree, ...(sandbox === null ? {} : { sandbox }) }
  })
  yield* journal.barrier
  const { outcome, wrote } = yield* runAlone(workspace, task, tree, check, {
    purpose,
    remaining_ms: stopwatch.remaining_ms
  }).pipe(
    Effect.catchTag("WorkspaceError", (error) =>
      Effect.succeed({
        outcome: unrun(check, "could_not_verify", `no place to run it in: ${error.message}`),
        wrote: []
      })
    )
  )
  yield* journal.append({ event_type: "verification.completed", data: { purpose, tree, outcome, wrote } })
  return outcome
})

/** Runs the checks that are left on a tree, also after one has failed, and settles the outcomes in the journal. */
export const verify = Effect.fn("Verify.verify")(function* (
  verifying: Verifying,
  left: {
    readonly tree: TreeId
    readonly checks: ReadonlyArray<Check>
    readonly done: ReadonlyArray<CheckOutcome>
  }
) {
  const outcomes = [...left.done]
  for (const check of left.checks) outcomes.push(yield* runCheck(verifying, check, left.tree, "final"))
  yield* verifying.journal.append({
    event_type: "verification.settled",
    data: { tree: left.tree, outcomes }
  })
  return outcomes
})

/**
 * Runs every declared check once on the untouched base, unless the journal knows what it said there. A set-up problem
 * that no patch can cure is returned as the reason why nothing here can be verified; everything else is only recorded.
 */
export const preflight = Effect.fn("Verify.preflight")(function* (verifying: Verifying) {
  const base = verifying.workspace.prepared.tree
  const before = (yield* verifying.journal.state).checks.filter(({ purpose }) => purpose === "preflight")
  for (const check of checksOf(verifying.task)) {
    const known = before.find(({ outcome }) => outcome.name === check.name)?.outcome
    const outcome = known ?? (yield* runCheck(verifying, check, base, "preflight"))
    // Cut off by the run's time, it says nothing about the check.
    if ((yield* verifying.stopwatch.remaining_ms) <= 0) return null
    if (outcome.verdict === "could_not_verify" && outcome.tests !== 0) {
      return `check ${JSON.stringify(check.name)} cannot run here: ${outcome.reason ?? "unknown reason"}`
    }
  }
  return null
})
