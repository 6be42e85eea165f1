/**
 * A run as a recording: read from the store, or from a file that was carried here.
 */
import { Effect, Schema, Stream } from "effect"
import { portable, RecordingFile, type RecordedEntry, type Recording } from "../domain/Recording.ts"
import { refuse, type Refusal } from "../domain/Refusal.ts"
import { RunStore, type StoreError } from "../services/RunStore.ts"

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

/** What a portable file holds, as JSON: see `portable`. */
export const recordingFile = (recording: Recording): Effect.Effect<unknown, Schema.SchemaError> =>
  Schema.encodeEffect(RecordingFile)({ format: "looplane-recording", version: 1, ...portable(recording) })

const decodeText = Schema.decodeUnknownEffect(Schema.fromJsonString(RecordingFile))
const decodeValue = Schema.decodeUnknownEffect(RecordingFile)

/** The recording in a portable file: its text, or the JSON value that was parsed from it. */
export const loadRecording = (json: unknown): Effect.Effect<Recording, Schema.SchemaError> =>
  (typeof json === "string" ? decodeText(json) : decodeValue(json)).pipe(
    Effect.map(({ entries, request, run_id }): Recording => ({ run_id, request, entries }))
  )
