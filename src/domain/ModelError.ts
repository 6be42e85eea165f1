/**
 * What can go wrong between looplane and a model, as one wide error with a closed set of kinds.
 */
import { Schema } from "effect"

export const ModelErrorKind = Schema.Literals([
  /** Connection, DNS, TLS or a time-out of ours. */
  "retryable",
  "auth",
  "rate_limit",
  /** The account's quota or balance is used up; `resets_at` says until when, if the provider did. */
  "quota_exhausted",
  "overloaded",
  "invalid_request",
  "model_not_found",
  "context_overflow",
  /** The provider failed: 5xx, a body that is no answer. */
  "provider",
  /** Bytes that break the provider's own protocol. */
  "protocol",
  "truncated_stream",
  "empty_response",
  "malformed_tool_call"
])
export type ModelErrorKind = typeof ModelErrorKind.Type

/** The facts of a failed request as the journal keeps them. */
export const ModelErrorFacts = Schema.Struct({
  provider: Schema.String,
  model: Schema.String,
  kind: ModelErrorKind,
  /** Whether the same request may be sent again as it is. */
  retryable: Schema.Boolean,
  message: Schema.String,
  status_code: Schema.NullOr(Schema.Int),
  /** The server's own wish, in milliseconds from the answer. Unbounded: policies bound it. */
  retry_after_ms: Schema.NullOr(Schema.Finite),
  /** When a quota comes back: ISO 8601, UTC. */
  resets_at: Schema.NullOr(Schema.String),
  provider_code: Schema.NullOr(Schema.String),
  request_id: Schema.NullOr(Schema.String)
})
export type ModelErrorFacts = typeof ModelErrorFacts.Type

export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", ModelErrorFacts.fields) {
  /** Whether the next model is asked: after what time might mend, or a used-up quota. The rest is the user's to know. */
  get fallbackable(): boolean {
    return this.retryable || this.kind === "quota_exhausted"
  }
  get facts(): ModelErrorFacts {
    return {
      provider: this.provider,
      model: this.model,
      kind: this.kind,
      retryable: this.retryable,
      message: this.message,
      status_code: this.status_code,
      retry_after_ms: this.retry_after_ms,
      resets_at: this.resets_at,
      provider_code: this.provider_code,
      request_id: this.request_id
    }
  }
}

const retryableByKind: Record<ModelErrorKind, boolean> = {
  retryable: true,
  auth: false,
  rate_limit: true,
  quota_exhausted: false,
  overloaded: true,
  invalid_request: false,
  model_not_found: false,
  context_overflow: false,
  provider: true,
  protocol: true,
  truncated_stream: true,
  empty_response: true,
  malformed_tool_call: true
}

/** A ModelError of a kind, with the kind's own `retryable` unless told otherwise. */
export const modelError = (
  options: {
    readonly provider: string
    readonly model: string
    readonly kind: ModelErrorKind
    readonly message: string
  } & Partial<ModelErrorFacts>
): ModelError =>
  new ModelError({
    retryable: retryableByKind[options.kind],
    status_code: null,
    retry_after_ms: null,
    resets_at: null,
    provider_code: null,
    request_id: null,
    ...options
  })
