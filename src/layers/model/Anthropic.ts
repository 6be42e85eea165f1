/**
 * Models behind Anthropic Messages. The SDK would take a stream without its last event for a finished one.
 */
import { anthropicFold } from "../../domain/model/AnthropicFold.ts"
import { anthropicMaxTokens } from "../../domain/model/Providers.ts"
import { anthropicRequest } from "./AnthropicRequest.ts"
import { sdkModel, sdkTimeoutMs, type Target } from "./SdkModel.ts"
import { providerFetch } from "./Transport.ts"

/** The version whose stream our fold is proved against; gateways know it, and the service keeps what a version says. */
const apiVersion = "2023-06-01"

export const anthropicMessages = (target: Target) => {
  const { endpoint, model, provider } = target
  const maxTokens = target.row.max_tokens ?? anthropicMaxTokens
  return sdkModel(target, {
    // Everything that the SDK would otherwise take from the environment is said here.
    load: async (secret) => {
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
    },
    // Not `messages.create`, which prints a warning for models that it deems old.
    send: (client, request, signal) =>
      client
        .post("/v1/messages", {
          body: anthropicRequest(request, { provider, model, maxTokens }),
          stream: true,
          signal
        })
        .asResponse(),
    fold: anthropicFold
  })
}
