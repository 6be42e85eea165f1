/**
 * Somebody must decide whether an action may run.
 */
import { Context, type Effect, Schema } from "effect"
import type { ApprovalDecision, EventData } from "../domain/Event.ts"

/** An answer is needed that nobody here can give. Ends the run with exit code 3. */
export class ApprovalUnavailable extends Schema.TaggedError<ApprovalUnavailable>()("ApprovalUnavailable", {
  message: Schema.String
}) {}

export type ApprovalRequest = EventData<"approval.requested">

export class Approval extends Context.Service<
  Approval,
  {
    /** What is decided without asking anybody; null when `ask` must be. Pure policy, so nothing is journalled. */
    readonly standing: (request: ApprovalRequest) => ApprovalDecision | null
    /** Blocks until somebody decides. The request is in the journal before this is called. */
    readonly ask: (request: ApprovalRequest) => Effect.Effect<ApprovalDecision, ApprovalUnavailable>
  }
>()("looplane/services/Approval") {}
