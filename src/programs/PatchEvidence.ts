/**
 * What vouches for the patch of a run that ended: its journal, its receipt, its result.
 */
import { Effect, Path, Result, Stream } from "effect"
import { sameBytes } from "../domain/Bytes.ts"
import { isKnown, type RunEvent, type UnknownEvent } from "../domain/Event.ts"
import type { Digest } from "../domain/Ids.ts"
import { handedOver } from "../domain/ReceiptFacts.ts"
import { refuse } from "../domain/Refusal.ts"
import type { RunRequest } from "../domain/Request.ts"
import { artifactNames } from "../domain/Result.ts"
import { initial, reduce, type RunState } from "../domain/Run.ts"
import { RunStore, type RunSummary } from "../services/RunStore.ts"
import type { PatchSource } from "../services/UserTree.ts"
import { digestOf } from "./MakeReceipt.ts"
import { openFile, readRegular, requestDigest } from "./ReceiptFiles.ts"

/** What the journal says of the run. */
interface Told {
  readonly state: RunState
  /** The last task; null when it is the first one. */
  readonly instruction: string | null
  readonly store_version: number
}

const tell = (told: Told, event: RunEvent | UnknownEvent): Told => {
  if (!isKnown(event)) return told
  const next = { ...told, state: reduce(told.state, event) }
  if (event.event_type === "run.created") return { ...next, store_version: event.data.store_version }
  return event.event_type === "session.continued" ? { ...next, instruction: event.data.instruction } : next
}

/** The first version whose journals hold the patch. */
const patchVersion = 2

/** The patch as the journal has it; null when the run was written before journals held one. */
const journalled = ({ state, store_version }: Told): Uint8Array | null =>
  state.patch === null && store_version < patchVersion ? null : handedOver(state).bytes

/** Who may change the request can name another task, or another repository, than the one that was verified. */
const doubtRequest = Effect.fnUntraced(function* (directory: string, said: Digest) {
  const digest = yield* requestDigest(directory)
  if (Result.isFailure(digest)) return `its ${artifactNames.request}: ${digest.failure}`
  return digest.success === said
    ? null
    : `its ${artifactNames.request} is not the one that its receipt speaks of`
})

export interface Evidence {
  readonly patch: Uint8Array
  readonly patch_digest: Digest
  readonly source: PatchSource
  readonly request: RunRequest
  readonly instruction: string
  /** Why the patch is less than verified; null when it is verified. */
  readonly doubt: string | null
}

/** The patch of a run with everything that vouches for it. A patch that was changed since is none. */
export const readEvidence = Effect.fnUntraced(function* ({ directory, request, result, run_id }: RunSummary) {
  const store = yield* RunStore
  const path = yield* Path.Path
  if (request === null)
    return yield* refuse(`run ${run_id} cannot be applied: its request.json is missing or cannot be read`)
  if (result === null)
    return yield* refuse(
      `run ${run_id} has not ended, so it has no patch yet: looplane resume ${run_id} goes on with it`
    )
  const nothing: Told = { state: initial, instruction: null, store_version: 1 }
  const told = yield* store.entries(directory).pipe(
    Stream.runFold(
      () => nothing,
      (state, { event }) => tell(state, event)
    )
  )
  const file = path.join(directory, artifactNames.patch)
  const read = yield* readRegular(file)
  if (Result.isFailure(read))
    return yield* refuse(`the patch of run ${run_id} cannot be read: ${file}: ${read.failure}`)
  const patch = read.success
  const tampered = refuse(
    `the patch of run ${run_id} is not what the run wrote: ${file} was changed, so it is not applied`
  )
  const expected = journalled(told)
  if (expected !== null && !sameBytes(expected, patch)) return yield* tampered
  const patch_digest = yield* digestOf(patch)
  const { finding, receipt } = yield* openFile(path.join(directory, artifactNames.receipt))
  const vouching = finding.status === "ok" ? receipt : null
  if (vouching !== null && vouching.patch.digest !== patch_digest) return yield* tampered
  const ended = told.state.ended?.terminal_reason ?? null
  const doubt =
    result.terminal_reason !== "verified"
      ? `it ended ${result.terminal_reason}`
      : expected === null
        ? "its journal does not hold the patch: an earlier version made it"
        : ended !== "verified"
          ? `its journal says ${ended === null ? "that it has not ended" : `that it ended ${ended}`}`
          : vouching === null
            ? `its receipt does not vouch for it: ${finding.message}`
            : vouching.verdict.terminal_reason !== "verified" || vouching.run_id !== run_id
              ? `its receipt says ${vouching.verdict.terminal_reason} of run ${vouching.run_id}`
              : yield* doubtRequest(directory, vouching.request_digest)
  const { base, instruction } = request.task
  const start = base.kind === "commit" ? base.commit : (told.state.prepared?.tree ?? null)
  if (start === null)
    return yield* refuse(`run ${run_id} does not say what it began from, so it cannot be applied`)
  const evidence: Evidence = {
    patch,
    patch_digest,
    request,
    instruction: told.instruction ?? instruction,
    doubt,
    source: {
      run_id,
      patch,
      base_commit: base.commit,
      base: start,
      tree: told.state.ended?.tree ?? result.tree,
      run_directory: directory
    }
  }
  return evidence
})
