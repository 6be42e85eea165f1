/**
 * Where runs live: one directory per run, its journal the only truth.
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { EventData, JournalEntry, RunEvent, UnknownEvent } from "../domain/Event.ts"
import type { RunId } from "../domain/Ids.ts"
import type { RunState } from "../domain/Run.ts"
import type { RunResult } from "../domain/Result.ts"
import type { SessionManifest } from "../domain/Session.ts"
import type { RunRequest } from "../domain/Request.ts"

export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  reason: Schema.Literals([
    "exists",
    "not_found",
    "busy",
    "damaged",
    "unwritable",
    "no_space",
    "newer_version",
    "invalid"
  ]),
  /** The place that the message speaks of. */
  path: Schema.String,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** A run that is to begin. */
export interface NewRun {
  readonly run_id: RunId
  readonly request: RunRequest
  readonly created: Omit<EventData<"run.created">, "run_id" | "store_version">
}

/** An open run. Closing its scope frees the writer's lock. */
export interface Journal {
  readonly run_id: RunId
  /** The run's directory, absolute. */
  readonly directory: string
  /** Appends one event and folds it. Uninterruptible. Ordered among concurrent callers. Not yet durable. */
  readonly append: (event: RunEvent) => Effect.Effect<JournalEntry, StoreError>
  /** Everything appended so far survives power loss when this returns. */
  readonly barrier: Effect.Effect<void, StoreError>
  readonly state: Effect.Effect<RunState>
  /** Writes `checkpoint.json`: where the run stands after its last barrier. */
  readonly checkpoint: Effect.Effect<void, StoreError>
  /** Replaces a file of the bundle atomically and durably. `name` is one path segment. */
  readonly writeFile: (name: string, content: string | Uint8Array) => Effect.Effect<void, StoreError>
}

/** What a listing shows of one run, also of a damaged or incomplete one. */
export interface RunSummary {
  readonly run_id: RunId
  readonly directory: string
  readonly modified_ms: number
  readonly manifest: SessionManifest | null
  readonly request: RunRequest | null
  readonly result: RunResult | null
  /** Files of the closed list that are missing or do not parse. Empty: the bundle is complete. */
  readonly missing: ReadonlyArray<string>
}

export interface RunDetails extends RunSummary {
  readonly entries: ReadonlyArray<{
    readonly sequence: number
    readonly created_at: string
    readonly event: RunEvent | UnknownEvent
  }>
  /** Events of types that this version does not know. */
  readonly unknown: number
}

export class RunStore extends Context.Service<
  RunStore,
  {
    /** Makes the run's directory, writes request and manifest durably, appends `run.created`. */
    readonly create: (run: NewRun) => Effect.Effect<Journal, StoreError, Scope.Scope>
    /** Newest first. Reading never writes; a bad bundle is listed with what it lacks. */
    readonly list: (options: {
      readonly limit: number
      readonly query: string | null
    }) => Effect.Effect<ReadonlyArray<RunSummary>, StoreError>
    /** One run by id or unique prefix. */
    readonly show: (idOrPrefix: string) => Effect.Effect<RunDetails, StoreError>
  }
>()("looplane/services/RunStore") {}
