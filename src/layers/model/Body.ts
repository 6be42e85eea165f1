/**
 * The body of an answer as server-sent events, however its bytes are cut.
 */
import { Effect, Stream } from "effect"
import { Sse } from "effect/encoding"
import { classify } from "../../domain/model/ErrorFacts.ts"
import type { ModelError } from "../../domain/ModelError.ts"
import { failedAs, silence, type Fault } from "./Fault.ts"
import type { Line } from "./Line.ts"
import { askedOf, cutError, exchangeError, idleTimeout, type Peer } from "./Transport.ts"

/** What arrives: the `data` of an event, or how the body ended. */
export type Arrival =
  /** `last`: the body ended without closing the event, which then may be cut. */
  | { readonly _tag: "Event"; readonly data: string; readonly last: boolean }
  | { readonly _tag: "End" }
  | Broken

/** `fault` is null where the bytes were whole and are not what they must be. */
interface Broken {
  readonly _tag: "Broken"
  readonly error: ModelError
  readonly fault: Fault | null
}

/** No answer of a model comes near; a body without an end must not fill the memory. */
const maxAnswerBytes = 64 * 1024 * 1024

const broken = (error: ModelError, fault: Fault | null = null): Broken => ({ _tag: "Broken", error, fault })

const cut = (peer: Peer, failure: unknown): Broken => {
  const fault = failedAs(failure)
  return broken(cutError(peer, fault), fault)
}

const idle = (peer: Peer): Broken => {
  const fault = silence(`no data for ${idleTimeout}`)
  return broken(exchangeError(peer, "retryable", fault.message), fault)
}

/** An answer's body, and who reads it. */
interface Reading {
  readonly peer: Peer
  readonly line: Line
  readonly body: ReadableStream<Uint8Array>
}

const bytesOf = ({ body, line, peer }: Reading): Stream.Stream<Uint8Array, Broken> =>
  Stream.fromReadableStream({ evaluate: () => body, onError: (failure) => cut(peer, failure) }).pipe(
    Stream.timeoutOrElse({ duration: idleTimeout, orElse: () => Stream.fail(idle(peer)) }),
    Stream.mapAccumEffect(
      () => 0,
      (before, piece) => {
        line.read(piece)
        const total = before + piece.length
        return total > maxAnswerBytes
          ? Effect.fail(
              broken(exchangeError(peer, "protocol", `the answer is larger than ${maxAnswerBytes} bytes`))
            )
          : Effect.succeed([total, [piece]] as const)
      }
    )
  )

const eventsOf = (reading: Reading): Stream.Stream<Arrival, Broken> =>
  Stream.suspend(() => {
    const found: Array<string> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event") found.push(event.data)
    })
    const feed = (piece: string, last: boolean) =>
      Effect.suspend(() => {
        const fault = parser.feed(piece)
        if (fault !== undefined)
          return Effect.fail(broken(exchangeError(reading.peer, "protocol", fault.message)))
        return Effect.succeed(found.splice(0).map((data): Arrival => ({ _tag: "Event", data, last })))
      })
    const text = Stream.decodeText(bytesOf(reading))
    return Stream.concat(
      Stream.mapEffect(text, (piece) => feed(piece, false)),
      // Closes the event that a server left open at the end of its body.
      Stream.fromEffect(feed("\n\n", true))
    ).pipe(Stream.flattenIterable)
  })

const wholeOf = (reading: Reading): Stream.Stream<Arrival, Broken> =>
  bytesOf(reading).pipe(
    Stream.decodeText(),
    Stream.runFold(
      () => "",
      (all, piece) => all + piece
    ),
    Effect.map((data): Arrival => ({ _tag: "Event", data, last: true })),
    Stream.fromEffect
  )

const page = (reading: Reading): Stream.Stream<Arrival, Broken> =>
  Stream.decodeText(bytesOf(reading)).pipe(
    Stream.runHead,
    Effect.flatMap((start) => {
      const body = start._tag === "Some" ? start.value : ""
      const asked = askedOf(reading.peer, reading.line)
      return Effect.fail(broken(classify({ status: 200, headers: {}, body }, asked)))
    }),
    Stream.fromEffect
  )

/** Everything that arrives, ending with `End` or `Broken`. A server that does not stream sends one event. */
export const arrivals = (peer: Peer, line: Line, response: Response): Stream.Stream<Arrival> => {
  const type = response.headers.get("content-type")?.toLowerCase() ?? ""
  const { body } = response
  if (body === null) return Stream.make({ _tag: "End" })
  const reading = { peer, line, body }
  const events = type.includes("html")
    ? page(reading)
    : type.includes("application/json")
      ? wholeOf(reading)
      : eventsOf(reading)
  return events.pipe(
    Stream.concat(Stream.make<[Arrival]>({ _tag: "End" })),
    Stream.catch((end) => Stream.make<[Arrival]>(end))
  )
}
