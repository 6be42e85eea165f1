/**
 * One HTTP exchange with a provider: what may leave, what a refusal means, and how long silence is waited for.
 */
import { Clock, Data, Effect, type Scope } from "effect"
import { classify, type Asked } from "../../domain/model/ErrorFacts.ts"
import { oneLine, redact } from "../../domain/model/Redact.ts"
import { modelError, type ModelError, type ModelErrorKind } from "../../domain/ModelError.ts"

/** Who is asked, for errors. `secret` is the key, so that no message repeats it. */
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

/** An answer whose status says no, carried through the SDK as it is. */
class ErrorAnswer extends Data.TaggedError("ErrorAnswer")<{
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}> {}

/** Whatever a request ended with in place of an answer. */
class Unanswered extends Data.TaggedError("Unanswered")<{ readonly cause: unknown }> {}

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

/** The beginning of a body, as far as it came. */
const readStart = async (response: Response): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  let bytes = 0
  try {
    const body: AsyncIterable<Uint8Array> | null = response.body
    if (body === null) return text
    for await (const piece of body) {
      text += decoder.decode(piece, { stream: true })
      bytes += piece.length
      if (bytes >= maxErrorBytes) break
    }
  } catch {
    // A refusal is one, whether its explanation came whole or not.
    return text
  }
  return text
}

/**
 * The `fetch` of both SDKs. It follows no redirect, which could carry a key to another host, and fails with the whole
 * refusal where an SDK would keep only the parts that it knows.
 */
export const providerFetch = async (
  input: Parameters<typeof fetch>[0],
  init?: Parameters<typeof fetch>[1]
): Promise<Response> => {
  const response = await fetch(input, { ...init, headers: outgoing(init?.headers), redirect: "manual" })
  if (response.ok) return response
  const headers = Object.fromEntries(response.headers.entries())
  throw new ErrorAnswer({ status: response.status, headers, body: await readStart(response) })
}

/** The failure and everything that it names as its cause, outermost first. */
const causes = (failure: unknown): ReadonlyArray<unknown> => {
  const chain: Array<unknown> = []
  for (let each = failure; each instanceof Error && chain.length < 10; each = each.cause) {
    chain.push(each)
    if (each instanceof AggregateError) {
      const first: unknown = each.errors[0]
      chain.push(first)
    }
  }
  return chain
}

const codeOf = (failure: unknown): string =>
  failure instanceof Error && "code" in failure && typeof failure.code === "string" ? failure.code : ""

/** The most telling words in a chain of causes: a system code and the innermost message. */
const explain = (failure: unknown): string => {
  const chain = causes(failure)
  const code = chain.map(codeOf).findLast((each) => each !== "") ?? ""
  const innermost = chain.at(-1)
  const message = innermost instanceof Error ? innermost.message : String(failure)
  return code === "" || message.includes(code) ? message || code : `${code} ${message}`.trim()
}

export const askedOf = (peer: Peer): Effect.Effect<Asked> =>
  Effect.map(Clock.currentTimeMillis, (nowMs) => ({
    provider: peer.provider,
    model: peer.model,
    nowMs,
    secret: peer.secret
  }))

/** An error of the exchange itself. */
export const exchangeError = (peer: Peer, kind: ModelErrorKind, message: string): ModelError =>
  modelError({
    provider: peer.provider,
    model: peer.model,
    kind,
    message: oneLine(redact(`${peer.provider}: ${message}`, peer.secret))
  })

/** What a broken body means: the answer was cut. */
export const cutError = (peer: Peer, failure?: unknown): ModelError =>
  exchangeError(
    peer,
    "truncated_stream",
    failure === undefined
      ? "the answer ended before it was complete"
      : `the connection broke in the middle of the answer: ${explain(failure)}`
  )

const requestError = (peer: Peer, failure: unknown) =>
  Effect.map(askedOf(peer), (asked) => {
    const refusal = causes(failure).find((each) => each instanceof ErrorAnswer)
    return refusal === undefined
      ? exchangeError(peer, "retryable", `could not reach ${peer.url}: ${explain(failure)}`)
      : classify(refusal, asked)
  })

/**
 * Sends a request and returns its answer once the headers are there. The connection is closed with the scope, at
 * once, whatever is still on its way.
 */
export const exchange = Effect.fnUntraced(function* (
  peer: Peer,
  send: (signal: AbortSignal) => Promise<Response>
): Effect.fn.Return<Response, ModelError, Scope.Scope> {
  const controller = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (opened) => Effect.sync(() => opened.abort())
  )
  return yield* Effect.tryPromise({
    try: () => send(controller.signal),
    catch: (cause) => new Unanswered({ cause })
  }).pipe(
    Effect.catch(({ cause }) => Effect.flatMap(requestError(peer, cause), Effect.fail)),
    Effect.timeoutOrElse({
      duration: answerTimeout,
      orElse: () =>
        Effect.fail(exchangeError(peer, "retryable", `${peer.url} did not answer within ${answerTimeout}`))
    })
  )
})
