/**
 * Models that answer from a script: for tests and for embedders, and, with recorded turns, for the demo.
 */
import { Effect, Ref, Schema, Stream } from "effect"
import { callIds, ModelTurn, type FinishReason, type Reasoning } from "../../domain/Conversation.ts"
import { ToolCallId } from "../../domain/Ids.ts"
import { uniqueIds } from "../../domain/model/Fold.ts"
import { modelError, ModelError } from "../../domain/ModelError.ts"
import { zero, type Usage } from "../../domain/Usage.ts"
import type { Model, ModelEvent, ModelRequest } from "../../services/Model.ts"

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
    tool_calls: calls.map(({ arguments: given, ...call }, at) => ({
      ...call,
      id: ToolCallId.make(ids[at] ?? `call_${at}`),
      arguments: given ?? {}
    })),
    finish_reason: scripted.finish_reason ?? (calls.length > 0 ? "tool_use" : "stop"),
    ...(scripted.refusal === undefined ? {} : { refusal: scripted.refusal }),
    usage: { ...zero, ...scripted.usage }
  }
}

const play = (
  scripted: ScriptedTurn,
  request: ModelRequest,
  who: { readonly provider: string; readonly model: string },
  size: number
): Stream.Stream<ModelEvent, ModelError> => {
  const turn = toTurn(scripted, request)
  const thoughts = turn.reasoning.flatMap((each) => pieces(each.text, size))
  const deltas: ReadonlyArray<ModelEvent> = [
    ...thoughts.map((text) => ({ type: "reasoning", text }) as const),
    ...pieces(turn.text, size).map((text) => ({ type: "text", text }) as const)
  ]
  const broken =
    scripted.break_with ??
    modelError({ ...who, kind: "truncated_stream", message: "the script breaks off here" })
  const steps = [...deltas, { type: "completed", turn } as const].map((event, at) =>
    Effect.gen(function* () {
      if (scripted.gate !== undefined && at === (scripted.gate_before ?? 0)) yield* scripted.gate
      if (at === scripted.stall_after) return yield* Effect.never
      if (at === scripted.break_after) return yield* broken
      return event
    })
  )
  return Stream.fromIterable(steps).pipe(
    Stream.rechunk(1),
    Stream.mapEffect((step) => step)
  )
}

/**
 * A model that plays one step a request and remembers every request. When the script is used up it fails with kind
 * `provider`, which no retry mends.
 */
export const scriptedModel = (script: Script, options: ScriptedOptions = {}): ScriptedModel => {
  const who = { provider: options.provider ?? "scripted", model: options.model ?? "scripted" }
  const requests = Ref.makeUnsafe<ReadonlyArray<ModelRequest>>([])
  const next = Effect.fnUntraced(function* (request: ModelRequest) {
    const call = (yield* Ref.updateAndGet(requests, (all) => [...all, request])).length - 1
    const step = script[call]
    const chosen = typeof step === "function" ? step(request, call) : step
    if (chosen === undefined)
      return yield* modelError({
        ...who,
        kind: "provider",
        retryable: false,
        message: `the script is exhausted: it has ${script.length} turns and was asked for one more`
      })
    return chosen instanceof ModelError
      ? yield* chosen
      : play(chosen, request, who, Math.max(1, options.piece ?? 16))
  })
  return {
    ...who,
    endpoint: null,
    warm: Effect.void,
    requests: Ref.get(requests),
    stream: (request) => Stream.unwrap(next(request))
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
