/**
 * The models of a run that is played again. Their answers come from the `Wire` of whoever asks; they hold no key.
 */
import { Effect, Stream } from "effect"
import type { ModelConfigError } from "../../domain/model/Endpoint.ts"
import { isProviderName } from "../../domain/model/Providers.ts"
import { modelError } from "../../domain/ModelError.ts"
import type { Model } from "../../services/Model.ts"
import { Wire } from "../../services/Wire.ts"
import { makeModel, placeholderKey } from "./Providers.ts"
import { scriptedModel } from "./Scripted.ts"

export interface RecordedModel {
  readonly provider: string
  readonly model: string
  /** As the run recorded it; null for a model that had none. */
  readonly endpoint: string | null
  readonly allow_custom_endpoint?: boolean
}

/** Nothing of a playback may leave, also when nothing is there to play. */
const offline = (model: Model): Model => ({
  ...model,
  stream: (request) =>
    Stream.unwrap(
      Effect.map(Wire, ({ recorded }) =>
        recorded !== null
          ? model.stream(request)
          : Stream.fail(
              modelError({
                provider: model.provider,
                model: model.model,
                kind: "provider",
                retryable: false,
                message: "no answer is recorded for this request"
              })
            )
      )
    )
})

/**
 * The model of a recorded run: the adapter that read its answers, without a key and without a network. A provider that
 * is none of ours, or a model without an endpoint, was a scripted one.
 */
export const replayedModel = Effect.fn("Replayed.replayedModel")(function* (
  recorded: RecordedModel
): Effect.fn.Return<Model, ModelConfigError> {
  const { endpoint, model, provider } = recorded
  if (endpoint === null || !isProviderName(provider)) return offline(scriptedModel([], { provider, model }))
  return offline(
    yield* makeModel({
      provider,
      model,
      apiUrl: endpoint,
      apiKey: placeholderKey,
      allowCustomEndpoint: recorded.allow_custom_endpoint ?? false
    })
  )
})
