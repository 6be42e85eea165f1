/**
 * What `growth.ts` prints.
 */
import { Schema } from "effect"

const Side = Schema.Struct({
  /** Medians, in milliseconds. */
  short: Schema.Finite,
  long: Schema.Finite,
  /** The median of the pairs' ratios. */
  ratio: Schema.Finite,
  /** How much a single pair's ratio wanders. */
  noise: Schema.Finite
})
/** The same work in a short run and in a long one. */
export type Side = typeof Side.Type

export const Growth = Schema.Struct({
  /** One event and the barrier behind it. */
  append: Side,
  fork: Side
})
export type Growth = typeof Growth.Type

export const decodeGrowth = Schema.decodeUnknownSync(Schema.fromJsonString(Growth))
