/**
 * A model that answers. Models are values, not tags: a run has several at once (fallbacks, later reviewers).
 */
import { Context, type Effect, type Redacted, type Stream } from "effect"
import type { ConversationItem, ModelTurn } from "../domain/Conversation.ts"
import type { ProviderName } from "../domain/model/Providers.ts"
import type { ModelError } from "../domain/ModelError.ts"
import type { PromptSection } from "../domain/Prompt.ts"

/** A tool as a provider hears of it. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments: an object, no additional properties. */
  readonly parameters: Readonly<Record<string, unknown>>
}

export interface ModelRequest {
  /** The system prompt, stable sections first: they are the cacheable prefix. */
  readonly system: ReadonlyArray<PromptSection>
  /** Every tool call in it is answered (`pairToolCalls`). */
  readonly conversation: ReadonlyArray<ConversationItem>
  readonly tools: ReadonlyArray<ToolDefinition>
}

/** What a model's stream carries. `completed` is its terminal event: without one the turn is a retryable error. */
export type ModelEvent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "completed"; readonly turn: ModelTurn }

export interface Model {
  readonly provider: string
  readonly model: string
  /** The base URL that requests go to; null when nothing leaves the process. */
  readonly endpoint: string | null
  /** Loads what the first request will need, so that it overlaps other work. Never fails. */
  readonly warm: Effect.Effect<void>
  /** One answer. Interrupting the stream closes the connection. Never retries by itself. */
  readonly stream: (request: ModelRequest) => Stream.Stream<ModelEvent, ModelError>
}

/** A model that the user named, before it is made. */
export interface ModelSpec {
  readonly provider: ProviderName
  readonly model: string
  /** The base URL that the user chose; null for the provider's own. */
  readonly api_url: string | null
  readonly api_key: Redacted.Redacted | null
}

/** The models of a run in the order in which they are tried. */
export class Models extends Context.Service<
  Models,
  { readonly candidates: readonly [Model, ...ReadonlyArray<Model>] }
>()("looplane/services/Models") {}
