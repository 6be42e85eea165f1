/**
 * `receipt.json`: what a patch was made from, by what, and what was proved of it, for somebody who was not there. Its
 * file is exactly the canonical text of its value (`Canonical.ts`), so no byte of it can change unnoticed, and it names no
 * place of the machine that it was made on. `jq -S 'del(.receipt_digest)' receipt.json | sha256sum` prints its digest.
 */
import { Result, Schema } from "effect"
import { canonical } from "./Canonical.ts"
import { CommitId, Digest, RunId, TreeId } from "./Ids.ts"
import { isRecord } from "./Json.ts"
import { fromOctets } from "./Octets.ts"
import type { RunRequest } from "./Request.ts"
import {
  artifactNames,
  ChangedFile,
  CheckVerdict,
  ModelUsage,
  RunStatus,
  TerminalReason,
  type CheckOutcome
} from "./Result.ts"
import type { RunState } from "./Run.ts"
import { checksOf, type Task } from "./Task.ts"
import { Usage } from "./Usage.ts"
import { Warning, warningsOf } from "./Warnings.ts"

const Argv = Schema.NonEmptyArray(Schema.String)
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
/** A file of the bundle, by its name there. */
const SealedFile = Schema.Struct({ file: Schema.String, digest: Digest, bytes: Count })

/** A declared check as it ran on base plus patch. */
export const ReceiptCheck = Schema.Struct({
  name: Schema.String,
  argv: Argv,
  timeout_seconds: Schema.Finite,
  purpose: Schema.Literal("final"),
  verdict: CheckVerdict,
  exit_code: Schema.NullOr(Schema.Int),
  duration_seconds: Schema.Finite,
  /** Tests that ran; null when the output says nothing of them. */
  tests: Schema.NullOr(Count),
  /** Tests that ran on the untouched base; null when it was not run there, or said nothing. */
  tests_on_base: Schema.NullOr(Count),
  /** Why the verdict is not `passed`; null when it is. */
  reason: Schema.NullOr(Schema.String),
  /** Of the output as it is kept: bounded, secrets redacted, UTF-8. */
  log_digest: Digest
})
export type ReceiptCheck = typeof ReceiptCheck.Type

const fields = {
  schema_version: Schema.Literal(1),
  /** The version that made it. */
  looplane: Schema.String,
  run_id: RunId,
  /** Of the canonical text of `request.json`. */
  request_digest: Digest,
  /** Where the run started. `tree` is what the commit holds, or what the working tree held; null: it never got there. */
  base: Schema.Struct({
    kind: Schema.Literals(["commit", "working_tree"]),
    commit: CommitId,
    tree: Schema.NullOr(TreeId)
  }),
  /** What the base becomes with the patch: git's id of it. Null when nothing could be handed over. */
  tree: Schema.NullOr(TreeId),
  patch: Schema.Struct({ ...SealedFile.fields, files: Schema.Array(ChangedFile) }),
  verdict: Schema.Struct({ status: RunStatus, terminal_reason: TerminalReason }),
  /** What the user waived: `no_check` means that an unverified patch is what was asked for. */
  waivers: Schema.Array(Schema.Literal("no_check")),
  /** Where the checks ran, relative to the root. */
  subdirectory: Schema.String,
  /** Only what ran on `tree`. */
  checks: Schema.Array(ReceiptCheck),
  /** Declared checks that did not pass on the untouched base. */
  red_on_base: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      verdict: CheckVerdict,
      exit_code: Schema.NullOr(Schema.Int),
      tests: Schema.NullOr(Count),
      reason: Schema.NullOr(Schema.String)
    })
  ),
  /** Declared checks that did not run to an end, on the base (`preflight`) or on `tree` (`final`). */
  not_run: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      purpose: Schema.Literals(["preflight", "final"]),
      reason: Schema.String
    })
  ),
  /** The limit that ended the run, by its name in `request.json`. */
  limits_hit: Schema.Array(Schema.Struct({ limit: Schema.String, value: Schema.Finite })),
  /** Null when the workspace never came to be. */
  dependencies: Schema.NullOr(
    Schema.Struct({
      /** `path`: from a directory of the machine, which is not named. */
      requested: Schema.Literals(["auto", "copy", "none", "path"]),
      /** What came along from the source's folder, relative to the root, not installed. */
      copied: Schema.Array(Schema.String),
      /** Of the lock files. */
      lock_digest: Schema.NullOr(Digest),
      reason: Schema.NullOr(Schema.String),
      /** Commands that prepared the clone. */
      setup: Schema.Array(Argv),
      include: Schema.Array(Schema.String)
    })
  ),
  verification: SealedFile,
  test_log: SealedFile,
  /** The journal's last line: the hash of its bytes, which chains every line before. */
  journal: Schema.Struct({ file: Schema.String, sequence: Schema.Int, hash: Digest }),
  models: Schema.Array(ModelUsage),
  usage: Usage,
  warnings: Schema.Array(Warning)
}
const Body = Schema.Struct(fields)
export type ReceiptBody = typeof Body.Type

export const Receipt = Schema.Struct({
  ...fields,
  /** SHA-256 of the canonical text of everything else. */
  receipt_digest: Digest
})
export type Receipt = typeof Receipt.Type

/** What is handed over of a run that ended. Nothing is when its patch was refused. */
export const handedOver = (state: RunState): { readonly bytes: Uint8Array; readonly files: ReadonlyArray<ChangedFile> } =>
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
    not_run: declared.flatMap(({ name }): ReceiptBody["not_run"] => {
      const on = (purpose: "preflight" | "final", outcome: CheckOutcome | undefined, without: string) =>
        outcome === undefined || outcome.verdict === "not_run"
          ? [{ name, purpose, reason: portable(outcome?.reason ?? null) ?? without }]
          : []
      return [
        ...on("preflight", preflight.get(name), task.baseline ? "the run ended before" : "--no-baseline"),
        ...on("final", final.get(name), "nothing was handed over that it could run on, or the run ended before")
      ]
    }),
    limits_hit: limitOf(ended.terminal_reason, task),
    dependencies:
      prepared === null
        ? null
        : {
            requested: prepared.dependencies.requested.mode,
            copied: prepared.dependencies.copied,
            lock_digest: prepared.dependencies.lock_digest,
            reason: portable(prepared.dependencies.reason),
            setup: task.setup,
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

const encoder = new TextEncoder()
const encodeBody = Schema.encodeSync(Body)

/** The bytes that a receipt's digest is of. */
export const unsealed = (body: ReceiptBody): Uint8Array => encoder.encode(canonical(encodeBody(body)))

/** The file of a receipt. `digest` is that of `unsealed(body)`. */
export const seal = (body: ReceiptBody, digest: Digest): Uint8Array =>
  encoder.encode(canonical({ ...encodeBody(body), receipt_digest: digest }))

const decodeReceipt = Schema.decodeUnknownResult(Receipt)
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const sameBytes = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, at) => byte === right[at])

/**
 * A receipt from the bytes of a file, or why they are none. It is sound when the digest of `unsealed` is its
 * `receipt_digest`. Keys that this version does not know are kept out of `receipt`, and are covered by the digest.
 */
export const openReceipt = (
  bytes: Uint8Array
): Result.Result<{ readonly receipt: Receipt; readonly unsealed: Uint8Array }, string> => {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes))
    if (!isRecord(value)) return Result.fail("it is no JSON object")
    if (typeof value["schema_version"] === "number" && value["schema_version"] > 1)
      return Result.fail(`it is of version ${value["schema_version"]}, and this looplane reads version 1`)
    if (!sameBytes(encoder.encode(canonical(value)), bytes))
      return Result.fail("its bytes are not the canonical form that a receipt is written in: it was changed")
    const { receipt_digest: _, ...rest } = value
    return Result.mapBoth(decodeReceipt(value), {
      onSuccess: (receipt) => ({ receipt, unsealed: encoder.encode(canonical(rest)) }),
      onFailure: (error) => `it is no receipt: ${error.message.split("\n").join(" ")}`
    })
  } catch {
    return Result.fail("it is no JSON in UTF-8")
  }
}
