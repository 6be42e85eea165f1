/**
 * How a run ended, and what it leaves.
 */
import { Schema } from "effect"
import { RunId, TreeId } from "./Ids.ts"
import { ModelErrorKind } from "./ModelError.ts"
import { Usage } from "./Usage.ts"

export const CheckVerdict = Schema.Literals(["passed", "failed", "not_run", "could_not_verify"])
export type CheckVerdict = typeof CheckVerdict.Type

/** What one run of one check showed. `exit_code` 124 is a time-out, 126 not started, 127 not found. */
export const CheckOutcome = Schema.Struct({
  name: Schema.String,
  argv: Schema.Array(Schema.String),
  verdict: CheckVerdict,
  exit_code: Schema.NullOr(Schema.Int),
  duration_seconds: Schema.Finite,
  /** Tests that the runner reported to have run; null when its output says nothing. */
  tests: Schema.NullOr(Schema.Int),
  /** Why the verdict is not `passed`, in one line; null when it is. */
  reason: Schema.NullOr(Schema.String),
  output: Schema.String
})
export type CheckOutcome = typeof CheckOutcome.Type

/** The outcome of a check that was not run to an end of its own. */
export const unrun = (
  check: { readonly name: string; readonly argv: ReadonlyArray<string> },
  verdict: CheckVerdict,
  reason: string,
  exit_code: number | null = null
): CheckOutcome => ({
  name: check.name,
  argv: check.argv,
  verdict,
  exit_code,
  duration_seconds: 0,
  tests: null,
  reason,
  output: ""
})

export const RunStatus = Schema.Literals(["completed", "failed", "cancelled"])
export type RunStatus = typeof RunStatus.Type

const providerReasons = ModelErrorKind.literals.map((kind) => `provider_${kind}` as const)

/** Every way a run can end. `interrupted` is not among them: an interrupted run has not ended. */
export const TerminalReason = Schema.Literals([
  "verified",
  "no_changes",
  "unverified",
  "checks_failed",
  "could_not_verify",
  "max_steps_exceeded",
  "wall_time_exceeded",
  "token_budget_exceeded",
  "repeated_action",
  "refused",
  "patch_artifact_failed",
  "approval_unavailable",
  "approval_cancelled",
  "workspace_failed",
  "error",
  ...providerReasons
])
export type TerminalReason = typeof TerminalReason.Type

/** How a run's end is judged. `waived`: the user said `--no-check`, so an unverified patch is what was asked for. */
export const statusOf = (reason: TerminalReason, waived: boolean): RunStatus => {
  switch (reason) {
    case "verified":
    case "no_changes":
      return "completed"
    case "unverified":
      return waived ? "completed" : "failed"
    case "approval_cancelled":
      return "cancelled"
    default:
      return "failed"
  }
}

/** The exit code of a run that ended: 0 completed, 1 not, 3 an answer was needed that nobody could give, 4 a cap. */
export const exitCodeOf = (reason: TerminalReason, waived: boolean): 0 | 1 | 3 | 4 => {
  switch (reason) {
    case "max_steps_exceeded":
    case "wall_time_exceeded":
    case "token_budget_exceeded":
      return 4
    case "approval_unavailable":
      return 3
    default:
      return statusOf(reason, waived) === "completed" ? 0 : 1
  }
}

/** What a request to a model is for: the run's turns, or the last words of one that used up its steps. */
export const Lane = Schema.Literals(["primary", "wind_down"])

export const ModelUsage = Schema.Struct({
  lane: Lane,
  provider: Schema.String,
  model: Schema.String,
  usage: Usage
})
export type ModelUsage = typeof ModelUsage.Type

/** The files of a bundle that a result points at, by key; names relative to the run directory. */
export const artifactNames = {
  request: "request.json",
  session: "session.json",
  events: "events.jsonl",
  checkpoint: "checkpoint.json",
  verification: "verification.json",
  test_log: "test.log",
  patch: "changes.patch",
  receipt: "receipt.json",
  result: "result.json"
} as const
export type ArtifactKey = keyof typeof artifactNames

export const ChangedFile = Schema.Struct({
  path: Schema.String,
  change: Schema.Literals(["added", "modified", "deleted", "type_changed"])
})
export type ChangedFile = typeof ChangedFile.Type

/** `result.json`: written last, so a bundle that has one is complete. */
export const RunResult = Schema.Struct({
  schema_version: Schema.Literal(1),
  run_id: RunId,
  status: RunStatus,
  terminal_reason: TerminalReason,
  /** What the model said last; never what decided the status. */
  summary: Schema.String,
  error: Schema.NullOr(Schema.String),
  /** Sorted paths, relative to the repository's root. */
  changed_files: Schema.Array(Schema.String),
  verification: Schema.Array(CheckOutcome),
  usage: Schema.Struct({ ...Usage.fields, total_tokens: Schema.Int }),
  model_usage: Schema.Array(ModelUsage),
  steps: Schema.Int,
  base_sha: Schema.String,
  /** The tree that was handed over and, when verified, checked; null when the workspace never came to be. */
  tree: Schema.NullOr(TreeId),
  /** Things a reader should know: paths left out, files reported but not in the patch, what checks wrote. */
  notes: Schema.Array(Schema.String),
  artifacts: Schema.Record(Schema.String, Schema.String)
})
export type RunResult = typeof RunResult.Type
