import { anthropicError, renderAnthropic } from "./anthropic.ts"
import type { Gate } from "./gate.ts"
import { openAiError, renderOpenAi } from "./openai.ts"
import {
  bytes,
  jsonAnswer,
  type Chunks,
  type Ending,
  type Protocol,
  type Rendered,
  type RenderContext,
  type Step,
  type TurnSpec
} from "./types.ts"

const answer = (render: Step["render"], chunks?: Chunks): Step => ({
  render,
  delivery: { chunks, gates: new Map(), ending: { _tag: "Complete" } }
})

/** An error body in the provider's own shape. */
export const errorAnswer = (
  protocol: Protocol,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {}
): Rendered =>
  jsonAnswer(
    status,
    protocol === "anthropic" ? anthropicError(status, message) : openAiError(status, message),
    headers
  )

/** A turn of the model, in the wire format of whatever endpoint is called. */
export const turn = (spec: TurnSpec): Step =>
  answer((context: RenderContext) => {
    switch (context.protocol) {
      case "openai-chat":
        return renderOpenAi(spec, context)
      case "anthropic":
        return renderAnthropic(spec, context)
      case "other":
        return errorAnswer("other", 404, "this endpoint takes raw answers only")
    }
  })

export interface RawSpec {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
  readonly chunks?: Chunks
}

/** Exactly these bytes, whatever was asked. Without `chunks` they go out in one write. */
export const raw = (spec: RawSpec): Step => {
  const body = typeof spec.body === "string" ? bytes(spec.body) : spec.body
  const headers = spec.headers ?? { "content-type": "text/event-stream" }
  return answer(() => ({ status: spec.status ?? 200, headers, chunks: [body] }), spec.chunks)
}

/** A refusal or failure with the provider's error body. `headers` carry hints such as `retry-after`. */
export const status = (
  code: number,
  options: { readonly headers?: Readonly<Record<string, string>>; readonly message?: string } = {}
): Step =>
  answer(({ protocol }) =>
    errorAnswer(protocol, code, options.message ?? `scripted failure ${code}`, options.headers)
  )

/** What a proxy answers in place of the provider. */
export const html = (code = 502): Step =>
  raw({
    status: code,
    headers: { "content-type": "text/html" },
    body: `<!doctype html><html><head><title>${code}</title></head><body><h1>Bad gateway</h1></body></html>`
  })

const ending = (step: Step, next: Ending): Step => ({ ...step, delivery: { ...step.delivery, ending: next } })

const filler = (): Step => turn({ text: "An answer that is long enough to be interrupted in the middle." })

/**
 * The connection dies after `after` bytes of the body, which are all written before. A body that is shorter goes out
 * whole and the connection dies in place of its proper end. `reset` sends RST in place of FIN.
 */
export const cutAfter = (after: number, step = filler(), options: { readonly reset?: boolean } = {}): Step =>
  ending(step, { _tag: "Cut", after, reset: options.reset ?? false })

/** The response ends properly after `after` bytes of the body, as if there were no more. */
export const endAfter = (after: number, step = filler()): Step => ending(step, { _tag: "End", after })

/** The connection dies before any byte of an answer. */
export const hangUp = (): Step => ending(filler(), { _tag: "HangUp" })

/**
 * Headers and `after` bytes (64 when absent), then nothing until the client goes away, or until `release` opens and the
 * rest follows.
 */
export const stall = (
  options: {
    readonly after?: number | "before headers"
    readonly step?: Step
    readonly release?: Gate
  } = {}
): Step =>
  ending(options.step ?? filler(), {
    _tag: "Stall",
    after: options.after ?? 64,
    release: options.release
  })

/**
 * Waits at gates that the test opens: one gate holds the first chunk; a list holds chunk 0, 1, …; a map holds the
 * chunks that it names. The headers go out before.
 */
export const gated = (step: Step, gates: Gate | ReadonlyArray<Gate> | ReadonlyMap<number, Gate>): Step => {
  const byChunk =
    gates instanceof Map ? gates : new Map(Array.isArray(gates) ? gates.entries() : [[0, gates]])
  return { ...step, delivery: { ...step.delivery, gates: byChunk } }
}

/** Cuts the answer's bytes anew. */
export const chunked = (step: Step, chunks: Chunks): Step => ({
  ...step,
  delivery: { ...step.delivery, chunks }
})

/** Every character of more than one byte arrives in two writes. */
export const splitUtf8 = (step: Step): Step => chunked(step, "split every character")
