/**
 * The small JSON files of a bundle: read within bounds, and told apart from those of a later version.
 */
import { Effect, Result, Schema } from "effect"
import { isRecord, parse } from "../../domain/Json.ts"
import { RunRequest } from "../../domain/Request.ts"
import { artifactNames, CheckOutcome, RunResult, type ArtifactKey } from "../../domain/Result.ts"
import { Checkpoint, SessionManifest } from "../../domain/Session.ts"
import { StoreError } from "../../services/RunStore.ts"
import type { Disk } from "./Disk.ts"
import { damaged } from "./Failure.ts"

/** The `schema_version` that all of them have. */
const schemaVersion = 1

export type Document<A> =
  | { readonly _tag: "Read"; readonly value: A }
  /** Of a later version: it may well be sound. */
  | { readonly _tag: "Newer"; readonly version: number }
  /** Missing, too long, or something else. */
  | { readonly _tag: "Unreadable" }
  /** The disk does not hand it out: it may well be sound. */
  | { readonly _tag: "Failed"; readonly error: StoreError }

const unreadable: Document<never> = { _tag: "Unreadable" }

/** What one file holds, and how long it may be, in bytes. */
const document = <S extends Schema.ConstraintDecoder<unknown>>(
  key: ArtifactKey,
  limit: number,
  schema: S
) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (disk: Disk, directory: string): Effect.Effect<Document<S["Type"]>, StoreError> =>
    Effect.map(
      disk.read(disk.path.join(directory, artifactNames[key]), limit),
      (bytes): Document<S["Type"]> => {
        if (bytes === null) return unreadable
        const value = parse(new TextDecoder().decode(bytes))
        const version = isRecord(value) ? value["schema_version"] : null
        if (typeof version === "number" && version > schemaVersion) return { _tag: "Newer", version }
        return Result.match(decode(value), {
          onFailure: () => unreadable,
          onSuccess: (value) => ({ _tag: "Read", value })
        })
      }
    )
}

const kib = 1024
const mib = 1024 * kib
/** Of a receipt, in bytes. */
export const receiptLimit = 16 * mib
export const documents = {
  request: document("request", 16 * mib, RunRequest),
  session: document("session", 64 * kib, SessionManifest),
  checkpoint: document("checkpoint", mib, Checkpoint),
  verification: document("verification", 16 * mib, Schema.Array(CheckOutcome)),
  receipt: document("receipt", receiptLimit, Schema.Record(Schema.String, Schema.Unknown)),
  result: document("result", mib, RunResult)
}

/** The value of a document that can be read. */
export const valueOf = <A>(document: Document<A>): A | null =>
  document._tag === "Read" ? document.value : null

/** For whoever must not touch what it does not understand. */
export const refuseNewer = (
  place: string,
  file: string,
  what: string,
  version: number,
  known: number
): StoreError =>
  new StoreError({
    reason: "newer_version",
    path: file,
    message: `${place} is of ${what} version ${version}, and this looplane knows version ${known}`
  })

export const demandKnown = <A>(
  disk: Disk,
  directory: string,
  key: ArtifactKey,
  found: Document<A>
): Effect.Effect<A | null, StoreError> => {
  const file = disk.path.join(directory, artifactNames[key])
  return found._tag === "Newer"
    ? Effect.fail(refuseNewer(file, file, "schema", found.version, schemaVersion))
    : Effect.succeed(valueOf(found))
}

/** Without it nobody knows what the run is for. */
export const noRequest = (file: string): StoreError => damaged(file, `${file} is missing or cannot be read`)
