/**
 * What went over the wire for one attempt to get an answer: enough to play it again without a network.
 */
import { Schema } from "effect"
import { Digest } from "./Ids.ts"
import { Octets } from "./Octets.ts"

export const Exchange = Schema.Struct({
  /** Of the body that was sent. */
  sent: Digest,
  /** When the answer's headers, or the failure, came: milliseconds since 1970, the `now` of every hint in it. */
  answered_at_ms: Schema.Finite,
  /** Null when no answer came. */
  status: Schema.NullOr(Schema.Int),
  /** Lower-case names; cookies are left out. */
  headers: Schema.Record(Schema.String, Schema.String),
  /** As far as it came and was read. The key that was sent is not in it. */
  body: Octets,
  /** How the body was cut into pieces, in bytes. */
  pieces: Schema.Array(Schema.Int),
  /** What ended it in place of a proper end: no answer or a broken body (`code` and `message` of the failure), or
   * silence that we did not wait out. Null when the body ended, or the answer was complete before. */
  fault: Schema.NullOr(
    Schema.Struct({
      kind: Schema.Literals(["failed", "silent"]),
      code: Schema.String,
      message: Schema.String
    })
  )
})
export type Exchange = typeof Exchange.Type
