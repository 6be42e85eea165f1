/**
 * Models that answer from a script: for tests and for embedders, and, with recorded turns, for the demo.
 */
import { Clock, Effect, Option, Ref, Schema, Stream } from "effect"
import { callIds, ModelTurn, type FinishReason, type Reasoning } from "../../domain/Conversation.ts"
import { ToolCallId } from "../../domain/Ids.ts"
import { uniqueIds } from "../../domain/model/Fold.ts"
import { modelError, ModelError, ModelErrorFacts } from "../../domain/ModelError.ts"
import { fromOctets, toOctets } from "../../domain/Octets.ts"
import { zero, type Usage } from "../../domain/Usage.ts"
import type { Exchange } from "../../domain/Wire.ts"
import type { Model, ModelEvent, ModelRequest } from "../../services/Model.ts"
import { Wire } from "../../services/Wire.ts"
import { digestOf } from "./Line.ts"

export interface ScriptedCall {
  /** Made from the conversation when absent, as a provider without ids would get it. */
  readonly id?: string
  readonly name: string
  readonly arguments?: Readonly<Record<string, unknown>>
  readonly invalid_arguments?: string
}

/** A turn, and what happens on its way. Pieces are the deltas of reasoning and text, counted from 0. */
export interface ScriptedTurn {
  readonly text?: string
  readonly reasoning?: ReadonlyArray<Reasoning>
  readonly tool_calls?: ReadonlyArray<ScriptedCall>
  /** `tool_use` when there are calls, else `stop`, when absent. */
  readonly finish_reason?: FinishReason
  readonly refusal?: string
  readonly usage?: Partial<Usage>
  /** Awaited before piece `gate_before`, which is the first one when absent. */
  readonly gate?: Effect.Effect<void>
  readonly gate_before?: number
  /** After so many pieces the stream never goes on. */
  readonly stall_after?: number
  /** After so many pieces the stream fails: as truncated, or with `break_with`. */
  readonly break_after?: number
  readonly break_with?: ModelError
}

export type ScriptedStep = ScriptedTurn | ModelError
export type Script = ReadonlyArray<ScriptedStep | ((request: ModelRequest, call: number) => ScriptedStep)>

export interface ScriptedOptions {
  readonly provider?: string
  readonly model?: string
  /** Characters of a piece. */
  readonly piece?: number
}

export interface ScriptedModel extends Model {
  /** Every request so far, in order. */
  readonly requests: Effect.Effect<ReadonlyArray<ModelRequest>>
}

const pieces = (text: string, size: number): ReadonlyArray<string> => {
  const points = Array.from(text)
  return Array.from({ length: Math.ceil(points.length / size) }, (_, at) =>
    points.slice(at * size, (at + 1) * size).join("")
  )
}

const toTurn = (scripted: ScriptedTurn, request: ModelRequest): ModelTurn => {
  const calls = scripted.tool_calls ?? []
  const ids = uniqueIds(
    calls.map((call) => call.id ?? null),
    new Set(callIds(request.conversation))
  )
  return {
    text: scripted.text ?? "",
    reasoning: scripted.reasoning ?? [],
    tool_calls: calls.map(({ arguments: given, id: _, name, ...rest }, at) => ({
      id: ToolCallId.make(ids[at] ?? `call_${at}`),
      name,
      arguments: given ?? {},
      ...rest
    })),
    finish_reason: scripted.finish_reason ?? (calls.length > 0 ? "tool_use" : "stop"),
    ...(scripted.refusal === undefined ? {} : { refusal: scripted.refusal }),
    usage: { ...zero, ...scripted.usage }
  }
}

interface Who {
  readonly provider: string
  readonly model: string
}

/** What an answer comes to: its turn, whole, or as far as it comes before an error. */
interface Coming {
  readonly turn: ModelTurn
  readonly end: "completed" | "silent" | ModelError
}

const deltasOf = (turn: ModelTurn, size: number): ReadonlyArray<ModelEvent> => [
  ...turn.reasoning
    .flatMap((each) => pieces(each.text, size))
    .map((text) => ({ type: "reasoning", text }) as const),
  ...pieces(turn.text, size).map((text) => ({ type: "text", text }) as const)
]

/** The turn as far as its first `count` pieces go. */
const beginning = (turn: ModelTurn, count: number, size: number): ModelTurn => {
  let left = count
  const taken = (text: string) => {
    const some = pieces(text, size).slice(0, left)
    left -= some.length
    return some.join("")
  }
  const reasoning = turn.reasoning.map((each) => ({ ...each, text: taken(each.text) }))
  return { ...turn, reasoning, text: taken(turn.text), tool_calls: [] }
}

const comingOf = (turn: ModelTurn, scripted: ScriptedTurn, who: Who, size: number): Coming => {
  const { break_after, stall_after } = scripted
  // A step past the last piece is the end of the turn itself.
  const end = deltasOf(turn, size).length
  if (stall_after !== undefined && stall_after <= Math.min(end, break_after ?? end))
    return { turn: beginning(turn, stall_after, size), end: "silent" }
  if (break_after === undefined || break_after > end) return { turn, end: "completed" }
  const error =
    scripted.break_with ??
    modelError({ ...who, kind: "truncated_stream", message: "the script breaks off here" })
  return { turn: beginning(turn, break_after, size), end: error }
}

const failed = (error: ModelError): Exchange["fault"] => ({
  kind: "failed",
  code: error.kind,
  message: JSON.stringify(error.facts)
})

/** What is kept of an answer that came, or, without a turn, of one that never began. */
const answered = (now: number, turn: ModelTurn | null, fault: Exchange["fault"]): Omit<Exchange, "sent"> => {
  const body = turn === null ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(turn))
  return {
    answered_at_ms: now,
    status: turn === null ? null : 200,
    headers: {},
    body: toOctets(body),
    pieces: turn === null ? [] : [body.length],
    fault
  }
}

const turnIn = Schema.decodeUnknownOption(Schema.fromJsonString(ModelTurn))
const factsIn = Schema.decodeUnknownOption(Schema.fromJsonString(ModelErrorFacts))

/** What a recording comes to: null when it is none of a scripted model. */
const recordedIn = (exchange: Exchange): Coming | ModelError | null => {
  const { body, fault, status } = exchange
  const error = fault?.kind === "failed" ? Option.getOrNull(factsIn(fault.message)) : null
  if (fault?.kind === "failed" && error === null) return null
  if (status === null) return error === null ? null : new ModelError(error)
  const turn = Option.getOrNull(turnIn(new TextDecoder().decode(fromOctets(body))))
  if (turn === null) return null
  return { turn, end: error !== null ? new ModelError(error) : fault === null ? "completed" : "silent" }
}

/**
 * A model that plays one step a request and remembers every request. When the script is used up it fails with kind
 * `provider`, which no retry mends. What a recording on its `Wire` holds is played in place of the script.
 */
export const scriptedModel = (script: Script, options: ScriptedOptions = {}): ScriptedModel => {
  const who = { provider: options.provider ?? "scripted", model: options.model ?? "scripted" }
  const size = Math.max(1, options.piece ?? 16)
  const requests = Ref.makeUnsafe<ReadonlyArray<ModelRequest>>([])

  const exhausted = modelError({
    ...who,
    kind: "provider",
    retryable: false,
    message: `the script is exhausted: it has ${script.length} turns and was asked for one more`
  })
  const foreign = modelError({
    ...who,
    kind: "protocol",
    retryable: false,
    message: "what was recorded is no answer of a scripted model"
  })

  const play = Effect.fnUntraced(function* (request: ModelRequest) {
    const call = (yield* Ref.updateAndGet(requests, (all) => [...all, request])).length - 1
    const wire = yield* Wire
    const recorded = wire.recorded === null ? null : yield* wire.recorded
    const now = yield* Clock.currentTimeMillis
    const { conversation, system, tools } = request
    const sent = digestOf(JSON.stringify({ system, conversation, tools }))
    const keep = (turn: ModelTurn | null, fault: Exchange["fault"]) =>
      wire.keep({ ...(recorded ?? answered(now, turn, fault)), sent })

    const scripted = script[call]
    const step =
      recorded !== null
        ? (recordedIn(recorded) ?? foreign)
        : ((typeof scripted === "function" ? scripted(request, call) : scripted) ?? exhausted)
    if (step instanceof ModelError) return yield* Effect.andThen(keep(null, failed(step)), step)
    const own = "end" in step ? {} : step
    const coming = "end" in step ? step : comingOf(toTurn(step, request), step, who, size)
    const { end, turn } = coming
    const last =
      end === "completed"
        ? Effect.as(keep(turn, null), { type: "completed", turn } as const)
        : end === "silent"
          ? Effect.never
          : Effect.andThen(keep(turn, failed(end)), end)
    const events = [...deltasOf(turn, size).map((delta) => Effect.succeed(delta)), last]
    const steps = events.map((event, at) =>
      own.gate !== undefined && at === (own.gate_before ?? 0) ? Effect.andThen(own.gate, event) : event
    )
    return Stream.fromIterable(steps).pipe(
      Stream.rechunk(1),
      Stream.mapEffect((each) => each)
    )
  })
  return {
    ...who,
    endpoint: null,
    warm: Effect.void,
    requests: Ref.get(requests),
    stream: (request) => Stream.unwrap(play(request))
  }
}

const RecordedTurns = Schema.Array(ModelTurn)

/** A model that plays turns recorded as JSON: an array of `ModelTurn`. Fails when they are something else. */
export const recordedModel = Effect.fn("Scripted.recordedModel")(function* (
  recorded: unknown,
  options: ScriptedOptions = {}
): Effect.fn.Return<ScriptedModel, Schema.SchemaError> {
  const turns = yield* Schema.decodeUnknownEffect(RecordedTurns)(recorded)
  return scriptedModel(turns, { provider: "recorded", model: "recorded", ...options })
})
