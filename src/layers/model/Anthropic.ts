/**
 * Models behind Anthropic Messages. The SDK is the transport; the answer's bytes are read by us, because it takes a
 * stream without its last event for a finished one.
 */
import { Effect, Redacted, Stream } from "effect"
import { anthropicFold } from "../../domain/model/AnthropicFold.ts"
import { anthropicMaxTokens } from "../../domain/model/Providers.ts"
import type { Model } from "../../services/Model.ts"
import { answer } from "./Answer.ts"
import { anthropicRequest } from "./AnthropicRequest.ts"
import { sdkTimeoutMs, type Target } from "./OpenAiChat.ts"
import { providerFetch } from "./Transport.ts"

/** The version whose stream our fold is proved against; gateways know it, and the service keeps what a version says. */
export const apiVersion = "2023-06-01"

export const anthropicMessages = Effect.fn("Anthropic.make")(function* (
  target: Target
): Effect.fn.Return<Model> {
  const { endpoint, model, provider } = target
  const maxTokens = target.row.max_tokens ?? anthropicMaxTokens
  const secret = Redacted.value(target.key)
  const peer = { provider, model, url: endpoint.url, secret }
  // Everything that the SDK would otherwise take from the environment is said here.
  const client = yield* Effect.cached(
    Effect.promise(async () => {
      const { Anthropic } = await import("@anthropic-ai/sdk")
      return new Anthropic({
        apiKey: secret,
        authToken: null,
        webhookKey: null,
        baseURL: endpoint.url,
        maxRetries: 0,
        timeout: sdkTimeoutMs,
        logLevel: "off",
        openTelemetry: false,
        defaultHeaders: { "x-api-key": secret, authorization: null, "anthropic-version": apiVersion },
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
          answer(peer, anthropicFold, request, (signal) =>
            // Not `messages.create`, which prints a warning for models that it deems old.
            sdk
              .post("/v1/messages", {
                body: anthropicRequest(request, { provider, model, maxTokens }),
                stream: true,
                signal
              })
              .asResponse()
          )
        )
      )
  }
})
