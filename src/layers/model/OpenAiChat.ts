/**
 * Models behind an OpenAI-compatible chat completion. The SDK would take a cut stream for a finished one and print what
 * it cannot parse.
 */
import { openAiFold } from "../../domain/model/OpenAiFold.ts"
import { openAiRequest } from "./OpenAiRequest.ts"
import { sdkModel, sdkTimeoutMs, type Target } from "./SdkModel.ts"
import { providerFetch } from "./Transport.ts"

export const openAiChat = (target: Target) => {
  const { endpoint, model, provider, row } = target
  return sdkModel(target, {
    // Everything that the SDK would otherwise take from the environment is said here.
    load: async (secret) => {
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
    },
    send: (client, request, signal) =>
      client.chat.completions
        .create(openAiRequest(request, { provider, model, host: endpoint.host, row }), { signal })
        .asResponse(),
    fold: openAiFold
  })
}
