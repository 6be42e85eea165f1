/**
 * One turn: the conversation goes out, one whole answer comes back, under retry and fallback.
 */
import { Duration, Effect, Option, Random, Ref, Stream } from "effect"
import { pairToolCalls, type ModelTurn } from "../domain/Conversation.ts"
import type { EventData } from "../domain/Event.ts"
import { modelError, type ModelError } from "../domain/ModelError.ts"
import type { Model, ModelRequest } from "../services/Model.ts"
import { Observer } from "../services/Observer.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import { Wire } from "../services/Wire.ts"
import type { Stopwatch } from "./Stopwatch.ts"
import { stickyFallback } from "./policies/Fallback.ts"
import { RetryPolicy, retrySchedule } from "./policies/Retry.ts"

export interface Asking {
  readonly journal: Journal
  readonly candidates: readonly [Model, ...ReadonlyArray<Model>]
  /** Where `candidates` stands: moves on a fallback and stays there. */
  readonly position: Ref.Ref<number>
  readonly stopwatch: Stopwatch
}

/** One attempt: the stream's deltas are shown, its terminal event is the answer. */
const attempt = Effect.fnUntraced(function* (
  model: Model,
  request: ModelRequest,
  show: (kind: "text" | "reasoning", text: string) => Effect.Effect<void>
) {
  const last = yield* model.stream(request).pipe(
    Stream.tap((event) => (event.type === "completed" ? Effect.void : show(event.type, event.text))),
    Stream.filter((event) => event.type === "completed"),
    Stream.runLast
  )
  if (Option.isSome(last)) return last.value.turn
  return yield* modelError({
    provider: model.provider,
    model: model.model,
    kind: "truncated_stream",
    message: "the answer ended before it was complete"
  })
})

/** Asks for one turn and journals it. The request and every wait are in the journal before they happen. */
export const ask = Effect.fn("Turn.ask")(function* (
  asking: Asking,
  step: number,
  lane: EventData<"model.requested">["lane"]
): Effect.fn.Return<ModelTurn, ModelError | StoreError> {
  const { candidates, journal, position, stopwatch } = asking
  const observer = yield* Observer
  const policy = yield* RetryPolicy
  const state = yield* journal.state
  const request: ModelRequest = {
    system: state.prompt?.sections ?? [],
    conversation: pairToolCalls(state.conversation),
    tools: lane === "primary" ? (state.prompt?.tools ?? []) : []
  }
  const attempts = yield* Ref.make(0)

  const once = (model: Model) =>
    Ref.updateAndGet(attempts, (n) => n + 1).pipe(
      Effect.flatMap((number) => {
        const who = { step, attempt: number, provider: model.provider, model: model.model }
        return attempt(model, request, (kind, text) =>
          observer.delta({ step, attempt: number, kind, text })
        ).pipe(
          Effect.updateService(Wire, (wire) => ({
            ...wire,
            // A journal that cannot be written fails whatever comes next as well.
            keep: (exchange) =>
              Effect.ignore(journal.append({ event_type: "model.exchanged", data: { ...who, exchange } }))
          }))
        )
      })
    )
  const announce = (wait: { attempt: number; delay: Duration.Duration; error: ModelError }) =>
    journal
      .append({
        event_type: "model.retry",
        data: {
          step,
          attempt: wait.attempt,
          delay_ms: Duration.toMillis(wait.delay),
          error: wait.error.facts
        }
      })
      .pipe(Effect.andThen(journal.barrier))

  const current = candidates[yield* Ref.get(position)] ?? candidates[0]
  yield* journal.append({
    event_type: "model.requested",
    data: {
      step,
      provider: current.provider,
      model: current.model,
      lane,
      active_ms: yield* stopwatch.elapsed_ms
    }
  })
  yield* journal.barrier

  const answered = yield* stickyFallback({
    candidates,
    position,
    ask: (model) =>
      once(model).pipe(
        Effect.retry(retrySchedule(policy, announce)),
        // The waits of a step are the same whenever it is played.
        Random.withSeed(`${journal.run_id} ${step}`),
        Effect.map((turn) => ({ model, turn }))
      ),
    onFallback: (from, to, error) =>
      journal
        .append({
          event_type: "model.fallback",
          data: {
            step,
            from_provider: from.provider,
            from_model: from.model,
            to_provider: to.provider,
            to_model: to.model,
            error: error.facts
          }
        })
        .pipe(Effect.andThen(journal.barrier))
  }).pipe(
    Effect.tapError((error) =>
      error._tag === "ModelError"
        ? journal.append({ event_type: "model.failed", data: { step, error: error.facts } })
        : Effect.void
    )
  )
  yield* journal.append({
    event_type: "model.completed",
    data: {
      step,
      provider: answered.model.provider,
      model: answered.model.model,
      lane,
      turn: answered.turn
    }
  })
  return answered.turn
})
