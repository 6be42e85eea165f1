/**
 * The bytes of a journal line, and back. A line is an envelope around one event: compact JSON in UTF-8, keys in a fixed
 * order, ended by a newline. Text over a bound is kept beside the journal, in a blob named after the SHA-256 of its
 * bytes, and `{"$blob": hash, "bytes": n}` stands for it; `"json": true` says that the blob holds JSON text, not the
 * text itself. An object of the event's own that has a key `$blob` or `$literal` is wrapped in `{"$literal": …}`.
 */
import { Effect, Result, Schema } from "effect"
import { EntryHeader, isKnownType, RunEvent, type JournalEntry, type UnknownEvent } from "./Event.ts"
import { Digest } from "./Ids.ts"
import { isRecord, type JsonRecord } from "./Json.ts"
import { fits } from "./Text.ts"

/** Of one string, in UTF-8 bytes: a longer one goes to a blob. */
export const maxInlineBytes = 16 * 1024
/** Of an event's data as JSON, in UTF-16 units: a longer one goes to a blob as a whole. */
const maxDataLength = 512 * 1024
/** No line is longer, in bytes, its newline included. */
export const maxLineBytes = 2 * 1024 * 1024

/** `previous` of the first line, and the head of an empty journal. */
export const noLine: Digest = Digest.make("0".repeat(64))

/** SHA-256. */
export type Hash = (bytes: Uint8Array) => Digest

export interface Blob {
  readonly hash: Digest
  readonly bytes: Uint8Array
}

export const BlobRef = Schema.Struct({
  $blob: Digest,
  bytes: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  json: Schema.optionalKey(Schema.Literal(true))
})
export type BlobRef = typeof BlobRef.Type

/** One line of `events.jsonl`, and of `--output jsonl`, where no blobs are used. */
export const JournalLine = Schema.Union(
  RunEvent.members.map((member) => Schema.Struct({ ...EntryHeader.fields, ...member.fields }))
)

/** The envelope of any line, also one whose event this version does not know. */
const Envelope = Schema.Struct({ ...EntryHeader.fields, event_type: Schema.String, data: Schema.Unknown })
export type Envelope = typeof Envelope.Type
const isEnvelope = Schema.is(Envelope)
const encodeRunEvent = Schema.encodeResult(RunEvent)
const decodeRunEvent = Schema.decodeUnknownResult(RunEvent)

/** Why bytes are no line of a journal that this version reads. */
export interface LineFault {
  readonly reason: "damaged" | "newer_version"
  /** What is wrong with the line, without saying which line it is. */
  readonly message: string
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** For text that may be cut off within a character. */
const lenient = new TextDecoder("utf-8", { ignoreBOM: true })

const isReserved = (value: JsonRecord): boolean =>
  Object.hasOwn(value, "$blob") || Object.hasOwn(value, "$literal")

const mapValues = (value: JsonRecord, f: (value: unknown) => unknown): JsonRecord =>
  Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, f(inner)]))

/** Moves long strings of a JSON value to blobs and wraps objects that look like references. */
const externalise = (value: unknown, keep: (text: string, json: boolean) => BlobRef): unknown => {
  const visit = (value: unknown): unknown => {
    if (typeof value === "string") {
      // A string of lone surrogates has no UTF-8 form, so its JSON text is kept instead.
      if (fits(value, maxInlineBytes)) return value
      return value.isWellFormed() ? keep(value, false) : keep(JSON.stringify(value), true)
    }
    if (Array.isArray(value)) return value.map(visit)
    if (!isRecord(value)) return value
    const mapped = mapValues(value, visit)
    return isReserved(mapped) ? { $literal: mapped } : mapped
  }
  return visit(value)
}

/** The line of an event and the blobs that it refers to, which must be durable before the line is written. */
export const encodeLine = (
  hash: Hash,
  header: Omit<EntryHeader, "version">,
  event: RunEvent
): Result.Result<{ readonly line: Uint8Array; readonly blobs: ReadonlyArray<Blob> }, Schema.SchemaError> =>
  Result.map(encodeRunEvent(event), (encoded) => {
    const blobs: Array<Blob> = []
    const keep = (text: string, json: boolean): BlobRef => {
      const bytes = encoder.encode(text)
      const digest = hash(bytes)
      blobs.push({ hash: digest, bytes })
      return { $blob: digest, bytes: bytes.length, ...(json ? { json } : {}) }
    }
    let data = JSON.stringify(encoded.data)
    if (data.length * 3 > maxInlineBytes || data.includes('"$'))
      data = JSON.stringify(externalise(encoded.data, keep))
    if (data.length > maxDataLength) data = JSON.stringify(keep(data, true))
    const { created_at, previous, sequence } = header
    const head = JSON.stringify({ version: 1, sequence, previous, created_at, event_type: event.event_type })
    return { line: encoder.encode(`${head.slice(0, -1)},"data":${data}}\n`), blobs }
  })

/** An entry as one flat object: what `JournalLine` describes. */
export const toLine = ({ event, ...header }: JournalEntry): typeof JournalLine.Type => ({
  version: header.version,
  sequence: header.sequence,
  previous: header.previous,
  created_at: header.created_at,
  ...event
})

const fault = (reason: LineFault["reason"], message: string) => Result.fail<LineFault>({ reason, message })

/** Reads a line without its newline. References in `data` are not resolved yet. */
export const decodeLine = (bytes: Uint8Array): Result.Result<Envelope, LineFault> => {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch {
    return fault("damaged", "is no JSON in UTF-8")
  }
  if (isRecord(value) && typeof value["version"] === "number" && value["version"] > 1)
    return fault(
      "newer_version",
      `is of journal version ${value["version"]}, and this looplane reads version 1`
    )
  return isEnvelope(value) ? Result.succeed(value) : fault("damaged", "is no entry of a journal")
}

/** What a line says before its data. */
export type Heading = Omit<Envelope, "data">

/** Longer than what `encodeLine` writes before an event's data. */
const headingBytes = 256
const headingPattern =
  /^\{"version":1,"sequence":(\d{1,15}),"previous":"([0-9a-f]{64})","created_at":"([\w.:-]*)","event_type":"([\w.]*)","data":\{/
const isDigest = Schema.is(Digest)

/** The heading of a line that has the form of `encodeLine`, without reading on; null for any other. */
export const headingOf = (bytes: Uint8Array): Heading | null => {
  const found = headingPattern.exec(lenient.decode(bytes.subarray(0, headingBytes)))
  const [, sequence, previous, created_at = "", event_type = ""] = found ?? []
  return isDigest(previous)
    ? { version: 1, sequence: Number(sequence), previous, created_at, event_type }
    : null
}

/** The event of a line whose data is resolved. Types that this version does not know are kept as they are. */
export const decodeEvent = ({
  data,
  event_type
}: Envelope): Result.Result<RunEvent | UnknownEvent, LineFault> =>
  isKnownType(event_type)
    ? Result.mapError(decodeRunEvent({ event_type, data }), () => ({
        reason: "damaged",
        message: `is no ${event_type} that this looplane understands`
      }))
    : Result.succeed({ event_type, data })

const isBlobRef = Schema.is(BlobRef)

/** The references in a value, each once, by what they stand for. Reserved objects that are neither reference nor literal are faults. */
export const referencesOf = (value: unknown): Result.Result<ReadonlyMap<string, BlobRef>, LineFault> => {
  const found = new Map<string, BlobRef>()
  let broken = false
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (!isRecord(value)) return
    if (!isReserved(value)) return Object.values(value).forEach(visit)
    const literal = value["$literal"]
    if (isBlobRef(value)) found.set(keyOf(value), value)
    else if (isRecord(literal) && Object.keys(value).length === 1) Object.values(literal).forEach(visit)
    else broken = true
  }
  visit(value)
  return broken ? fault("damaged", "holds a reference that is none") : Result.succeed(found)
}

const keyOf = (ref: BlobRef): string => `${ref.$blob}${ref.json === true ? " json" : ""}`

const substitute = (value: unknown, resolved: ReadonlyMap<string, unknown>): unknown => {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (!isRecord(value)) return value
    if (isBlobRef(value)) return resolved.get(keyOf(value))
    const literal = value["$literal"]
    return mapValues(isRecord(literal) ? literal : value, visit)
  }
  return visit(value)
}

/** Puts the text of blobs where their references are. `load` yields the verified bytes of a blob. */
export const resolveReferences = <E>(
  data: unknown,
  load: (ref: BlobRef) => Effect.Effect<Uint8Array, E>
): Effect.Effect<unknown, E | LineFault> =>
  Effect.gen(function* () {
    const references = yield* Effect.fromResult(referencesOf(data))
    const resolved = new Map<string, unknown>()
    for (const [key, ref] of references) {
      const bytes = yield* load(ref)
      const text = yield* Effect.try({
        try: () => decoder.decode(bytes),
        catch: (): LineFault => ({
          reason: "damaged",
          message: `refers to blob ${ref.$blob}, which is no text`
        })
      })
      if (ref.json !== true) {
        resolved.set(key, text)
        continue
      }
      const json: unknown = yield* Effect.try({
        try: (): unknown => JSON.parse(text),
        catch: (): LineFault => ({
          reason: "damaged",
          message: `refers to blob ${ref.$blob}, which is no JSON`
        })
      })
      resolved.set(key, yield* resolveReferences(json, load))
    }
    return substitute(data, resolved)
  })

/** Whether a line may hold references or literals: a cheap look at its bytes' text. */
export const mayRefer = (bytes: Uint8Array): boolean => {
  for (let at = bytes.indexOf(0x24); at !== -1; at = bytes.indexOf(0x24, at + 1))
    if (bytes[at - 1] === 0x22) return true
  return false
}
