/**
 * Whole lines of a buffer and how they hang together, before any blob is read and any event understood.
 */
import { Result } from "effect"
import type { Digest } from "../../domain/Ids.ts"
import {
  decodeLine,
  headingOf,
  mayRefer,
  referencesOf,
  type BlobRef,
  type Envelope,
  type LineFault
} from "../../domain/JournalCodec.ts"
import { sha256 } from "./Hash.ts"

export const newline = 0x0a
/** Lines are scanned until they need so many bytes of blobs. */
const enoughBytes = 4 * 1024 * 1024

export interface Scanned {
  /** References in its data are not resolved yet. Set aside, its data is null. */
  readonly envelope: Envelope
  readonly hash: Digest
  /** In bytes, the newline included. */
  readonly length: number
  /** Whether its data has references or literals. */
  readonly refers: boolean
  /** Of a line that is set aside, the blobs that it needs; null for any other line. */
  readonly aside: ReadonlyArray<BlobRef> | null
}

export interface Scanning {
  /** The last sequence that is wanted. */
  readonly until: number
  /** Types of events that are set aside where the next line holds the line. */
  readonly aside: ReadonlySet<string>
}

/** The blobs of a line that nobody reads; null when they have to be read to know which others they need. */
const blobsOf = (data: unknown): ReadonlyArray<BlobRef> | null => {
  const found = Result.map(referencesOf(data), (references) => [...references.values()])
  return Result.isSuccess(found) && found.success.every((ref) => ref.json !== true) ? found.success : null
}

const needed = (data: unknown): number =>
  Result.match(referencesOf(data), {
    onFailure: () => 0,
    onSuccess: (references) => [...references.values()].reduce((sum, ref) => sum + ref.bytes, 0)
  })

/** The lines that follow the one before in the chain, as far as they do, and what is wrong with the next one. */
export const scan = (
  bytes: Buffer,
  before: { readonly sequence: number; readonly hash: Digest },
  { aside, until }: Scanning
): { readonly lines: ReadonlyArray<Scanned>; readonly fault: LineFault | null } => {
  const lines: Array<Scanned> = []
  const heading = (at: number) => (aside.size === 0 ? null : headingOf(bytes.subarray(at)))
  let { hash, sequence } = before
  let start = 0
  let wanted = 0
  let own = heading(0)
  while (wanted < enoughBytes && sequence < until) {
    const end = bytes.indexOf(newline, start) + 1
    if (end === 0) break
    const line = bytes.subarray(start, end)
    const digest = sha256(line)
    const next = heading(end)
    const held = own !== null && aside.has(own.event_type) && next?.previous === digest ? own : null
    const refers = mayRefer(line)
    const decoded: Result.Result<Envelope, LineFault> =
      held !== null && !refers ? Result.succeed({ ...held, data: null }) : decodeLine(line.subarray(0, -1))
    if (Result.isFailure(decoded)) return { lines, fault: decoded.failure }
    const envelope = decoded.success
    if (envelope.sequence !== sequence + 1 || envelope.previous !== hash)
      return { lines, fault: { reason: "damaged", message: "does not follow the line before it" } }
    const blobs = held !== null ? (refers ? blobsOf(envelope.data) : []) : null
    if (refers && blobs === null) wanted += needed(envelope.data)
    lines.push({
      envelope: blobs === null ? envelope : { ...envelope, data: null },
      hash: digest,
      length: line.length,
      refers,
      aside: blobs
    })
    hash = digest
    sequence = envelope.sequence
    start = end
    own = next
  }
  return { lines, fault: null }
}
