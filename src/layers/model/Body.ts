/**
 * The body of an answer as server-sent events, however its bytes are cut.
 */
import { Effect, Stream } from "effect"
import { Sse } from "effect/encoding"
import { classify } from "../../domain/model/ErrorFacts.ts"
import type { ModelError } from "../../domain/ModelError.ts"
import { askedOf, cutError, exchangeError, idleTimeout, type Peer } from "./Transport.ts"

/** What arrives: the `data` of an event, or how the body ended. */
export type Arrival =
  /** `last`: the body ended without closing the event, which then may be cut. */
  | { readonly _tag: "Event"; readonly data: string; readonly last: boolean }
  | { readonly _tag: "End" }
  | { readonly _tag: "Broken"; readonly error: ModelError }

/** No answer of a model comes near; a body without an end must not fill the memory. */
const maxAnswerBytes = 64 * 1024 * 1024

const bytesOf = (peer: Peer, body: ReadableStream<Uint8Array>): Stream.Stream<Uint8Array, ModelError> =>
  Stream.fromReadableStream({ evaluate: () => body, onError: (failure) => cutError(peer, failure) }).pipe(
    Stream.timeoutOrElse({
      duration: idleTimeout,
      orElse: () => Stream.fail(exchangeError(peer, "retryable", `no data for ${idleTimeout}`))
    }),
    Stream.mapAccumEffect(
      () => 0,
      (before, piece) => {
        const total = before + piece.length
        return total > maxAnswerBytes
          ? Effect.fail(exchangeError(peer, "protocol", `the answer is larger than ${maxAnswerBytes} bytes`))
          : Effect.succeed([total, [piece]] as const)
      }
    )
  )

const eventsOf = (peer: Peer, body: ReadableStream<Uint8Array>): Stream.Stream<Arrival, ModelError> =>
  Stream.suspend(() => {
    const found: Array<string> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event") found.push(event.data)
    })
    const feed = (piece: string, last: boolean) =>
      Effect.suspend(() => {
        const fault = parser.feed(piece)
        if (fault !== undefined) return Effect.fail(exchangeError(peer, "protocol", fault.message))
        return Effect.succeed(found.splice(0).map((data): Arrival => ({ _tag: "Event", data, last })))
      })
    const text = Stream.decodeText(bytesOf(peer, body))
    return Stream.concat(
      Stream.mapEffect(text, (piece) => feed(piece, false)),
      // Closes the event that a server left open at the end of its body.
      Stream.fromEffect(feed("\n\n", true))
    ).pipe(Stream.flattenIterable)
  })

const wholeOf = (peer: Peer, body: ReadableStream<Uint8Array>): Stream.Stream<Arrival, ModelError> =>
  bytesOf(peer, body).pipe(
    Stream.decodeText(),
    Stream.runFold(
      () => "",
      (all, piece) => all + piece
    ),
    Effect.map((data): Arrival => ({ _tag: "Event", data, last: true })),
    Stream.fromEffect
  )

const page = (peer: Peer, body: ReadableStream<Uint8Array>) =>
  Stream.decodeText(bytesOf(peer, body)).pipe(
    Stream.runHead,
    Effect.flatMap((start) =>
      Effect.flatMap(askedOf(peer), (asked) =>
        Effect.fail(
          classify({ status: 200, headers: {}, body: start._tag === "Some" ? start.value : "" }, asked)
        )
      )
    ),
    Stream.fromEffect
  )

/** Everything that arrives, ending with `End` or `Broken`. A server that does not stream sends one event. */
export const arrivals = (peer: Peer, response: Response): Stream.Stream<Arrival> => {
  const type = response.headers.get("content-type")?.toLowerCase() ?? ""
  const { body } = response
  if (body === null) return Stream.make({ _tag: "End" })
  const events = type.includes("html")
    ? page(peer, body)
    : type.includes("application/json")
      ? wholeOf(peer, body)
      : eventsOf(peer, body)
  return events.pipe(
    Stream.concat(Stream.make<[Arrival]>({ _tag: "End" })),
    Stream.catch((error) => Stream.make<[Arrival]>({ _tag: "Broken", error }))
  )
}
