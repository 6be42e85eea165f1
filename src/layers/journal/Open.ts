/**
 * Takes a run over from the process that wrote it before.
 */
import { DateTime, Effect, type Scope } from "effect"
import { storeVersion } from "../../domain/Event.ts"
import { artifactNames } from "../../domain/Result.ts"
import { StoreError, type TakenOver } from "../../services/RunStore.ts"
import { adopt, makeBlobs } from "./Adopt.ts"
import { summarise, type Place } from "./Bundles.ts"
import { noHead, type Head } from "./Cursor.ts"
import type { Disk } from "./Disk.ts"
import { demandKnown, documents, noRequest } from "./Documents.ts"
import { damaged } from "./Failure.ts"
import { foldJournal, type Folded } from "./Fold.ts"
import { identityOf } from "./Manifest.ts"
import { forkPointOf } from "./Reader.ts"
import { keepEvidence, removeEvidence } from "./Evidence.ts"
import { cutAt, keepLost, linesBehind, lostName, removeTemporaries } from "./Repair.ts"
import { headOf } from "./Witness.ts"
import { manifestFile, openJournal } from "./Writer.ts"

export interface Takeover {
  readonly accept_loss: boolean
  /** A new one: whoever wrote the run before stops at its next barrier. */
  readonly writer_token: string
}

/** A journal that is no file at all has lost everything that its head says. */
const foldWhatIsThere = Effect.fnUntraced(function* (disk: Disk, directory: string, head: Head | null) {
  const file = disk.path.join(directory, artifactNames.events)
  if ((yield* disk.typeOf(file)) !== null) return yield* foldJournal(disk, directory, head)
  const nothing = yield* foldJournal(disk, directory, noHead)
  const lost = (head?.sequence ?? -1) + 1
  if (lost === 0) return nothing
  const failure = damaged(file, `${lost} event${lost === 1 ? " is" : "s are"} lost: there is no ${file}`)
  return { ...nothing, failure } satisfies Folded
})

/** To say no, as much of a damaged tail is counted as takes no time, in bytes. */
const maxCounted = 64 * 1024 * 1024

/** Events that are lost for good, when the user goes on without them; `more`: at least so many. */
const lossOf = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  head: Head | null,
  folded: Folded,
  limit: number
) {
  const { failure, mark } = folded
  if (failure === null) return { lost: 0, more: false }
  const file = disk.path.join(directory, artifactNames.events)
  const { lines, more } = yield* linesBehind(disk, file, mark.offset, limit)
  return { lost: Math.max(1, lines, (head?.sequence ?? -1) - mark.sequence), more }
})

const refuseLoss = (failure: StoreError, lost: number, more: boolean): StoreError =>
  new StoreError({
    reason: "damaged",
    path: failure.path,
    message: `${failure.message}; --accept-loss goes on with what is left, without ${more ? "at least " : ""}${lost === 1 ? "1 event" : `${lost} events`} (what can be kept of them goes to ${lostName})`
  })

/** The run's lock is held. Everything is read and judged before anything is written. */
export const takeOver = Effect.fnUntraced(function* (
  disk: Disk,
  place: Place,
  { accept_loss, writer_token }: Takeover
): Effect.fn.Return<TakenOver, StoreError, Scope.Scope> {
  const { path } = disk
  const { directory, run_id } = place
  const request = yield* demandKnown(disk, directory, "request", yield* documents.request(disk, directory))
  if (request === null) return yield* noRequest(path.join(directory, artifactNames.request))
  const found = yield* demandKnown(disk, directory, "session", yield* documents.session(disk, directory))
  // A result that this version cannot read must not be replaced by one of its own.
  yield* demandKnown(disk, directory, "result", yield* documents.result(disk, directory))
  const head = yield* headOf(disk, directory, run_id, found)
  if ((yield* forkPointOf(disk, directory)) !== null) yield* adopt(disk, directory, head)
  const folded = yield* foldWhatIsThere(disk, directory, head)
  const { failure, mark, state, time } = folded
  const limit = accept_loss ? Number.MAX_SAFE_INTEGER : maxCounted
  const { lost, more } = yield* lossOf(disk, directory, head, folded, limit)
  if (failure !== null && !accept_loss) return yield* refuseLoss(failure, lost, more)

  const now = DateTime.formatIso(yield* DateTime.now)
  const identity = found ?? folded.identity ?? identityOf(run_id, request, now)
  const { base_sha, created_at, model, prompt_version, provider } = identity
  yield* removeTemporaries(disk, directory)
  yield* makeBlobs(disk, directory)
  if (failure !== null) yield* keepLost(disk, directory, mark.offset)
  // Lines behind the head may not be durable yet, and a head must never lead them.
  yield* cutAt(disk, directory, mark.offset)
  const position = { sequence: mark.sequence, hash: mark.hash }
  const manifest = {
    schema_version: 1,
    run_id: identity.run_id,
    provider,
    model,
    prompt_version,
    base_sha,
    created_at,
    writer_token,
    head: position
  } as const
  yield* disk.replace(path.join(directory, artifactNames.session), manifestFile(manifest), { synced: true })
  yield* disk.syncDirectory(directory)
  // Evidence of an end that is not the run's, or will not be. What is lost from the journal may be in it alone, and it
  // says how much that is: until it is put aside, whoever comes next is told.
  if (lost > 0) yield* keepEvidence(disk, directory)
  else if (state.ended === null) yield* removeEvidence(disk, directory)

  const journal = yield* openJournal({
    disk,
    directory,
    manifest,
    from: { ...position, state },
    flag: "a"
  })
  // Its first writer died before anything was durable: the run begins now.
  if (mark.sequence === -1)
    yield* journal.append({
      event_type: "run.created",
      data: {
        run_id: identity.run_id,
        provider,
        model,
        prompt_version,
        base_sha,
        sandbox: request.sandbox,
        store_version: storeVersion
      }
    })
  const { missing } = yield* summarise(disk, place)
  return {
    journal,
    request,
    active_ms: time.active_ms,
    complete: state.ended !== null && missing.length === 0,
    discard: removeEvidence(disk, directory),
    lost
  }
})
