/**
 * From a provider's answer to the events of a model: deltas as they arrive, the whole turn last, or a typed failure.
 */
import { Effect, Result, Stream } from "effect"
import { callIds, type ModelTurn } from "../../domain/Conversation.ts"
import { classify } from "../../domain/model/ErrorFacts.ts"
import { toTurn, wantsRepair, type Draft, type Fault, type Fold } from "../../domain/model/Fold.ts"
import { withoutKey } from "../../domain/model/Redact.ts"
import type { ModelError } from "../../domain/ModelError.ts"
import type { ModelEvent, ModelRequest } from "../../services/Model.ts"
import { arrivals, type Arrival } from "./Body.ts"
import type { Fault as WireFault } from "./Fault.ts"
import type { Line } from "./Line.ts"
import { unkeyedJson } from "./Unkeyed.ts"
import { askedOf, cutError, exchange, exchangeError, type Peer } from "./Transport.ts"

const errorOf = (peer: Peer, line: Line, fault: Fault, last: boolean): ModelError => {
  switch (fault._tag) {
    case "Reported":
      return classify({ status: null, headers: {}, body: fault.body }, askedOf(peer, line))
    case "Protocol":
      return exchangeError(peer, "protocol", fault.message)
    case "Unparsable":
      return last
        ? cutError(peer)
        : exchangeError(peer, "protocol", "a piece of the answer is not the JSON it must be")
    case "Empty":
      return exchangeError(peer, "empty_response", "the answer holds no message")
  }
}

/**
 * Calls whose arguments hold no key: they are acted on as they are kept, or a recording would not be what happened.
 * Masked as text, since that is what is masked on the wire.
 */
const discreetCalls = (draft: Draft, secret: string): Draft => ({
  ...draft,
  calls: draft.calls.map((call) => ({
    id: call.id === null ? null : withoutKey(call.id, secret),
    name: withoutKey(call.name, secret),
    arguments: unkeyedJson(call.arguments, secret)
  }))
})

/** What a server says of the key that it was given is kept nowhere. Signed thoughts are kept as they were signed. */
const discreet = (turn: ModelTurn, secret: string): ModelTurn => ({
  ...turn,
  text: withoutKey(turn.text, secret),
  ...(turn.refusal === undefined ? {} : { refusal: withoutKey(turn.refusal, secret) }),
  reasoning: turn.reasoning.map((each) =>
    each.signature === undefined ? { ...each, text: withoutKey(each.text, secret) } : each
  )
})

const complete = Effect.fnUntraced(function* (peer: Peer, said: Draft, request: ModelRequest) {
  const draft = discreetCalls(said, peer.secret)
  // Most answers need no repair, so most runs never load it.
  const repair = wantsRepair(draft)
    ? yield* Effect.promise(async () => (await import("jsonrepair")).jsonrepair)
    : null
  const taken = new Set(callIds(request.conversation))
  return { type: "completed", turn: discreet(toTurn(draft, taken, repair), peer.secret) } as const
})

/** What one arrival adds. Whatever ends the answer is kept before it is told. */
const arrive = <S>(peer: Peer, line: Line, fold: Fold<S>, request: ModelRequest) => {
  const fail = (state: S, error: ModelError, cut: WireFault | null) =>
    Effect.andThen(line.keep(cut, state), Effect.fail(error))
  const finish = (state: S, deltas: ReadonlyArray<ModelEvent>, last: boolean, cut: WireFault | null) =>
    Result.match(fold.draft(state), {
      onFailure: (fault) => fail(state, errorOf(peer, line, fault, last), cut),
      onSuccess: (draft) =>
        complete(peer, draft, request).pipe(
          Effect.tap(() => line.keep(cut, state)),
          Effect.map((event) => [state, [...deltas, event]] as const)
        )
    })
  return (state: S, arrival: Arrival): Effect.Effect<readonly [S, ReadonlyArray<ModelEvent>], ModelError> => {
    if (arrival._tag === "Event") {
      const pushed = fold.push(state, arrival.data)
      if (Result.isFailure(pushed))
        return fail(state, errorOf(peer, line, pushed.failure, arrival.last), null)
      const [next, deltas] = pushed.success
      const shown = deltas.map(({ text, type }) => ({ type, text: withoutKey(text, peer.secret) }))
      return fold.progress(next) === "done"
        ? finish(next, shown, arrival.last, null)
        : Effect.succeed([next, shown])
    }
    const [error, cut] = arrival._tag === "Broken" ? [arrival.error, arrival.fault] : [cutError(peer), null]
    // A provider that said why it stopped has finished, however its connection ends.
    return fold.progress(state) === "open" ? fail(state, error, cut) : finish(state, [], true, cut)
  }
}

/** Streams one answer. Interrupting it, or leaving it early, closes the connection. */
export const answer = <S>(
  peer: Peer,
  fold: Fold<S>,
  request: ModelRequest,
  send: (signal: AbortSignal) => Promise<Response>
): Stream.Stream<ModelEvent, ModelError> =>
  Stream.unwrap(
    Effect.map(exchange(peer, send), ({ line, response }) =>
      Stream.mapAccumEffect(
        arrivals(peer, line, response),
        () => fold.initial,
        arrive(peer, line, fold, request)
      )
    )
  ).pipe(Stream.takeUntil((event) => event.type === "completed"))
