/**
 * A run as a recording: read from the store, or from a file that was carried here.
 */
import { Effect, Schema, Stream } from "effect"
import type { Digest as Digests } from "effect/crypto"
import { Digest } from "../domain/Ids.ts"
import { isRecord, list, parse, record } from "../domain/Json.ts"
import { portable, type RecordedEntry, type Recording } from "../domain/Recording.ts"
import {
  entryText,
  headText,
  RecordingError,
  RecordingFile,
  recordingFormat,
  recordingVersion
} from "../domain/RecordingFile.ts"
import { refuse, type Refusal } from "../domain/Refusal.ts"
import { RunStore, type StoreError } from "../services/RunStore.ts"
import { digestOf } from "./MakeReceipt.ts"

/** The run that an id, the beginning of one, "last" or a path means, up to its last event. Nothing is written. */
export const recordingOf = Effect.fn("Record.recordingOf")(function* (
  run: string
): Effect.fn.Return<Recording, StoreError | Refusal, RunStore> {
  const store = yield* RunStore
  const { directory, request, run_id } = yield* store.find(run)
  if (request === null)
    return yield* refuse(
      `run ${run_id} cannot be repeated: its request.json is missing or cannot be read (${directory})`
    )
  const entries = yield* store.entries(directory).pipe(
    Stream.map(({ created_at, event, sequence }): RecordedEntry => ({ sequence, created_at, event })),
    Stream.runCollect
  )
  if (entries.length === 0) return yield* refuse(`run ${run_id} has no events yet (${directory})`)
  return { run_id, request, entries }
})

const encodeFile = Schema.encodeEffect(RecordingFile)
const zero = Digest.make("0".repeat(64))

/** A text of a value that is nested some thousand levels deep cannot be written. */
const hashOf = (text: () => string) =>
  Effect.try({
    try: text,
    catch: () => new RecordingError({ reason: "unsound", sequence: null, message: "it is nested too deeply" })
  }).pipe(Effect.flatMap(digestOf))

/** The hashes that the head of a file and its entries should have, in their order. */
const hashesOf = Effect.fnUntraced(function* (
  file: Readonly<Record<string, unknown>>,
  entries: ReadonlyArray<unknown>
) {
  const head = yield* hashOf(() => headText(file))
  let previous = head
  const hashes: Array<Digest> = []
  for (const entry of entries) {
    const after = previous
    previous = yield* hashOf(() => entryText(after, record(entry)))
    hashes.push(previous)
  }
  return { head, hashes }
})

/** What a portable file holds, as JSON: see `portable`, and `RecordingFile` for the hashes. */
export const recordingFile = Effect.fn("Record.recordingFile")(function* (recording: Recording) {
  const { entries, request, run_id } = portable(recording)
  const bare = record(
    yield* encodeFile({
      format: recordingFormat,
      version: recordingVersion,
      run_id,
      events: entries.length,
      hash: zero,
      request,
      entries: entries.map(({ created_at, event, sequence }) => ({ sequence, created_at, event, hash: zero }))
    })
  )
  const unsealed = list(bare["entries"])
  const { head, hashes } = yield* hashesOf(bare, unsealed)
  return {
    ...bare,
    hash: head,
    entries: unsealed.map((entry, index) => {
      const { created_at, event, sequence } = record(entry)
      return { sequence, created_at, event, hash: hashes[index] }
    })
  }
})

const changed = (sequence: number | null, message: string): RecordingError =>
  new RecordingError({ reason: "changed", sequence, message })

/** Fails at the first part of a file that is not what was written. */
const demandUnchanged = Effect.fnUntraced(function* (file: Readonly<Record<string, unknown>>) {
  const entries = list(file["entries"])
  const { head, hashes } = yield* hashesOf(file, entries)
  if (file["hash"] !== head)
    return yield* changed(
      null,
      "its request, or another value before its events, is not the one that was recorded"
    )
  for (const [index, hash] of hashes.entries()) {
    const entry = record(entries[index])
    if (entry["hash"] === hash) continue
    const { event_type } = record(entry["event"])
    const type = typeof event_type === "string" ? ` (${event_type})` : ""
    return yield* changed(index, `event ${index}${type} is not the one that was recorded`)
  }
  if (file["events"] !== entries.length)
    return yield* changed(
      null,
      `${entries.length} events are there, and ${String(file["events"])} were recorded`
    )
})

const decodeFile = Schema.decodeUnknownEffect(RecordingFile)

/**
 * The recording in a portable file: its text, or the JSON value that was parsed from it. Fails when it is none, is one of
 * another version, or when any value of it is not the one that was written.
 */
export const loadRecording = Effect.fn("Record.loadRecording")(function* (
  json: unknown
): Effect.fn.Return<Recording, RecordingError, Digests.Digest> {
  const file = typeof json === "string" ? parse(json) : json
  const fail = (reason: RecordingError["reason"], message: string) =>
    new RecordingError({ reason, sequence: null, message })
  if (!isRecord(file) || file["format"] !== recordingFormat)
    return yield* fail(
      "no_recording",
      "it is no recording: looplane bundle RUN --as-fixture -o FILE makes one"
    )
  const { version } = file
  if (version === 1)
    return yield* fail(
      "other_version",
      "it is a recording of version 1, whose events carry no hashes, so that nobody can say whether it is what was recorded: looplane bundle RUN --as-fixture -o FILE makes it anew"
    )
  if (typeof version === "number" && version > recordingVersion)
    return yield* fail(
      "other_version",
      `it is a recording of version ${version}, and this looplane knows version ${recordingVersion}`
    )
  yield* demandUnchanged(file)
  const { entries, request, run_id } = yield* decodeFile(file).pipe(
    Effect.mapError((error) => fail("unsound", `it is no sound recording: ${error.message}`))
  )
  return {
    run_id,
    request,
    entries: entries.map(({ created_at, event, sequence }) => ({ sequence, created_at, event }))
  }
})
