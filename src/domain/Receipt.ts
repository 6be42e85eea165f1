/**
 * `receipt.json`: what a patch was made from, by what, and what was proved of it, for somebody who was not there. Its
 * file is exactly the canonical text of its value (`Canonical.ts`), so no byte of it can change unnoticed, and it names no
 * place of the machine that it was made on. `jq -S 'del(.receipt_digest)' receipt.json | sha256sum` prints its digest.
 */
import { Result, Schema } from "effect"
import { sameBytes } from "./Bytes.ts"
import { canonical } from "./Canonical.ts"
import { CommitId, Digest, RunId, TreeId } from "./Ids.ts"
import { isRecord } from "./Json.ts"
import { ChangedFile, CheckVerdict, ModelUsage, RunStatus, TerminalReason } from "./Result.ts"
import { SandboxKind } from "./SandboxRule.ts"
import { Network } from "./Task.ts"
import { Usage } from "./Usage.ts"
import { Warning } from "./Warnings.ts"

const Argv = Schema.NonEmptyArray(Schema.String)
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
/** A file of the bundle, by its name there. */
export const SealedFile = Schema.Struct({ file: Schema.String, digest: Digest, bytes: Count })

/** A declared check as it ran on base plus patch. */
export const ReceiptCheck = Schema.Struct({
  name: Schema.String,
  argv: Argv,
  timeout_seconds: Schema.Finite,
  /** What it reached of the network in a sandbox; absent: nothing. */
  network: Schema.optionalKey(Network),
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
  /** What was around the commands; absent in receipts of before it was written down. */
  sandbox: Schema.optionalKey(SandboxKind),
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
  /** Where the checks ran, relative to the root and below it; "" is the root. */
  subdirectory: Schema.String.check(
    Schema.isPattern(/^(?!\/)(?!(?:[\s\S]*\/)?\.\.(?:\/|$))[\s\S]*$/, { expected: "a path below the root" })
  ),
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
      /** It was shown to the checks where it is, and not copied. */
      mounted: Schema.optionalKey(Schema.Boolean),
      /** Of the lock files. */
      lock_digest: Schema.NullOr(Digest),
      reason: Schema.NullOr(Schema.String),
      /** Commands that prepared the clone. */
      setup: Schema.Array(Argv),
      /** What they reached of the network in a sandbox; absent: nothing. */
      setup_network: Schema.optionalKey(Network),
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

const encoder = new TextEncoder()
const encodeBody = Schema.encodeSync(Body)

/** The bytes that a receipt's digest is of. */
export const unsealed = (body: ReceiptBody): Uint8Array => encoder.encode(canonical(encodeBody(body)))

/** The file of a receipt. `digest` is that of `unsealed(body)`. */
export const seal = (body: ReceiptBody, digest: Digest): Uint8Array =>
  encoder.encode(canonical({ ...encodeBody(body), receipt_digest: digest }))

const decodeReceipt = Schema.decodeUnknownResult(Receipt)
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

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
    // Left out of the text, as everything undefined is.
    const rest = { ...value, receipt_digest: undefined }
    return Result.mapBoth(decodeReceipt(value), {
      onSuccess: (receipt) => ({ receipt, unsealed: encoder.encode(canonical(rest)) }),
      onFailure: (error) => `it is no receipt: ${error.message.split("\n").join(" ")}`
    })
  } catch {
    return Result.fail("it is no JSON in UTF-8")
  }
}
