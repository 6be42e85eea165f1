/**
 * What a run that ended puts into its receipt: a function of its folded journal, its request and some digests, so that
 * the journal alone can tell whether a receipt is the run's own.
 */
import type { Digest } from "./Ids.ts"
import { fromOctets } from "./Octets.ts"
import type { ReceiptBody, ReceiptCheck, SealedFile } from "./Receipt.ts"
import type { RunRequest } from "./Request.ts"
import { artifactNames, type ChangedFile, type CheckOutcome, type TerminalReason } from "./Result.ts"
import type { RunState } from "./Run.ts"
import { checksOf, type Task } from "./Task.ts"
import { warningsOf } from "./Warnings.ts"

/** What is handed over of a run that ended. Nothing is when its patch was refused. */
export const handedOver = (
  state: RunState
): { readonly bytes: Uint8Array; readonly files: ReadonlyArray<ChangedFile> } =>
  state.patch === null || state.ended === null || state.ended.tree !== state.patch.tree
    ? { bytes: new Uint8Array(), files: [] }
    : { bytes: fromOctets(state.patch.patch), files: state.patch.files }

/** The outcomes of the tree that is handed over, as far as its verification came. */
export const finalOutcomes = (state: RunState): ReadonlyArray<CheckOutcome> => {
  const tree = state.ended?.tree ?? null
  if (tree === null) return []
  if (state.verification_tree === tree) return state.verification
  return state.scanned === tree ? state.outcomes : []
}

export interface ReceiptFacts {
  readonly looplane: string
  readonly request: RunRequest
  readonly request_digest: Digest
  /** After `run.ended`. */
  readonly state: RunState
  /** Of the bytes of `handedOver(state)`. */
  readonly patch_digest: Digest
  /** Of the outputs of `finalOutcomes(state)`, in their order. */
  readonly log_digests: ReadonlyArray<Digest>
  readonly verification: Omit<typeof SealedFile.Type, "file">
  readonly test_log: Omit<typeof SealedFile.Type, "file">
  readonly head: { readonly sequence: number; readonly hash: Digest }
}

const limitOf = (reason: TerminalReason, { limits }: Task): ReceiptBody["limits_hit"] => {
  switch (reason) {
    case "max_steps_exceeded":
      return [{ limit: "max_steps", value: limits.max_steps }]
    case "wall_time_exceeded":
      return [{ limit: "wall_time_seconds", value: limits.wall_time_seconds }]
    case "token_budget_exceeded":
      return [{ limit: "max_total_tokens", value: limits.max_total_tokens ?? 0 }]
    default:
      return []
  }
}

/** A check that did not run to an end; `without` is why, unless its outcome says more. Null for one that did. */
const missing = (
  name: string,
  purpose: "preflight" | "final",
  outcome: CheckOutcome | undefined,
  without: string
): ReceiptBody["not_run"][number] | null =>
  outcome === undefined || outcome.verdict === "not_run"
    ? { name, purpose, reason: outcome?.reason ?? without }
    : null

/** The receipt of a run that ended, without its digest; null for one that has not. */
export const makeReceipt = (facts: ReceiptFacts): ReceiptBody | null => {
  const { request, state } = facts
  const { task } = request
  const { ended, prepared, run_id } = state
  if (ended === null || run_id === null) return null
  const portable = (text: string | null): string | null =>
    text === null ? null : text.replaceAll(task.repository, "the source repository")
  const declared = checksOf(task)
  const preflight = new Map(
    state.checks.flatMap(({ outcome, purpose }) => (purpose === "preflight" ? [[outcome.name, outcome]] : []))
  )
  const outcomes = finalOutcomes(state)
  const final = new Map(outcomes.map((outcome) => [outcome.name, outcome]))
  const { bytes, files } = handedOver(state)
  return {
    schema_version: 1,
    looplane: facts.looplane,
    run_id,
    request_digest: facts.request_digest,
    ...(state.sandbox === null ? {} : { sandbox: state.sandbox }),
    base: { ...task.base, tree: state.base_tree },
    tree: ended.tree,
    patch: { file: artifactNames.patch, digest: facts.patch_digest, bytes: bytes.length, files },
    verdict: { status: ended.status, terminal_reason: ended.terminal_reason },
    waivers: task.verification.mode === "waived" ? ["no_check"] : [],
    subdirectory: task.subdirectory,
    checks: outcomes.flatMap((outcome, index): ReadonlyArray<ReceiptCheck> => {
      const check = declared.find(({ name }) => name === outcome.name)
      const log_digest = facts.log_digests[index]
      if (check === undefined || log_digest === undefined) return []
      return [
        {
          ...check,
          purpose: "final",
          verdict: outcome.verdict,
          exit_code: outcome.exit_code,
          duration_seconds: outcome.duration_seconds,
          tests: outcome.tests,
          tests_on_base: preflight.get(check.name)?.tests ?? null,
          reason: portable(outcome.reason),
          log_digest
        }
      ]
    }),
    red_on_base: declared.flatMap(({ name }) => {
      const outcome = preflight.get(name)
      if (outcome === undefined || outcome.verdict === "passed" || outcome.verdict === "not_run") return []
      const { exit_code, reason, tests, verdict } = outcome
      return [{ name, verdict, exit_code, tests, reason: portable(reason) }]
    }),
    not_run: declared.flatMap(({ name }) =>
      [
        missing(
          name,
          "preflight",
          preflight.get(name),
          task.baseline ? "the run ended before" : "--no-baseline"
        ),
        missing(name, "final", final.get(name), "nothing was handed over, or the run ended before")
      ].flatMap((one) => (one === null ? [] : [{ ...one, reason: portable(one.reason) ?? "" }]))
    ),
    limits_hit: limitOf(ended.terminal_reason, task),
    dependencies:
      prepared === null
        ? null
        : {
            requested: prepared.dependencies.requested.mode,
            copied: prepared.dependencies.copied,
            ...(prepared.dependencies.mounted === undefined
              ? {}
              : { mounted: prepared.dependencies.mounted }),
            lock_digest: prepared.dependencies.lock_digest,
            reason: portable(prepared.dependencies.reason),
            setup: task.setup,
            ...(task.setup_network === undefined ? {} : { setup_network: task.setup_network }),
            include: task.include
          },
    verification: { file: artifactNames.verification, ...facts.verification },
    test_log: { file: artifactNames.test_log, ...facts.test_log },
    journal: { file: artifactNames.events, ...facts.head },
    models: state.model_usage,
    usage: state.usage,
    warnings: warningsOf({ patch: bytes, files, task, checks: state.checks })
  }
}
