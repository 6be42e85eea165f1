/**
 * Models behind an OpenAI-compatible chat completion. The SDK is the transport; the answer's bytes are read by us,
 * because it takes a cut stream for a finished one and prints what it cannot parse.
 */
import { Effect, Redacted, Stream } from "effect"
import type { Endpoint } from "../../domain/model/Endpoint.ts"
import { openAiFold } from "../../domain/model/OpenAiFold.ts"
import type { Provider } from "../../domain/model/Providers.ts"
import type { Model } from "../../services/Model.ts"
import { answer } from "./Answer.ts"
import { openAiRequest } from "./OpenAiRequest.ts"
import { providerFetch } from "./Transport.ts"

/** What a layer needs to reach a provider's model. */
export interface Target {
  readonly provider: string
  readonly model: string
  readonly endpoint: Endpoint
  readonly key: Redacted.Redacted
  readonly row: Provider
}

/** The time-outs are ours: the SDK's is set to the longest that a timer holds. */
export const sdkTimeoutMs = 2_147_483_647

export const openAiChat = Effect.fn("OpenAiChat.make")(function* (target: Target): Effect.fn.Return<Model> {
  const { endpoint, model, provider, row } = target
  const secret = Redacted.value(target.key)
  const peer = { provider, model, url: endpoint.url, secret }
  // Everything that the SDK would otherwise take from the environment is said here.
  const client = yield* Effect.cached(
    Effect.promise(async () => {
      const { OpenAI } = await import("openai")
      return new OpenAI({
        apiKey: secret,
        adminAPIKey: null,
        organization: null,
        project: null,
        webhookSecret: null,
        baseURL: endpoint.url,
        maxRetries: 0,
        timeout: sdkTimeoutMs,
        logLevel: "off",
        fetch: providerFetch
      })
    })
  )
  return {
    provider,
    model,
    endpoint: target.endpoint.url,
    warm: Effect.asVoid(client),
    stream: (request) =>
      Stream.unwrap(
        Effect.map(client, (sdk) =>
          answer(peer, openAiFold, request, (signal) =>
            sdk.chat.completions
              .create(openAiRequest(request, { provider, model, host: endpoint.host, row }), { signal })
              .asResponse()
          )
        )
      )
  }
})
