/**
 * What a request used, in the product's own words. Counts are inclusive: `cached_input_tokens` and
 * `cache_write_tokens` are parts of `input_tokens`, `reasoning_tokens` is a part of `output_tokens`.
 */
import { Schema } from "effect"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Usage = Schema.Struct({
  input_tokens: Count,
  output_tokens: Count,
  cached_input_tokens: Count,
  cache_write_tokens: Count,
  reasoning_tokens: Count,
  /** The provider's own total, where it differs from input + output; null when it sent none. */
  provider_total_tokens: Schema.NullOr(Count)
})
export type Usage = typeof Usage.Type

export const zero: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  provider_total_tokens: null
}

/** The provider's total when it reported one, else input + output. */
export const totalTokens = (usage: Usage): number =>
  usage.provider_total_tokens ?? usage.input_tokens + usage.output_tokens

/** Adds two usages. The sum keeps a provider total as soon as one side had one. */
export const add = (a: Usage, b: Usage): Usage => ({
  input_tokens: a.input_tokens + b.input_tokens,
  output_tokens: a.output_tokens + b.output_tokens,
  cached_input_tokens: a.cached_input_tokens + b.cached_input_tokens,
  cache_write_tokens: a.cache_write_tokens + b.cache_write_tokens,
  reasoning_tokens: a.reasoning_tokens + b.reasoning_tokens,
  provider_total_tokens:
    a.provider_total_tokens === null && b.provider_total_tokens === null
      ? null
      : totalTokens(a) + totalTokens(b)
})
