/**
 * Somebody else decides: a user interface or a server that is told of every question and answers it by its id, in
 * whatever order. A question waits as long as its run does.
 */
import { Context, Deferred, Effect, Layer, PubSub, type Scope, Stream, SynchronizedRef } from "effect"
import type { ApprovalDecision } from "../../domain/Event.ts"
import { Approval, type ApprovalRequest } from "../../services/Approval.ts"
import { standingHeadless } from "./Headless.ts"

export class RemoteApprovals extends Context.Service<
  RemoteApprovals,
  {
    /** Questions that nobody has answered yet, oldest first. */
    readonly pending: Effect.Effect<ReadonlyArray<ApprovalRequest>>
    /** Every question from now on, those that are pending first. */
    readonly requests: Stream.Stream<ApprovalRequest>
    /** False when there is no such question, or it was answered already: then nothing changes. */
    readonly answer: (request_id: string, decision: ApprovalDecision) => Effect.Effect<boolean>
  }
>()("looplane/layers/approval/RemoteApprovals") {}

interface Question {
  readonly request: ApprovalRequest
  readonly decision: Deferred.Deferred<ApprovalDecision>
}

const make = Effect.gen(function* () {
  const questions = yield* SynchronizedRef.make<ReadonlyMap<string, Question>>(new Map())
  const asked = yield* PubSub.unbounded<ApprovalRequest>()

  const take = (request_id: string) =>
    SynchronizedRef.modify(
      questions,
      (all): readonly [Question | undefined, ReadonlyMap<string, Question>] => [
        all.get(request_id),
        new Map([...all].filter(([id]) => id !== request_id))
      ]
    )

  const ask = (request: ApprovalRequest) =>
    Effect.gen(function* () {
      const decision = yield* Deferred.make<ApprovalDecision>()
      yield* SynchronizedRef.update(questions, (all) =>
        new Map(all).set(request.request_id, { request, decision })
      )
      yield* PubSub.publish(asked, request)
      return yield* Deferred.await(decision)
    }).pipe(Effect.ensuring(take(request.request_id)))

  const answer = Effect.fn("RemoteApprovals.answer")(function* (
    request_id: string,
    decision: ApprovalDecision
  ) {
    const question = yield* take(request_id)
    if (question === undefined) return false
    return yield* Deferred.succeed(question.decision, decision)
  })

  const pending = Effect.map(SynchronizedRef.get(questions), (all) =>
    [...all.values()].map(({ request }) => request)
  )

  const requests: Stream.Stream<ApprovalRequest> = Stream.unwrap(
    Effect.gen(function* (): Effect.fn.Return<Stream.Stream<ApprovalRequest>, never, Scope.Scope> {
      // First the subscription: what is asked in between is told twice rather than never.
      const later = yield* PubSub.subscribe(asked)
      const now = yield* pending
      const told = new Set(now.map(({ request_id }) => request_id))
      return Stream.fromIterable(now).pipe(
        Stream.concat(
          Stream.filter(Stream.fromSubscription(later), ({ request_id }) => !told.has(request_id))
        )
      )
    })
  )

  return Context.make(Approval, Approval.of({ standing: standingHeadless, ask })).pipe(
    Context.add(RemoteApprovals, RemoteApprovals.of({ pending, requests, answer }))
  )
})

export const layer: Layer.Layer<Approval | RemoteApprovals> = Layer.effectContext(make)
