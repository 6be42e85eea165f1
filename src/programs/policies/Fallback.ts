/**
 * Which model is asked next when one has failed for good.
 */
import { Effect, Ref } from "effect"
import { ModelError } from "../../domain/ModelError.ts"
import type { Model } from "../../services/Model.ts"

/**
 * Asks the current candidate; when it fails with an error that another model may not have, moves on to the next one
 * and stays there: `position` lives as long as the run, so later turns start at the model that answered last.
 */
export const stickyFallback = <A, E, R, E2, R2>(options: {
  readonly candidates: readonly [Model, ...ReadonlyArray<Model>]
  readonly position: Ref.Ref<number>
  readonly ask: (model: Model) => Effect.Effect<A, ModelError | E, R>
  readonly onFallback: (from: Model, to: Model, error: ModelError) => Effect.Effect<void, E2, R2>
}): Effect.Effect<A, ModelError | E | E2, R | R2> =>
  Effect.gen(function* () {
    const at = yield* Ref.get(options.position)
    const model = options.candidates[at] ?? options.candidates[0]
    const next = options.candidates[at + 1]
    return yield* options.ask(model).pipe(
      Effect.catchIf(
        (error): error is ModelError => error instanceof ModelError,
        (error) =>
          next === undefined || !error.fallbackable
            ? Effect.fail(error)
            : Ref.set(options.position, at + 1).pipe(
                Effect.andThen(options.onFallback(model, next, error)),
                Effect.andThen(stickyFallback(options))
              )
      )
    )
  })
