import type { Gate } from "./gate.ts"

/** The wire format of the endpoint that was called. `other` takes only raw answers and faults. */
export type Protocol = "openai-chat" | "anthropic" | "other"

export type JsonRecord = Readonly<Record<string, unknown>>

export interface ToolCallSpec {
  /** Made from the request's number and the call's place when absent. */
  readonly id?: string
  readonly name: string
  /** An object is serialised; a string goes over the wire as it is, so that it may be broken JSON. */
  readonly arguments: JsonRecord | string
}

/** Tokens. `input` counts everything that went in, cached tokens and cache writes included. */
export interface UsageSpec {
  readonly input?: number
  readonly cached?: number
  readonly cacheWrite?: number
  readonly output?: number
  readonly reasoning?: number
}

/** The model's turn, apart from any wire format. */
export interface TurnSpec {
  readonly text?: string
  readonly reasoning?: string
  readonly toolCalls?: ReadonlyArray<ToolCallSpec>
  /**
   * `stop`, `tool_calls`, `length`, `refusal`, `content_filter` and `pause` are translated for the endpoint; any other
   * string is sent as it is. Absent: `tool_calls` when there are calls, otherwise `stop`.
   */
  readonly finish?: string
  readonly usage?: UsageSpec
  /** Characters per delta of text, reasoning and arguments. Absent: 16, arguments in three parts. */
  readonly chunkSize?: number
  /** `false`: the stream ends cleanly without its terminal event. */
  readonly terminal?: boolean
}

/** What a renderer needs to know of the request. */
export interface RenderContext {
  readonly protocol: Protocol
  readonly model: string
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Number of the request among the calls of this server, from 0. */
  readonly index: number
}

/** One complete answer; `chunks` are written one by one unless a delivery cuts them anew. */
export interface Rendered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: ReadonlyArray<Uint8Array>
}

/** How the bytes of a body are cut into writes: byte lengths (the rest goes last) or a named rule. */
export type Chunks =
  | ReadonlyArray<number>
  | "whole"
  | "1 byte each"
  | "cut after every \\r"
  | "split every character"

/** What happens when the delivery has written its last byte. */
export type Ending =
  | { readonly _tag: "Complete" }
  | { readonly _tag: "HangUp" }
  | { readonly _tag: "Cut"; readonly after: number; readonly reset: boolean }
  | { readonly _tag: "End"; readonly after: number }
  | { readonly _tag: "Stall"; readonly after: number | "before headers"; readonly release: Gate | undefined }

export interface Delivery {
  readonly chunks: Chunks | undefined
  /** Gate `n` is waited for before chunk `n` is written; the headers are already out. */
  readonly gates: ReadonlyMap<number, Gate>
  readonly ending: Ending
}

/** One answer of the script. */
export interface Step {
  readonly render: (context: RenderContext) => Rendered
  readonly delivery: Delivery
}

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const asArray = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** `text` in parts of `size` code points; never an empty part. */
export const slices = (text: string, size: number): ReadonlyArray<string> => {
  const points = Array.from(text)
  const step = Math.max(1, Math.floor(size))
  const parts: Array<string> = []
  for (let at = 0; at < points.length; at += step) parts.push(points.slice(at, at + step).join(""))
  return parts
}

export const textSlices = (text: string, turn: TurnSpec) => slices(text, turn.chunkSize ?? 16)

/** Arguments always travel in several deltas when they are long enough to be cut. */
export const argumentSlices = (text: string, turn: TurnSpec) =>
  slices(text, turn.chunkSize ?? Math.ceil(text.length / 3))

export const argumentText = (call: ToolCallSpec) =>
  typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)

export const callId = (call: ToolCallSpec, context: RenderContext, place: number) =>
  call.id ?? `call_${context.index}_${place}`

export const usageOf = (turn: TurnSpec) => ({
  input: turn.usage?.input ?? 100,
  cached: turn.usage?.cached ?? 0,
  cacheWrite: turn.usage?.cacheWrite ?? 0,
  output: turn.usage?.output ?? 20,
  reasoning: turn.usage?.reasoning ?? 0
})

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const jsonAnswer = (
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {}
): Rendered => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  chunks: [bytes(JSON.stringify(body))]
})

export const sseAnswer = (
  chunks: ReadonlyArray<string>,
  headers: Readonly<Record<string, string>>
): Rendered => ({
  status: 200,
  headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...headers },
  chunks: chunks.map(bytes)
})
