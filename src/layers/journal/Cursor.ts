/**
 * The lines of one journal file in order, checked against their chain: bounded, and never a write.
 */
import { Effect, Result, type Scope } from "effect"
import type { Digest } from "../../domain/Ids.ts"
import {
  decodeEvent,
  decodeLine,
  maxLineBytes,
  mayRefer,
  noLine,
  resolveReferences,
  type BlobRef,
  type Envelope,
  type LineFault
} from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import { StoreError, type StoredEntry } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { damaged, failAt } from "./Failure.ts"
import { sha256 } from "./Hash.ts"

export const chunkBytes = 256 * 1024
const newline = 0x0a

export type Head = SessionManifest["head"]
/** The head of an empty journal. */
export const noHead: Head = { sequence: -1, hash: noLine }

/** Where a reader stands: behind the last whole line that it has handed out. */
export interface Mark extends Head {
  /** Where that line ends, in bytes from the file's start. */
  readonly offset: number
  /** At the end of the file, the bytes behind it: the beginning of a line that was never finished. */
  readonly dropped: number
}

export interface Cursor {
  /** The next entries, at most a chunk's worth; null at the end. After a failure there is nothing more to read. */
  readonly next: Effect.Effect<ReadonlyArray<StoredEntry> | null, StoreError>
  /** Also after a failure. */
  readonly mark: () => Mark
}

export interface Wanted {
  /** The journal must reach it. */
  readonly head: Head | null
  /** The line that the file's first one follows. */
  readonly after: Head
  /** The last sequence to read. */
  readonly until: number
  /** Told of each blob that a line needs, with its verified bytes. */
  readonly onBlob: (hash: Digest, bytes: Uint8Array) => Effect.Effect<void, StoreError>
}
export const everything: Wanted = {
  head: null,
  after: noHead,
  until: Number.MAX_SAFE_INTEGER,
  onBlob: () => Effect.void
}

const ended = (mark: Mark): Cursor => ({ next: Effect.succeed(null), mark: () => mark })

/**
 * Reads a file that begins behind `after`. With a head, the journal must reach it: one that is shorter has lost events
 * and fails with their number. An unfinished line behind the head is dropped; whatever else does not fit fails as
 * `damaged`, or as `newer_version`. Memory is bounded by a chunk and a line.
 */
export const openCursor = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  { after, head, onBlob, until }: Wanted
): Effect.fn.Return<Cursor, StoreError, Scope.Scope> {
  const file = disk.path.join(directory, artifactNames.events)
  const type = yield* disk.typeOf(file)
  // Its writer died between the manifest and the journal: nothing had happened yet.
  if (type === null && head?.sequence === -1) return ended({ ...noHead, offset: 0, dropped: 0 })
  if (type !== "File") return yield* damaged(file, `no journal at ${file}`)
  const handle = yield* disk.open(file, "r")

  let { hash, sequence } = after
  let offset = 0
  const size = Number((yield* handle.stat.pipe(failAt(file))).size)
  /** Holds `filled` bytes that are read and not handed out, from its start on. */
  let buffer: Uint8Array = new Uint8Array(Math.min(chunkBytes, Math.max(size, 1)))
  let filled = 0
  let done = false
  let failure: StoreError | null = null

  const number = () => sequence - after.sequence + 1
  const faulty = (fault: LineFault): StoreError =>
    new StoreError({
      reason: fault.reason,
      path: file,
      message: `line ${number()} of ${file} ${fault.message}`
    })

  const load = Effect.fnUntraced(function* (ref: BlobRef) {
    const blob = disk.path.join(directory, "blobs", ref.$blob)
    const bytes = yield* disk.read(blob, ref.bytes)
    if (bytes === null || bytes.length !== ref.bytes || sha256(bytes) !== ref.$blob)
      return yield* damaged(blob, `line ${number()} of ${file} needs ${blob}, which is missing or changed`)
    yield* onBlob(ref.$blob, bytes)
    return bytes
  })

  const envelopeOf = (line: Uint8Array): Result.Result<Envelope, StoreError> => {
    const envelope = Result.mapError(decodeLine(line.subarray(0, -1)), faulty)
    if (Result.isFailure(envelope)) return envelope
    return envelope.success.sequence === sequence + 1 && envelope.success.previous === hash
      ? envelope
      : Result.fail(faulty({ reason: "damaged", message: "does not follow the line before it" }))
  }
  const entryOf = (line: Uint8Array, envelope: Envelope): Result.Result<StoredEntry, StoreError> => {
    const event = Result.mapError(decodeEvent(envelope), faulty)
    if (Result.isFailure(event)) return Result.fail(event.failure)
    const digest = sha256(line)
    if (envelope.sequence === head?.sequence && digest !== head.hash)
      return Result.fail(damaged(file, `line ${number()} of ${file} is not the one that was synced`))
    hash = digest
    sequence = envelope.sequence
    offset += line.length
    return Result.succeed({ sequence, created_at: envelope.created_at, hash, event: event.success })
  }
  const readLine = (line: Uint8Array): Result.Result<StoredEntry, StoreError> =>
    Result.flatMap(envelopeOf(line), (envelope) => entryOf(line, envelope))
  const readReferring = Effect.fnUntraced(function* (line: Uint8Array) {
    const envelope = yield* Effect.fromResult(envelopeOf(line))
    const data = yield* resolveReferences(envelope.data, load).pipe(
      Effect.mapError((error) => (error instanceof StoreError ? error : faulty(error)))
    )
    return yield* Effect.fromResult(entryOf(line, { ...envelope, data }))
  })

  const finish = (): StoreError | null => {
    done = true
    const lost = (head?.sequence ?? -1) - sequence
    return lost > 0
      ? damaged(file, `${lost} event${lost === 1 ? " is" : "s are"} lost from the end of ${file}`)
      : null
  }

  /** Hands out the whole lines of the buffer and moves what is left to its start. */
  const takeLines = Effect.gen(function* () {
    const entries: Array<StoredEntry> = []
    const bytes = buffer.subarray(0, filled)
    let from = 0
    for (let to = bytes.indexOf(newline); to !== -1 && !done; to = bytes.indexOf(newline, from)) {
      const line = bytes.subarray(from, to + 1)
      const entry = mayRefer(line) ? yield* Effect.result(readReferring(line)) : readLine(line)
      if (Result.isFailure(entry)) {
        failure = entry.failure
        break
      }
      entries.push(entry.success)
      from = to + 1
      done = sequence >= until
    }
    buffer.copyWithin(0, from, filled)
    filled -= from
    if (failure === null && filled > maxLineBytes)
      failure = faulty({ reason: "damaged", message: "does not end" })
    return entries
  })

  const next: Cursor["next"] = Effect.gen(function* () {
    for (;;) {
      if (failure !== null) return yield* failure
      if (done) return null
      if (filled === buffer.length) {
        const larger = new Uint8Array(2 * filled)
        larger.set(buffer)
        buffer = larger
      }
      const count = yield* handle.read(buffer.subarray(filled)).pipe(failAt(file))
      if (count === 0) {
        failure = finish()
        continue
      }
      filled += count
      const entries = yield* takeLines
      if (entries.length > 0) return entries
    }
  })

  return { next, mark: () => ({ sequence, hash, offset, dropped: filled }) }
})
