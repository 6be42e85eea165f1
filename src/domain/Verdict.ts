/**
 * What the outcomes of every declared check make of a tree.
 */
import type { TreeId } from "./Ids.ts"
import type { CheckOutcome } from "./Result.ts"
import { isFormOnly } from "./Task.ts"

export type Verdict =
  | { readonly _tag: "Verified" }
  | { readonly _tag: "Failed"; readonly failing: ReadonlyArray<CheckOutcome> }
  | { readonly _tag: "CouldNotVerify"; readonly why: string }

export const judge = (outcomes: ReadonlyArray<CheckOutcome>): Verdict => {
  const failing = outcomes.filter((outcome) => outcome.verdict === "failed")
  if (failing.length > 0) return { _tag: "Failed", failing }
  if (outcomes.every((outcome) => isFormOnly(outcome.argv))) {
    return {
      _tag: "CouldNotVerify",
      why: "git diff --check alone proves nothing about the code: declare a check that runs it"
    }
  }
  const doubtful = outcomes.filter((outcome) => outcome.verdict !== "passed")
  return doubtful.length > 0
    ? { _tag: "CouldNotVerify", why: doubtful.map((o) => `${o.name}: ${o.reason ?? o.verdict}`).join("; ") }
    : { _tag: "Verified" }
}

/** A tree that failed, and by which checks: the same again means that the model has nothing more to give. */
export interface Failure {
  readonly tree: TreeId
  readonly failing: string
}

/** What failed on a tree; null when nothing did. */
export const failureOf = (tree: TreeId, outcomes: ReadonlyArray<CheckOutcome>): Failure | null => {
  const verdict = judge(outcomes)
  return verdict._tag === "Failed"
    ? { tree, failing: verdict.failing.map((outcome) => outcome.name).join(", ") }
    : null
}

/** Of a failed check's output, as the model gets it back, in characters. */
const maxReport = 12_000

/** A failed check as the model reads it. */
export const reportOf = (outcome: CheckOutcome): string => {
  const head = `check ${outcome.name} failed (exit ${outcome.exit_code ?? "none"})${outcome.reason === null ? "" : `: ${outcome.reason}`}`
  const { output } = outcome
  return output.length <= maxReport
    ? `${head}\n${output}`
    : `${head}\n[the first ${output.length - maxReport} characters are cut]\n${output.slice(-maxReport)}`
}
