/**
 * Where runs live: one directory per run, its journal the only truth.
 */
import { Context, type Effect, Schema, type Scope, type Stream } from "effect"
import type { EventData, JournalEntry, RunEvent, UnknownEvent } from "../domain/Event.ts"
import type { Digest, RunId } from "../domain/Ids.ts"
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
  /** A barrier at the end of what a program does side by side: in a replay it waits for whatever the recording says of
   * the others before this one goes on, so that ending them cuts them off where they were cut off. */
  readonly rendezvous: Effect.Effect<void, StoreError>
  readonly state: Effect.Effect<RunState>
  /** Writes `checkpoint.json`: where the run stands after its last barrier. */
  readonly checkpoint: Effect.Effect<void, StoreError>
  /** The last line that is durable: its sequence, -1 for none, and the hash of its bytes. */
  readonly head: Effect.Effect<{ readonly sequence: number; readonly hash: Digest }>
  /** Replaces a file of the bundle atomically and durably. `name` is one path segment. */
  readonly writeFile: (name: string, content: string | Uint8Array) => Effect.Effect<void, StoreError>
}

/** A run that another process had begun and that this one writes now. */
export interface TakenOver {
  readonly journal: Journal
  readonly request: RunRequest
  /** Active time that the run had used, in milliseconds: never less than it was. */
  readonly active_ms: number
  /** Whether the run has ended and its bundle is whole: nothing is left to do but a follow-up task. */
  readonly complete: boolean
  /** Removes result, receipt and patch of an end that will not be the run's any more. Before a follow-up task is in the
   * journal, and not before it is certain that there is something to work in. */
  readonly discard: Effect.Effect<void, StoreError>
  /** Events that were lost before the journal's head, and gone on without. */
  readonly lost: number
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

/** A line of a journal with its long texts in place. */
export interface StoredEntry {
  readonly sequence: number
  readonly created_at: string
  /** SHA-256 of the line's bytes. */
  readonly hash: Digest
  readonly event: RunEvent | UnknownEvent
}

export interface RunDetails extends RunSummary {
  readonly entries: ReadonlyArray<StoredEntry>
  /** Events of types that this version does not know. */
  readonly unknown: number
}

export class RunStore extends Context.Service<
  RunStore,
  {
    /** Makes the run's directory, writes request and manifest durably, appends `run.created`. */
    readonly create: (run: NewRun) => Effect.Effect<Journal, StoreError, Scope.Scope>
    /**
     * Takes a run over. What a dying writer left unfinished is put right: a journal that is longer than the head rolls
     * it forward, an unfinished line behind it is dropped, a manifest that is gone is made anew, a fork takes in the
     * history that it begins with. A journal that has lost events is refused with their number unless `accept_loss`;
     * what is cut off then is kept beside it.
     */
    readonly open: (
      run: string,
      options: { readonly accept_loss: boolean }
    ) => Effect.Effect<TakenOver, StoreError, Scope.Scope>
    /** A new run that begins where another one stood after its event `sequence`. Costs the same however long that
     * one's history is; its own first turn takes the history in, and needs the source until then. */
    readonly fork: (
      run: string,
      options: { readonly sequence: number; readonly run_id: RunId }
    ) => Effect.Effect<{ readonly run_id: RunId; readonly directory: string }, StoreError>
    /** The entries of a run in order, checked against their chain: bounded memory, never a write. */
    readonly entries: (run: string) => Stream.Stream<StoredEntry, StoreError>
    /** Newest first. Reading never writes; a bad bundle is listed with what it lacks. */
    readonly list: (options: {
      readonly limit: number
      readonly query: string | null
    }) => Effect.Effect<ReadonlyArray<RunSummary>, StoreError>
    /** The newest run that has not ended; null when every run has. */
    readonly unfinished: Effect.Effect<RunSummary | null, StoreError>
    /** One run without its events. `run` everywhere: an id, a unique beginning of one, "last" (the newest), or the path
     * of a run's directory, which may lie anywhere. */
    readonly find: (run: string) => Effect.Effect<RunSummary, StoreError>
    readonly show: (run: string) => Effect.Effect<RunDetails, StoreError>
  }
>()("looplane/services/RunStore") {}
