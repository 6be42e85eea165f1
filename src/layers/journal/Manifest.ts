/**
 * The identity of a run: from its manifest, or from the journal when that is gone.
 */
import { Effect, Result, Schema, Stream } from "effect"
import type { RunId } from "../../domain/Ids.ts"
import { RunCreated, RunForked } from "../../domain/Event.ts"
import type { RunRequest } from "../../domain/Request.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import type { StoredEntry, StoreError } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { documents, valueOf } from "./Documents.ts"
import { entriesOf } from "./Reader.ts"

/** Everything of a manifest that its journal and request know as well. */
export type Identity = Pick<
  SessionManifest,
  "run_id" | "provider" | "model" | "prompt_version" | "base_sha" | "created_at"
>

const decode = Schema.decodeUnknownResult(Schema.Union([RunCreated, RunForked]))

/** What an entry says about whose journal this is. A fork takes the name over from the run that it began in. */
export const identityAfter = (
  before: Identity | null,
  { created_at, event }: StoredEntry
): Identity | null => {
  if (event.event_type !== "run.created" && event.event_type !== "run.forked") return before
  const decoded = decode(event)
  if (Result.isFailure(decoded)) return before
  const { data, event_type } = decoded.success
  if (event_type === "run.created") {
    const { base_sha, model, prompt_version, provider, run_id } = data
    return { run_id, provider, model, prompt_version, base_sha, created_at }
  }
  const { base_sha, run_id } = data
  return before === null ? null : { ...before, run_id, base_sha, created_at }
}

/** The identity of a run that nothing is written of yet but what it was asked for. */
export const identityOf = (run_id: RunId, request: RunRequest, created_at: string): Identity => {
  const [{ model, provider }] = request.models
  const { prompt_version, task } = request
  return { run_id, provider, model, prompt_version, base_sha: task.base.commit, created_at }
}

/** The id of the run in a directory of any name; null when there is no run. */
export const runIdIn = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string
): Effect.fn.Return<RunId | null, StoreError> {
  const manifest = valueOf(yield* documents.session(disk, directory))
  if (manifest !== null) return manifest.run_id
  let found: Identity | null = null
  yield* entriesOf(disk, directory, null).pipe(
    Stream.runForEach((entry) =>
      Effect.sync(() => {
        found = identityAfter(found, entry)
      })
    ),
    // As far as it can be read.
    Effect.ignore
  )
  const identity: Identity | null = found
  return identity === null ? null : identity["run_id"]
})
