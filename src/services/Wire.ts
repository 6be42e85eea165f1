/**
 * The wire between a model's adapter and its provider: what crosses it can be kept, and can be played back.
 */
import { Context, Effect } from "effect"
import type { Exchange } from "../domain/Wire.ts"

export const Wire = Context.Reference<{
  /**
   * Called once per request that was answered, refused or failed, when nothing more of it will be read and before its
   * end is told; not for one that was interrupted. In a playback it is called with what was played and the digest of
   * what would have been sent.
   */
  readonly keep: (exchange: Exchange) => Effect.Effect<void>
  /** Answers in place of the network, run once per request; null for the network. */
  readonly recorded: Effect.Effect<Exchange> | null
}>("looplane/services/Wire", { defaultValue: () => ({ keep: () => Effect.void, recorded: null }) })
