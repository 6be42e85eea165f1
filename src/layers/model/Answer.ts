/**
 * From a provider's answer to the events of a model: deltas as they arrive, the whole turn last, or a typed failure.
 */
import { Effect, Result, Stream } from "effect"
import { callIds, type ModelTurn } from "../../domain/Conversation.ts"
import { classify } from "../../domain/model/ErrorFacts.ts"
import {
  toTurn,
  wantsRepair,
  type Delta,
  type Draft,
  type Fault,
  type Fold
} from "../../domain/model/Fold.ts"
import { withoutKey } from "../../domain/model/Redact.ts"
import type { ModelError } from "../../domain/ModelError.ts"
import type { ModelEvent, ModelRequest } from "../../services/Model.ts"
import { arrivals, type Arrival } from "./Body.ts"
import { askedOf, cutError, exchange, exchangeError, type Peer } from "./Transport.ts"

const failWith = (peer: Peer, fault: Fault, last: boolean): Effect.Effect<never, ModelError> => {
  switch (fault._tag) {
    case "Reported":
      return Effect.flatMap(askedOf(peer), (asked) =>
        Effect.fail(classify({ status: null, headers: {}, body: fault.body }, asked))
      )
    case "Protocol":
      return Effect.fail(exchangeError(peer, "protocol", fault.message))
    case "Unparsable":
      return Effect.fail(
        last
          ? cutError(peer)
          : exchangeError(peer, "protocol", "a piece of the answer is not the JSON it must be")
      )
    case "Empty":
      return Effect.fail(exchangeError(peer, "empty_response", "the answer holds no message"))
  }
}

/** What a server says of the key that it was given is kept nowhere. Signed thoughts are kept as they were signed. */
const discreet = (turn: ModelTurn, secret: string): ModelTurn => ({
  ...turn,
  text: withoutKey(turn.text, secret),
  ...(turn.refusal === undefined ? {} : { refusal: withoutKey(turn.refusal, secret) }),
  reasoning: turn.reasoning.map((each) =>
    each.signature === undefined ? { ...each, text: withoutKey(each.text, secret) } : each
  )
})

const complete = Effect.fnUntraced(function* (peer: Peer, draft: Draft, request: ModelRequest) {
  // Most answers need no repair, so most runs never load it.
  const repair = wantsRepair(draft)
    ? yield* Effect.promise(async () => (await import("jsonrepair")).jsonrepair)
    : null
  const taken = new Set(callIds(request.conversation))
  return { type: "completed", turn: discreet(toTurn(draft, taken, repair), peer.secret) } as const
})

const arrive = <S>(peer: Peer, fold: Fold<S>, request: ModelRequest) => {
  const finish = (state: S, deltas: ReadonlyArray<Delta>, last: boolean) =>
    Result.match(fold.draft(state), {
      onFailure: (fault) => failWith(peer, fault, last),
      onSuccess: (draft) =>
        Effect.map(complete(peer, draft, request), (event) => [state, [...deltas, event]] as const)
    })
  return (state: S, arrival: Arrival): Effect.Effect<readonly [S, ReadonlyArray<ModelEvent>], ModelError> => {
    if (arrival._tag === "Event") {
      const pushed = fold.push(state, arrival.data)
      if (Result.isFailure(pushed)) return failWith(peer, pushed.failure, arrival.last)
      const [next, deltas] = pushed.success
      return fold.progress(next) === "done"
        ? finish(next, deltas, arrival.last)
        : Effect.succeed([next, deltas])
    }
    // A provider that said why it stopped has finished, however its connection ends.
    if (fold.progress(state) !== "open") return finish(state, [], true)
    return Effect.fail(arrival._tag === "Broken" ? arrival.error : cutError(peer))
  }
}

/** Streams one answer. Interrupting it, or leaving it early, closes the connection. */
export const answer = <S>(
  peer: Peer,
  fold: Fold<S>,
  request: ModelRequest,
  send: (signal: AbortSignal) => Promise<Response>
): Stream.Stream<ModelEvent, ModelError> =>
  Stream.unwrap(Effect.map(exchange(peer, send), (response) => arrivals(peer, response))).pipe(
    Stream.mapAccumEffect(() => fold.initial, arrive(peer, fold, request)),
    Stream.takeUntil((event) => event.type === "completed")
  )
