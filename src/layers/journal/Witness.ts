/**
 * How far a journal went, by the files beside it.
 */
import { Effect, Result } from "effect"
import type { RunId } from "../../domain/Ids.ts"
import { openReceipt } from "../../domain/Receipt.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import type { StoreError } from "../../services/RunStore.ts"
import type { Head } from "./Cursor.ts"
import type { Disk } from "./Disk.ts"
import { receiptLimit } from "./Documents.ts"
import { sha256 } from "./Hash.ts"

/** Where the journal stood when the receipt of a run was made; null without one that is sound and this run's. */
const sealedHead = Effect.fnUntraced(function* (disk: Disk, directory: string, run_id: RunId) {
  const bytes = yield* disk.read(disk.path.join(directory, artifactNames.receipt), receiptLimit)
  if (bytes === null) return null
  const opened = openReceipt(bytes)
  if (Result.isFailure(opened)) return null
  const { receipt, unsealed } = opened.success
  if (receipt.run_id !== run_id || sha256(unsealed) !== receipt.receipt_digest) return null
  const { hash, sequence } = receipt.journal
  return { sequence, hash } satisfies Head
})

/**
 * The line that a run's journal must reach: the later one of what its manifest and its receipt say. A journal goes on
 * behind a receipt only after that one is taken away, so none is ever shorter than it says. Null: nobody knows.
 */
export const headOf = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  run_id: RunId,
  manifest: SessionManifest | null
): Effect.fn.Return<Head | null, StoreError> {
  const sealed = yield* sealedHead(disk, directory, run_id)
  const synced = manifest?.head ?? null
  if (sealed === null) return synced
  return synced !== null && synced.sequence >= sealed.sequence ? synced : sealed
})
