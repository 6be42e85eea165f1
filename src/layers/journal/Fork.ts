/**
 * A new run from any event of another one, for the price of a few small files.
 */
import { DateTime, Effect } from "effect"
import type { RunEvent } from "../../domain/Event.ts"
import type { RunId } from "../../domain/Ids.ts"
import { decodeLine, encodeLine } from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import { takeHead } from "../../domain/Text.ts"
import { StoreError } from "../../services/RunStore.ts"
import { makeBlobs } from "./Adopt.ts"
import type { Place } from "./Bundles.ts"
import { demandDirectory, type Disk } from "./Disk.ts"
import { demandKnown, documents, noRequest } from "./Documents.ts"
import { failAt, invalid } from "./Failure.ts"
import { inNewDirectory, writeDurably } from "./Fill.ts"
import { sha256 } from "./Hash.ts"
import { findLine } from "./Lines.ts"
import { identityOf } from "./Manifest.ts"
import { forkPointOf } from "./Reader.ts"
import { manifestFile } from "./Writer.ts"

/** The run in whose own journal an event lies: a fork that was never worked on has its history elsewhere. */
const holderOf = Effect.fnUntraced(function* (disk: Disk, source: Place, sequence: number) {
  let { directory, run_id } = source
  for (;;) {
    const point = yield* forkPointOf(disk, directory)
    if (point === null || sequence >= point.sequence) return { directory, run_id }
    yield* demandDirectory(disk, point.source)
    directory = point.source
    run_id = point.data.source_run_id
  }
})

const noEvent = Effect.fnUntraced(function* (disk: Disk, { directory, run_id }: Place, sequence: number) {
  const { last } = yield* findLine(disk, directory, Number.MAX_SAFE_INTEGER)
  const there = last === -1 ? "its journal is empty" : `there are 0 to ${last}`
  return new StoreError({
    reason: "not_found",
    path: directory,
    message: `run ${run_id} has no event ${sequence}: ${there}`
  })
})

const lineOf = Effect.fnUntraced(function* (disk: Disk, source: Place, sequence: number) {
  if (!Number.isSafeInteger(sequence) || sequence < 0) return yield* yield* noEvent(disk, source, sequence)
  const holder = yield* holderOf(disk, source, sequence)
  const { line } = yield* findLine(disk, holder.directory, sequence)
  if (line === null) return yield* yield* noEvent(disk, source, sequence)
  const file = disk.path.join(holder.directory, artifactNames.events)
  const envelope = yield* Effect.fromResult(decodeLine(line.subarray(0, -1))).pipe(
    Effect.mapError(
      ({ message, reason }) =>
        new StoreError({ reason, path: file, message: `event ${sequence} of ${file} ${message}` })
    )
  )
  return { holder, hash: sha256(line), event_type: envelope.event_type }
})

/** The lines of a journal survive power loss, whether or not its own writer has come to a barrier. */
const syncJournal = (disk: Disk, directory: string) => {
  const file = disk.path.join(directory, artifactNames.events)
  return Effect.scoped(Effect.flatMap(disk.open(file, "r"), (handle) => handle.sync.pipe(failAt(file))))
}

/**
 * Makes a run whose journal begins behind event `sequence` of another one. `request.json` is written last: without it a
 * directory is no run, so whatever a crash leaves is none.
 */
export const fork = Effect.fnUntraced(function* (
  disk: Disk,
  root: string,
  source: Place,
  wanted: { readonly sequence: number; readonly run_id: RunId; readonly writer_token: string }
): Effect.fn.Return<{ readonly run_id: RunId; readonly directory: string }, StoreError> {
  const { path } = disk
  const { run_id, sequence, writer_token } = wanted
  if (source.directory !== path.join(root, source.run_id))
    return yield* invalid(
      source.directory,
      `only a run in ${root} can be forked: put ${source.directory} there as ${source.run_id} first, or name its run root`
    )
  const { event_type, hash, holder } = yield* lineOf(disk, source, sequence)
  const requestPath = path.join(source.directory, artifactNames.request)
  const request = yield* demandKnown(
    disk,
    source.directory,
    "request",
    yield* documents.request(disk, source.directory)
  )
  const requestBytes = yield* disk.read(requestPath, Number.MAX_SAFE_INTEGER)
  if (request === null || requestBytes === null) return yield* noRequest(requestPath)
  const manifest = yield* demandKnown(
    disk,
    source.directory,
    "session",
    yield* documents.session(disk, source.directory)
  )
  const created_at = DateTime.formatIso(yield* DateTime.now)
  const identity = { ...(manifest ?? identityOf(run_id, request, created_at)), run_id, created_at }
  const event: RunEvent = {
    event_type: "run.forked",
    data: {
      run_id,
      source_run_id: holder.run_id,
      fork_point_sequence: sequence,
      fork_point_event_type: takeHead(event_type, 200),
      base_sha: identity.base_sha
    }
  }
  const at = sequence + 1
  const { line } = yield* Effect.fromResult(
    encodeLine(sha256, { sequence: at, previous: hash, created_at }, event)
  ).pipe(Effect.orDie)
  const session = manifestFile({
    schema_version: 1,
    ...identity,
    writer_token,
    head: { sequence: at, hash: sha256(line) }
  })
  return yield* inNewDirectory(
    disk,
    root,
    run_id,
    Effect.fnUntraced(function* (directory) {
      if (manifest === null || sequence > manifest.head.sequence) yield* syncJournal(disk, holder.directory)
      yield* makeBlobs(disk, directory)
      yield* writeDurably(disk, path.join(directory, artifactNames.events), line)
      yield* writeDurably(disk, path.join(directory, artifactNames.session), session)
      yield* disk.syncDirectory(directory)
      yield* writeDurably(disk, path.join(directory, artifactNames.request), requestBytes)
      yield* disk.syncDirectory(directory)
      yield* disk.syncDirectory(root)
      return { run_id, directory }
    })
  )
})
