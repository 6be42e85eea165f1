/**
 * What a model may do. One record per tool holds its schema, its effect on the world, its flags and its handler.
 */
import { Context, type Effect, type Ref } from "effect"
import type { ActionEffect } from "../domain/Event.ts"
import type { TreeId } from "../domain/Ids.ts"
import type { CheckOutcome } from "../domain/Result.ts"
import type { Limits } from "../domain/Task.ts"
import type { ToolDefinition } from "./Model.ts"
import type { StoreError } from "./RunStore.ts"
import type { OpenWorkspace } from "./Workspace.ts"

/** What the model reads back. Everything that the model did wrong is one of these, never an error. */
export interface Observation {
  readonly ok: boolean
  readonly content: string
  /** Set when the call may have changed the workspace. */
  readonly tree?: TreeId
}

/** How large a file is, in the units of the limits on a patch. */
export interface FileSize {
  readonly bytes: number
  readonly lines: number
}

/** Every path that a tool has edited, with its size before the first and after the last edit. */
export type EditedFiles = ReadonlyMap<string, { readonly before: FileSize; readonly after: FileSize }>

/** What a tool of one run works with. */
export interface ToolContext {
  readonly workspace: OpenWorkspace
  readonly limits: Limits
  readonly allowed_paths: ReadonlyArray<string>
  /** Globs of paths that no edit may touch. */
  readonly protected_paths: ReadonlyArray<string>
  /** Together they bound the patch, so that most edits need no diff to be known to be within the limits. */
  readonly edited: Ref.Ref<EditedFiles>
  /** Runs a declared check on the workspace as it stands; null when none has that name. */
  readonly run_check: (name: string) => Effect.Effect<CheckOutcome | null, StoreError>
}

export interface Tool {
  readonly definition: ToolDefinition
  readonly effect: ActionEffect
  /** May run beside other such tools of the same turn. */
  readonly concurrent: boolean
  /** Decodes the arguments; a decode error is an observation that names the field. Bounded by the context's limits.
   * Fails only when the run's own store does: nothing of that is the model's business. */
  readonly call: (
    args: Readonly<Record<string, unknown>>,
    context: ToolContext
  ) => Effect.Effect<Observation, StoreError>
  /** What a person should see before allowing it. */
  readonly preview: (args: Readonly<Record<string, unknown>>) => string
}

export class Tools extends Context.Service<
  Tools,
  {
    /** The tools of a run whose task declares these checks, in the order in which the model hears of them. */
    readonly toolset: (options: { readonly check_names: ReadonlyArray<string> }) => ReadonlyArray<Tool>
  }
>()("looplane/services/Tools") {}
