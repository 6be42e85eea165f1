/**
 * The file of a recording: every entry carries a hash that covers it and everything before it, the request included, so
 * no value in it can change unnoticed. `jq -S 'del(.hash, .entries)' FILE | sha256sum` prints the first of them, and
 * `(jq -r .hash FILE; jq -S '.entries[0] | del(.hash)' FILE) | sha256sum` the next one.
 */
import { Schema } from "effect"
import { canonical } from "./Canonical.ts"
import { isKnownType, RunEvent } from "./Event.ts"
import { Digest, RunId } from "./Ids.ts"
import { RunRequest } from "./Request.ts"

export const recordingFormat = "looplane-recording"
/** Version 1 had no hashes. */
export const recordingVersion = 2

/** Why something is no recording that can be played. */
export class RecordingError extends Schema.TaggedError<RecordingError>()("RecordingError", {
  /** `changed`: a value of it is not the one that was written. */
  reason: Schema.Literals(["no_recording", "other_version", "changed", "unsound"]),
  /** Of the first entry that is not what it was; null when it is the request or the list itself, or none of it. */
  sequence: Schema.NullOr(Schema.Int),
  message: Schema.String
}) {}

export const RecordingFile = Schema.Struct({
  format: Schema.Literal(recordingFormat),
  version: Schema.Literal(recordingVersion),
  run_id: RunId,
  /** How many entries there are. */
  events: Schema.Int,
  /** SHA-256 of `headText`. */
  hash: Digest,
  request: RunRequest,
  entries: Schema.Array(
    Schema.Struct({
      sequence: Schema.Int,
      created_at: Schema.String.check(
        Schema.makeFilter((time: string) => !Number.isNaN(Date.parse(time)) || "a time in ISO 8601")
      ),
      event: Schema.Union([
        RunEvent,
        Schema.Struct({
          event_type: Schema.String.check(
            Schema.makeFilter(
              (type: string) => !isKnownType(type) || "an event of this version that does not fit it"
            )
          ),
          data: Schema.Unknown
        })
      ]),
      /** SHA-256 of `entryText`. */
      hash: Digest
    })
  ).check(
    Schema.makeFilter(
      (entries: ReadonlyArray<{ readonly sequence: number }>) =>
        (entries.length > 0 && entries.every((entry, index) => entry.sequence === index)) ||
        "at least one event, in the order of their sequence, from 0 without gaps"
    )
  )
})

/** What a file's own hash is of: everything but the entries, also what this version does not know. */
export const headText = (file: Readonly<Record<string, unknown>>): string =>
  canonical({ ...file, hash: undefined, entries: undefined })

/** What an entry's hash is of: the hash before it, that of the head for the first one, and the rest of it. */
export const entryText = (previous: string, entry: Readonly<Record<string, unknown>>): string =>
  `${previous}\n${canonical({ ...entry, hash: undefined })}`
