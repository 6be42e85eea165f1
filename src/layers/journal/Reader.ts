/**
 * The reading side of a run: bounded, chain-checked, and never a write.
 */
import { Effect, Option, Result, Stream } from "effect"
import type { RunEvent, UnknownEvent } from "../../domain/Event.ts"
import type { Digest } from "../../domain/Ids.ts"
import {
  decodeEvent,
  decodeLine,
  maxLineBytes,
  mayRefer,
  noLine,
  resolveReferences,
  type BlobRef,
  type LineFault
} from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import { StoreError } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"
import { sha256 } from "./Hash.ts"

const chunkBytes = 1024 * 1024
const newline = 0x0a

export type JournalItem =
  | {
      readonly _tag: "Entry"
      readonly sequence: number
      readonly created_at: string
      /** SHA-256 of the line's bytes, its newline included. */
      readonly hash: Digest
      readonly event: RunEvent | UnknownEvent
    }
  | {
      readonly _tag: "End"
      /** Of the last line; -1 when there is none. */
      readonly sequence: number
      readonly hash: Digest
      /** Where the last whole line ends, in bytes. */
      readonly offset: number
      /** Bytes behind it: the beginning of a line that was never finished. */
      readonly dropped: number
    }

const damaged = (file: string, message: string, cause?: unknown): StoreError =>
  new StoreError({ reason: "damaged", path: file, message, ...(cause === undefined ? {} : { cause }) })

/**
 * The entries of a run's journal in order, checked against their chain, then one `End`. With a head, the journal must
 * reach it: a journal that is shorter has lost events and fails with their number. An unfinished line behind the head is
 * dropped; whatever else does not fit fails as `damaged`, or as `newer_version`. Memory is bounded by a chunk and a line.
 */
export const readJournal = (
  disk: Disk,
  directory: string,
  head: SessionManifest["head"] | null
): Stream.Stream<JournalItem, StoreError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const file = disk.path.join(directory, artifactNames.events)
      const type = yield* disk.typeOf(file)
      // Its writer died between the manifest and the journal: nothing had happened yet.
      if (type === null && head?.sequence === -1)
        return Stream.make<[JournalItem]>({ _tag: "End", sequence: -1, hash: noLine, offset: 0, dropped: 0 })
      if (type !== "File") return yield* damaged(file, `no journal at ${file}`)
      const handle = yield* disk.open(file, "r")

      let sequence = -1
      let hash = noLine
      let offset = 0
      /** The beginning of a line whose end is not read yet. */
      let rest: Uint8Array = new Uint8Array()
      let ended = false

      const faulty = (fault: LineFault): StoreError =>
        new StoreError({
          reason: fault.reason,
          path: file,
          message: `line ${sequence + 2} of ${file} ${fault.message}`
        })

      const load = Effect.fnUntraced(function* (ref: BlobRef) {
        const blob = disk.path.join(directory, "blobs", ref.$blob)
        const bytes = yield* disk.read(blob, ref.bytes)
        if (bytes === null || bytes.length !== ref.bytes || sha256(bytes) !== ref.$blob)
          return yield* damaged(
            blob,
            `line ${sequence + 2} of ${file} needs ${blob}, which is missing or changed`
          )
        return bytes
      })

      const readLine = Effect.fnUntraced(function* (line: Uint8Array) {
        const envelope = yield* Effect.fromResult(Result.mapError(decodeLine(line.subarray(0, -1)), faulty))
        if (envelope.sequence !== sequence + 1 || envelope.previous !== hash)
          return yield* faulty({ reason: "damaged", message: "does not follow the line before it" })
        const data = mayRefer(line)
          ? yield* resolveReferences(envelope.data, load).pipe(
              Effect.mapError((error) => (error instanceof StoreError ? error : faulty(error)))
            )
          : envelope.data
        const event = yield* Effect.fromResult(Result.mapError(decodeEvent({ ...envelope, data }), faulty))
        hash = sha256(line)
        sequence = envelope.sequence
        offset += line.length
        if (sequence === head?.sequence && hash !== head.hash)
          return yield* damaged(file, `line ${sequence + 1} of ${file} is not the one that was synced`)
        const { created_at } = envelope
        return { _tag: "Entry", sequence, created_at, hash, event } satisfies JournalItem
      })

      const finish = Effect.suspend(() => {
        ended = true
        const lost = (head?.sequence ?? -1) - sequence
        return lost > 0
          ? Effect.fail(
              damaged(file, `${lost} event${lost === 1 ? " is" : "s are"} lost from the end of ${file}`)
            )
          : Effect.succeed<ReadonlyArray<JournalItem>>([
              { _tag: "End", sequence, hash, offset, dropped: rest.length }
            ])
      })

      const next = Effect.gen(function* () {
        const chunk = yield* handle.readAlloc(chunkBytes).pipe(failAt(file))
        if (Option.isNone(chunk)) return yield* finish
        const bytes = rest.length === 0 ? chunk.value : Buffer.concat([rest, chunk.value])
        const items: Array<JournalItem> = []
        let from = 0
        for (let to = bytes.indexOf(newline); to !== -1; to = bytes.indexOf(newline, from)) {
          items.push(yield* readLine(bytes.subarray(from, to + 1)))
          from = to + 1
        }
        rest = bytes.subarray(from)
        if (rest.length > maxLineBytes) return yield* faulty({ reason: "damaged", message: "does not end" })
        return items
      })

      return Stream.paginate(null, () =>
        Effect.map(next, (items) => [items, ended ? Option.none() : Option.some(null)] as const)
      )
    })
  )
