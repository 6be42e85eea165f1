/**
 * One HTTP exchange with a provider: what may leave, what a refusal means, and how long silence is waited for.
 */
import { Data, Effect, type Scope } from "effect"
import { classify, type Asked } from "../../domain/model/ErrorFacts.ts"
import { oneLine, redact } from "../../domain/model/Redact.ts"
import { modelError, type ModelError, type ModelErrorKind } from "../../domain/ModelError.ts"
import { causes, failedAs, silence, type Fault } from "./Fault.ts"
import { currentLine, onLine, openLine, type Line } from "./Line.ts"

/** Who is asked, for errors. `secret` is the key, so that nothing repeats it; "" when there is none to hide. */
export interface Peer {
  readonly provider: string
  readonly model: string
  readonly url: string
  readonly secret: string
}

/**
 * From the request to the answer's headers. A local model reads its whole prompt before it sends any; the platform's
 * own limit, which says less, is five minutes.
 */
const answerTimeout = "280 seconds"
/** Between two pieces of a body. Reasoning models fall silent for long; keep-alive comments count as pieces. */
export const idleTimeout = "180 seconds"
/** Of a refusal's body; what a provider says is at its beginning. */
const maxErrorBytes = 65_536

interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a request ends with in place of an answer: a status that says no, a fault, or the one cut by the other. */
class Unanswered extends Data.TaggedError("Unanswered")<{
  readonly refusal: Refusal | null
  readonly fault: Fault | null
}> {}

/** The only headers that leave. The SDKs would add facts of this machine, and headers that the environment names. */
const allowedHeaders: ReadonlyArray<string> = [
  "accept",
  "anthropic-version",
  "authorization",
  "content-type",
  "x-api-key"
]

const outgoing = (given: ConstructorParameters<typeof Headers>[0]): Headers => {
  const all = new Headers(given)
  const headers = new Headers({ "user-agent": "looplane" })
  for (const name of allowedHeaders) {
    const value = all.get(name)
    if (value !== null) headers.set(name, value)
  }
  return headers
}

/** The beginning of a body, as far as it came, and what cut it short. */
const readStart = async (
  line: Line,
  body: Response["body"]
): Promise<{ readonly text: string; readonly fault: Fault | null }> => {
  const decoder = new TextDecoder()
  let text = ""
  let bytes = 0
  try {
    const pieces: AsyncIterable<Uint8Array> | null = body
    if (pieces === null) return { text, fault: null }
    for await (const piece of pieces) {
      line.read(piece)
      text += decoder.decode(piece, { stream: true })
      bytes += piece.length
      // A recording ends where the reading ended.
      if (bytes >= maxErrorBytes && !line.played) break
    }
  } catch (failure) {
    // A refusal is one, whether its explanation came whole or not.
    return { text, fault: failedAs(failure) }
  }
  return { text, fault: null }
}

/**
 * The `fetch` of both SDKs. It follows no redirect, which could carry a key to another host, and fails with the whole
 * refusal or fault where an SDK would keep only the parts that it knows.
 */
export const providerFetch = async (
  input: Parameters<typeof fetch>[0],
  init: NonNullable<Parameters<typeof fetch>[1]> = {}
): Promise<Response> => {
  const line = currentLine()
  if (line === null) throw new Unanswered({ refusal: null, fault: failedAs("no exchange is open") })
  const { body = null, signal = null } = init
  // Both SDKs send their JSON as one string; anything else would have to be read before it can be digested.
  const sent = typeof body === "string" ? body : await new Response(body).text()
  const network = () =>
    fetch(input, { ...init, body: sent, headers: outgoing(init.headers), redirect: "manual" })
  const came = await line.ask(sent, signal, network).catch((failure: unknown) => {
    throw new Unanswered({ refusal: null, fault: failedAs(failure) })
  })
  if (came instanceof Response && came.ok) return came
  const { fault, text } = await readStart(line, came.body)
  const headers = Object.fromEntries(came.headers.entries())
  throw new Unanswered({ refusal: { status: came.status, headers, body: text }, fault })
}

const explain = ({ code, message }: Fault): string =>
  code === "" || message.includes(code) ? message || code : `${code} ${message}`.trim()

/** Who was asked, at the moment of the answer: what it says of times is counted from there, whenever it is read. */
export const askedOf = (peer: Peer, line: Line): Asked => ({
  provider: peer.provider,
  model: peer.model,
  nowMs: line.answeredAtMs(),
  secret: peer.secret
})

/** An error of the exchange itself. */
export const exchangeError = (peer: Peer, kind: ModelErrorKind, message: string): ModelError =>
  modelError({
    provider: peer.provider,
    model: peer.model,
    kind,
    message: oneLine(redact(`${peer.provider}: ${message}`, peer.secret))
  })

/** What a broken body means: the answer was cut. */
export const cutError = (peer: Peer, fault?: Fault): ModelError =>
  exchangeError(
    peer,
    "truncated_stream",
    fault === undefined
      ? "the answer ended before it was complete"
      : `the connection broke in the middle of the answer: ${explain(fault)}`
  )

const errorOf = (peer: Peer, line: Line, { fault, refusal }: Unanswered): ModelError => {
  if (refusal !== null) return classify(refusal, askedOf(peer, line))
  if (fault?.kind === "silent") return exchangeError(peer, "retryable", `${peer.url} ${fault.message}`)
  const why = fault === null ? "" : explain(fault)
  return exchangeError(peer, "retryable", `could not reach ${peer.url}: ${why}`)
}

/** An SDK wraps what its `fetch` threw, and may fail by itself. */
const unanswered = (failure: unknown): Unanswered =>
  causes(failure).find((each) => each instanceof Unanswered) ??
  new Unanswered({ refusal: null, fault: failedAs(failure) })

/**
 * Sends a request and returns its answer once the headers are there; a failure is kept by then. The connection is
 * closed with the scope, at once, whatever is still on its way.
 */
export const exchange = Effect.fnUntraced(function* (
  peer: Peer,
  send: (signal: AbortSignal) => Promise<Response>
): Effect.fn.Return<{ readonly line: Line; readonly response: Response }, ModelError, Scope.Scope> {
  const line = yield* openLine(peer.secret)
  const controller = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (opened) => Effect.sync(() => opened.abort())
  )
  const response = yield* Effect.tryPromise({
    try: () => onLine(line, () => send(controller.signal)),
    catch: unanswered
  }).pipe(
    Effect.timeoutOrElse({
      duration: answerTimeout,
      orElse: () =>
        Effect.fail(
          new Unanswered({ refusal: null, fault: silence(`did not answer within ${answerTimeout}`) })
        )
    }),
    Effect.catch((ending) => {
      const error = errorOf(peer, line, ending)
      return Effect.andThen(line.keep(ending.fault), Effect.fail(error))
    })
  )
  return { line, response }
})
