/**
 * Runs declared checks. Model text never decides a verdict.
 */
import { Context, type Effect } from "effect"
import type { CheckPurpose } from "../domain/Event.ts"
import type { CheckOutcome } from "../domain/Result.ts"
import type { Check } from "../domain/Task.ts"
import type { CommandPlace } from "./Sandbox.ts"

export interface CheckPlace {
  /** Absolute. */
  readonly root: string
  /** Relative to the root: where the command runs. */
  readonly subdirectory: string
  /** The user's own tree: a check that names it ran the wrong code. */
  readonly source: string
  /** As of `CommandPlace`. */
  readonly layers: CommandPlace["layers"]
  /** Why nothing that runs here could be believed; null when it can. */
  readonly distrust: string | null
}

export class Checks extends Context.Service<
  Checks,
  {
    /** One run of one check, ended at its own time-out or at `remaining_ms`, whichever is sooner. Never fails: what
     * goes wrong is the verdict. Secrets in the output are redacted. */
    readonly run: (
      check: Check,
      place: CheckPlace,
      options: {
        readonly purpose: CheckPurpose
        readonly remaining_ms: number
        readonly max_output_bytes: number
      }
    ) => Effect.Effect<CheckOutcome>
  }
>()("looplane/services/Checks") {}
