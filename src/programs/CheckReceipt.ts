/**
 * Whether a receipt and what it speaks of still are what they were: by digests and by the run's own journal. No model, no
 * repository, no network; nothing is written.
 */
import { Effect, FileSystem, Option, Path, Result, Schema, Stream } from "effect"
import type { Digest as Digests } from "effect/crypto"
import { firstDifference } from "../domain/Canonical.ts"
import { isKnown } from "../domain/Event.ts"
import { failed, ok, skipped, type Finding } from "../domain/Finding.ts"
import { noLine } from "../domain/JournalCodec.ts"
import { Receipt } from "../domain/Receipt.ts"
import { refuse, type Refusal } from "../domain/Refusal.ts"
import { artifactNames } from "../domain/Result.ts"
import { initial, reduce, type RunState } from "../domain/Run.ts"
import { Warning } from "../domain/Warnings.ts"
import { RunStore, type RunSummary, type StoreError } from "../services/RunStore.ts"
import { version } from "../version.ts"
import { bodyOf } from "./MakeReceipt.ts"
import { compareFile, endsWhole, openFile, requestDigest } from "./ReceiptFiles.ts"

export type ReceiptSource =
  | { readonly _tag: "Bundle"; readonly summary: RunSummary }
  /** A receipt that travelled alone, and its patch if it came along. */
  | { readonly _tag: "File"; readonly file: string; readonly patch: string | null }

export interface CheckedReceipt {
  /** Null when there is none that can be read. */
  readonly receipt: Receipt | null
  /** The patch, when its bytes are those of the receipt. */
  readonly patch: Uint8Array | null
  /** The receipt's, and behind them what this version sees besides in the patch of a bundle. */
  readonly warnings: ReadonlyArray<Warning>
  readonly findings: ReadonlyArray<Finding>
}

type Needs = FileSystem.FileSystem | Path.Path | Digests.Digest

/** The receipt that a word means: the path of one, or a run as `RunStore.find` takes it. */
export const locateReceipt: (
  word: string,
  patch: string | null
) => Effect.Effect<ReceiptSource, Refusal | StoreError, RunStore | FileSystem.FileSystem | Path.Path> =
  Effect.fn("CheckReceipt.locateReceipt")(function* (word, patch) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const store = yield* RunStore
    const file = path.resolve(word)
    const info = yield* Effect.option(fs.stat(file))
    const directory = path.dirname(file)
    const alone = Option.isSome(info) && info.value.type !== "Directory"
    const inBundle =
      path.basename(file) === artifactNames.receipt &&
      (yield* fs.exists(path.join(directory, artifactNames.events)).pipe(Effect.orElseSucceed(() => false)))
    if (alone && !inBundle) return { _tag: "File", file, patch: patch === null ? null : path.resolve(patch) }
    if (patch !== null)
      return yield* refuse("--patch goes with the file of a receipt: a run has its own patch")
    return { _tag: "Bundle", summary: yield* store.find(alone ? directory : word) }
  })

/** Reads the journal to its end: the chain, then whether it ends where the receipt says. */
const followJournal = Effect.fnUntraced(function* (directory: string, head: Receipt["journal"]) {
  const store = yield* RunStore
  const subject = artifactNames.events
  let state: RunState = initial
  let last = { sequence: -1, hash: noLine }
  const chain = yield* store.entries(directory).pipe(
    Stream.runForEach(({ event, hash, sequence }) =>
      Effect.sync(() => {
        last = { sequence, hash }
        if (isKnown(event) && sequence <= head.sequence) state = reduce(state, event)
      })
    ),
    Effect.result
  )
  if (Result.isFailure(chain)) return { state: null, finding: failed(subject, chain.failure.message) }
  if (last.sequence !== head.sequence) {
    const lines = last.sequence + 1
    return {
      state: null,
      finding: failed(subject, `it has ${lines} lines, and the receipt was made at line ${head.sequence + 1}`)
    }
  }
  if (last.hash !== head.hash)
    return {
      state: null,
      finding: failed(subject, `line ${last.sequence + 1} is not the one that the receipt was made at`)
    }
  return { state, finding: ok(subject, `${last.sequence + 1} lines, chained up to ${last.hash}`) }
})

const encodeReceipt = Schema.encodeSync(Receipt)

const sameWarning = Schema.toEquivalence(Warning)

/** What the journal alone would put into a receipt, against what is there. */
const agree = Effect.fnUntraced(function* (receipt: Receipt, state: RunState, summary: RunSummary) {
  const subject = "receipt and journal"
  const { request } = summary
  const nothing = (finding: Finding) => ({ finding, warnings: receipt.warnings })
  if (request === null) return nothing(failed(artifactNames.request, "it is missing or cannot be read"))
  const { bytes: patchBytes, digest } = receipt.patch
  const { test_log, verification } = receipt
  const body = yield* bodyOf({
    looplane: receipt.looplane,
    request,
    request_digest: receipt.request_digest,
    state,
    verification: { digest: verification.digest, bytes: verification.bytes },
    test_log: { digest: test_log.digest, bytes: test_log.bytes },
    head: receipt.journal
  })
  if (body === null) return nothing(failed(subject, "the journal has no end of a run"))
  // Another version may see other things to warn of in the same patch.
  const own = receipt.looplane === version ? {} : { warnings: receipt.warnings }
  const told = encodeReceipt({ ...body, ...own, receipt_digest: receipt.receipt_digest })
  const difference = firstDifference(encodeReceipt(receipt), told)
  const finding =
    difference === null
      ? ok(subject, `both say ${receipt.verdict.terminal_reason}, ${patchBytes} bytes of patch ${digest}`)
      : failed(subject, `they differ in ${difference}`)
  const more = body.warnings.filter((one) => !receipt.warnings.some((each) => sameWarning(each, one)))
  return { finding, warnings: [...receipt.warnings, ...more] }
})

const compareRequest = Effect.fnUntraced(function* (directory: string, receipt: Receipt) {
  const subject = artifactNames.request
  const read = yield* requestDigest(directory)
  if (Result.isFailure(read)) return failed(subject, read.failure)
  const digest = read.success
  return digest === receipt.request_digest
    ? ok(subject, `sha256 ${digest} of its canonical form`)
    : failed(
        subject,
        `its canonical form has sha256 ${digest}, and the receipt says ${receipt.request_digest}`
      )
})

const compareResult = (receipt: Receipt, summary: RunSummary, state: RunState): Finding => {
  const subject = artifactNames.result
  const { result } = summary
  if (result === null) return failed(subject, "it is missing or cannot be read")
  const said = {
    run_id: result.run_id,
    status: result.status,
    terminal_reason: result.terminal_reason,
    base_sha: result.base_sha,
    tree: result.tree,
    changed_files: result.changed_files,
    model_usage: result.model_usage,
    error: result.error,
    summary: result.summary,
    artifacts: result.artifacts
  }
  const known = {
    run_id: receipt.run_id,
    ...receipt.verdict,
    base_sha: receipt.base.commit,
    tree: receipt.tree,
    changed_files: receipt.patch.files.map((file) => file.path),
    model_usage: receipt.models,
    error: state.ended?.error ?? null,
    summary: state.summary,
    // Another version may have files of its own besides.
    artifacts: receipt.looplane === version ? artifactNames : { ...result.artifacts, ...artifactNames }
  }
  const difference = firstDifference(said, known)
  return difference === null
    ? ok(subject, "says what the receipt says")
    : failed(subject, `its ${difference} is not what the receipt and the journal say`)
}

const checkBundle = Effect.fnUntraced(function* (
  summary: RunSummary,
  tell: (finding: Finding) => Effect.Effect<void>
) {
  const path = yield* Path.Path
  const { directory } = summary
  const at = (name: string) => path.join(directory, name)
  const { finding, receipt } = yield* openFile(at(artifactNames.receipt))
  yield* tell(finding)
  if (receipt === null) return { receipt, patch: null, warnings: [] }
  const patch = yield* compareFile(at(artifactNames.patch), receipt.patch)
  yield* tell(patch.finding)
  for (const key of ["verification", "test_log"] as const)
    yield* tell((yield* compareFile(at(artifactNames[key]), receipt[key])).finding)
  yield* tell(yield* compareRequest(directory, receipt))
  const journal = yield* followJournal(directory, receipt.journal)
  const whole = yield* endsWhole(at(artifactNames.events))
  yield* tell(
    journal.state !== null && !whole
      ? failed(artifactNames.events, `something that is no line follows line ${receipt.journal.sequence + 1}`)
      : journal.finding
  )
  if (journal.state === null) {
    yield* tell(skipped(artifactNames.result, "without a sound journal there is nothing to compare it with"))
    return { receipt, patch: patch.bytes, warnings: receipt.warnings }
  }
  const agreement = yield* agree(receipt, journal.state, summary)
  yield* tell(agreement.finding)
  if (receipt.looplane !== version)
    yield* tell(
      skipped(
        "warnings",
        `looplane ${receipt.looplane} made the receipt's and this is ${version}: not compared; what this version sees is shown with them`
      )
    )
  yield* tell(compareResult(receipt, summary, journal.state))
  return { receipt, patch: patch.bytes, warnings: agreement.warnings }
})

const checkFile = Effect.fnUntraced(function* (
  source: Extract<ReceiptSource, { readonly _tag: "File" }>,
  tell: (finding: Finding) => Effect.Effect<void>
) {
  const { finding, receipt } = yield* openFile(source.file)
  yield* tell(finding)
  if (receipt === null) return { receipt, patch: null, warnings: [] }
  const patch = source.patch === null ? null : yield* compareFile(source.patch, receipt.patch)
  yield* tell(patch?.finding ?? skipped(receipt.patch.file, "not at hand: give it with --patch"))
  yield* tell(
    skipped(
      "bundle",
      `journal, ${receipt.verification.file} and ${receipt.test_log.file} are not at hand: their digests are only stated`
    )
  )
  return { receipt, patch: patch?.bytes ?? null, warnings: receipt.warnings }
})

/** Checks everything that can be checked without a repository. `tell` hears of each finding as it is made. */
export const checkReceipt = Effect.fn("CheckReceipt.checkReceipt")(function* (
  source: ReceiptSource,
  tell: (finding: Finding) => Effect.Effect<void> = () => Effect.void
): Effect.fn.Return<CheckedReceipt, never, Needs | RunStore> {
  const findings: Array<Finding> = []
  const note = (finding: Finding) =>
    Effect.andThen(
      Effect.sync(() => findings.push(finding)),
      tell(finding)
    )
  const found =
    source._tag === "Bundle" ? yield* checkBundle(source.summary, note) : yield* checkFile(source, note)
  return { ...found, findings }
})
