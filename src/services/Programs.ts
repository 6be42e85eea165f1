/**
 * Which programs this machine has: asked before a run, so that a check that can never start costs nothing.
 */
import { Context, type Effect } from "effect"

export class Programs extends Context.Service<
  Programs,
  {
    /** Whether a command of that name would be found. A name with a slash is looked up from `directory`. */
    readonly has: (program: string, directory: string) => Effect.Effect<boolean>
  }
>()("looplane/services/Programs") {}
