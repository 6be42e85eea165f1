/**
 * Nobody is there to answer: edits within the allowed paths and declared checks need no answer, everything else ends
 * the run.
 */
import { Effect, Layer } from "effect"
import { Approval, ApprovalUnavailable } from "../../services/Approval.ts"

export const layer = Layer.succeed(
  Approval,
  Approval.of({
    standing: (request) => (request.effect === "modify_execute" ? null : "allow_once"),
    ask: (request) =>
      Effect.fail(
        new ApprovalUnavailable({
          message: `an answer was needed that nobody could give: ${request.effect} (${request.action_id})`
        })
      )
  })
)
