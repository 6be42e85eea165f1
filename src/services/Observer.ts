/**
 * Who watches a run while it happens. Watching never changes a run: an observer cannot fail.
 */
import { Context, Effect } from "effect"
import type { JournalEntry } from "../domain/Event.ts"

/** A piece of an answer that is still arriving. Never journalled; `attempt` changes when a broken stream is retried. */
export interface Delta {
  readonly step: number
  readonly attempt: number
  readonly kind: "text" | "reasoning"
  readonly text: string
}

export const Observer = Context.Reference<{
  /** Called after the entry is in the journal. */
  readonly entry: (entry: JournalEntry) => Effect.Effect<void>
  readonly delta: (delta: Delta) => Effect.Effect<void>
}>("looplane/services/Observer", {
  defaultValue: () => ({ entry: () => Effect.void, delta: () => Effect.void })
})
