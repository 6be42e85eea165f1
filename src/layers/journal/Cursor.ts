/**
 * The lines of one journal file in order, checked against their chain: bounded, and never a write.
 */
import { Effect, Result, type Scope } from "effect"
import type { Digest } from "../../domain/Ids.ts"
import {
  decodeEvent,
  maxLineBytes,
  noLine,
  resolveReferences,
  type BlobRef,
  type LineFault
} from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import { StoreError, type StoredEntry } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { damaged, failAt } from "./Failure.ts"
import { sha256 } from "./Hash.ts"
import { newline, scan, type Scanned } from "./Scan.ts"

export const chunkBytes = 256 * 1024
const concurrency = 8

export type Head = SessionManifest["head"]
/** The head of an empty journal. */
export const noHead: Head = { sequence: -1, hash: noLine }

/** Where a reader stands: behind the last whole line that it has handed out. */
export interface Mark extends Head {
  /** Where that line ends, in bytes from the file's start. */
  readonly offset: number
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
  /** Types of events that nobody will look at: where a line is held by the one behind it, they come with null for
   * their data. Their blobs are read and checked like all others. */
  readonly aside: ReadonlySet<string>
  /** Told of each blob that a line needs, with its verified bytes. */
  readonly onBlob: (hash: Digest, bytes: Uint8Array) => Effect.Effect<void, StoreError>
}
export const everything: Wanted = {
  head: null,
  after: noHead,
  until: Number.MAX_SAFE_INTEGER,
  aside: new Set(),
  onBlob: () => Effect.void
}

const ended = (mark: Mark): Cursor => ({ next: Effect.succeed(null), mark: () => mark })

/**
 * Reads a file that begins behind `after`. With a head, the journal must reach it: one that is shorter has lost events
 * and fails with their number. An unfinished line behind the head is dropped; whatever else does not fit fails as
 * `damaged`, or as `newer_version`. Memory is bounded by a chunk, a line, and some blobs.
 */
export const openCursor = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  wanted: Wanted
): Effect.fn.Return<Cursor, StoreError, Scope.Scope> {
  const { after, head, onBlob, until } = wanted
  const file = disk.path.join(directory, artifactNames.events)
  const type = yield* disk.typeOf(file)
  // Its writer died between the manifest and the journal: nothing had happened yet.
  if (type === null && head?.sequence === -1) return ended({ ...noHead, offset: 0 })
  if (type !== "File") return yield* damaged(file, `no journal at ${file}`)
  const handle = yield* disk.open(file, "r")

  let { hash, sequence } = after
  let offset = 0
  const size = Number((yield* handle.stat.pipe(failAt(file))).size)
  /** Between `start` and `filled` it holds bytes that are read and not handed out. */
  let buffer = Buffer.alloc(Math.min(chunkBytes, Math.max(size, 1)))
  let start = 0
  let filled = 0
  let done = false
  let failure: StoreError | null = null

  const faulty = (fault: LineFault, number = sequence - after.sequence + 1): StoreError =>
    new StoreError({
      reason: fault.reason,
      path: file,
      message: `line ${number} of ${file} ${fault.message}`
    })

  /** The data of a line with the text of its blobs, of which several are read at once. */
  const resolve = ({ aside, envelope }: Scanned) => {
    const number = envelope.sequence - after.sequence
    const load = Effect.fnUntraced(function* (ref: BlobRef) {
      const blob = disk.path.join(directory, "blobs", ref.$blob)
      const bytes = yield* disk.read(blob, ref.bytes)
      if (bytes === null || bytes.length !== ref.bytes || sha256(bytes) !== ref.$blob)
        return yield* damaged(blob, `line ${number} of ${file} needs ${blob}, which is missing or changed`)
      yield* onBlob(ref.$blob, bytes)
      return bytes
    })
    return (
      aside === null
        ? resolveReferences(envelope.data, load)
        : Effect.as(Effect.forEach(aside, load, { discard: true }), null)
    ).pipe(Effect.mapError((error) => (error instanceof StoreError ? error : faulty(error, number))))
  }

  const take = (
    { aside, envelope, hash: digest, length }: Scanned,
    data: unknown
  ): StoredEntry | StoreError => {
    const { created_at, event_type } = envelope
    const event =
      aside === null ? decodeEvent({ ...envelope, data }) : Result.succeed({ event_type, data: null })
    if (Result.isFailure(event)) return faulty(event.failure)
    if (envelope.sequence === head?.sequence && digest !== head.hash)
      return damaged(
        file,
        `line ${envelope.sequence - after.sequence} of ${file} is not the one that was synced`
      )
    sequence = envelope.sequence
    hash = digest
    offset += length
    start += length
    done = sequence >= until
    return { sequence, created_at, hash, event: event.success }
  }

  /** Hands out whole lines of the buffer: none when there is no more, or when the first one fails. */
  const takeLines = Effect.gen(function* () {
    const { fault, lines } = scan(buffer.subarray(start, filled), { hash, sequence }, wanted)
    const resolved = new Map(
      yield* Effect.forEach(
        lines.filter(({ refers }) => refers),
        (line) => Effect.map(Effect.result(resolve(line)), (data) => [line, data] as const),
        { concurrency }
      )
    )
    const entries: Array<StoredEntry> = []
    for (const line of lines) {
      const data = resolved.get(line) ?? Result.succeed(line.envelope.data)
      const entry = Result.isSuccess(data) ? take(line, data.success) : data.failure
      if (entry instanceof StoreError) {
        failure = entry
        return entries
      }
      entries.push(entry)
    }
    if (fault !== null && !done) failure = faulty(fault)
    return entries
  })

  const finish = (): StoreError | null => {
    done = true
    const lost = (head?.sequence ?? -1) - sequence
    return lost > 0
      ? damaged(file, `${lost} event${lost === 1 ? " is" : "s are"} lost from the end of ${file}`)
      : null
  }

  const read = Effect.gen(function* () {
    buffer.copyWithin(0, start, filled)
    filled -= start
    start = 0
    if (filled > maxLineBytes) {
      failure = faulty({ reason: "damaged", message: "does not end" })
      return
    }
    if (filled === buffer.length) {
      const larger = Buffer.alloc(2 * filled)
      larger.set(buffer)
      buffer = larger
    }
    const count = yield* handle.read(buffer.subarray(filled)).pipe(failAt(file))
    filled += count
    if (count === 0) failure = finish()
  })

  const next: Cursor["next"] = Effect.gen(function* () {
    for (;;) {
      if (failure !== null) return yield* failure
      if (done) return null
      if (buffer.subarray(start, filled).includes(newline)) {
        const entries = yield* takeLines
        if (entries.length > 0) return entries
      } else yield* read
    }
  })

  return { next, mark: () => ({ sequence, hash, offset }) }
})
