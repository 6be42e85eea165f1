/**
 * Nobody is there to answer: edits within the allowed paths and declared checks need no answer, everything else ends
 * the run. Never reads anything, so it never waits.
 */
import { Effect, Layer } from "effect"
import type { ApprovalDecision } from "../../domain/Event.ts"
import { Approval, type ApprovalRequest, ApprovalUnavailable } from "../../services/Approval.ts"

/** What is decided without anybody: all of it happens in the clone, and commands are those that the user declared. */
export const standingHeadless = (request: ApprovalRequest): ApprovalDecision | null =>
  request.effect === "modify_execute" ? null : "allow_once"

export const layer = Layer.succeed(
  Approval,
  Approval.of({
    standing: standingHeadless,
    ask: (request) =>
      Effect.fail(
        new ApprovalUnavailable({
          message: `leave was needed for an action (${request.effect}, ${request.action_id}), and nobody is here to give it: only edits in the clone and declared checks need none; declare the command with --check, or --setup`
        })
      )
  })
)
