/**
 * From what the user asked for to a model, or to one line that says what is missing.
 */
import { Effect, Redacted, Result } from "effect"
import {
  anthropicEndpoint,
  ModelConfigError,
  ollamaUrl,
  openAiEndpoint,
  type Endpoint
} from "../../domain/model/Endpoint.ts"
import {
  isProviderName,
  laterProviders,
  providerNames,
  providers,
  type ProviderName
} from "../../domain/model/Providers.ts"
import type { Model } from "../../services/Model.ts"
import { anthropicMessages } from "./Anthropic.ts"
import { openAiChat } from "./OpenAiChat.ts"

export { ModelConfigError }

export interface ModelOptions {
  readonly provider: string
  readonly model: string
  /** Null for the provider's own address. */
  readonly apiUrl: string | null
  readonly apiKey: Redacted.Redacted | null
  /** `--allow-custom-provider-endpoint` */
  readonly allowCustomEndpoint: boolean
}

const fail = (message: string) => Result.fail(new ModelConfigError({ message }))

const named = (provider: string): Result.Result<ProviderName, ModelConfigError> => {
  if (isProviderName(provider)) return Result.succeed(provider)
  if (laterProviders.includes(provider)) return fail(`provider ${provider} comes later`)
  return fail(`unknown provider ${JSON.stringify(provider)}: use one of ${providerNames.join(", ")}`)
}

const endpointOf = (
  provider: ProviderName,
  options: ModelOptions
): Result.Result<Endpoint, ModelConfigError> => {
  const url = options.apiUrl ?? providers[provider].base_url
  switch (provider) {
    case "anthropic":
      return anthropicEndpoint(url, options.allowCustomEndpoint)
    case "ollama":
      return openAiEndpoint(ollamaUrl(url))
    default:
      return openAiEndpoint(url)
  }
}

/** What a server on this machine gets when the user has no key, and a recording always: clients cannot send none. */
export const placeholderKey = Redacted.make("looplane-needs-no-key")

const keyOf = (
  provider: ProviderName,
  endpoint: Endpoint,
  given: Redacted.Redacted | null
): Result.Result<Redacted.Redacted, ModelConfigError> => {
  const variable = providers[provider].key_env
  if (given === placeholderKey) return Result.succeed(placeholderKey)
  const key = given === null ? "" : Redacted.value(given).trim()
  // A key for a remote Ollama is nobody else's business.
  if (endpoint.loopback && (key === "" || provider === "ollama")) return Result.succeed(placeholderKey)
  if (key === "") return fail(`no key for ${provider}: set ${variable}`)
  if (!/^[\x21-\x7e]+$/.test(key))
    return fail(`the key in ${variable} holds characters that no key has; copy it again`)
  return Result.succeed(Redacted.make(key))
}

/** The model that the options name. Nothing is loaded and nobody is asked before it is used or warmed. */
export const makeModel = Effect.fn("Providers.makeModel")(function* (
  options: ModelOptions
): Effect.fn.Return<Model, ModelConfigError> {
  const provider = yield* Effect.fromResult(named(options.provider))
  const model = options.model.trim()
  if (model === "")
    return yield* new ModelConfigError({ message: `no model given for ${provider}: add --model NAME` })
  const endpoint = yield* Effect.fromResult(endpointOf(provider, options))
  const key = yield* Effect.fromResult(keyOf(provider, endpoint, options.apiKey))
  const row = providers[provider]
  const target = { provider, model, endpoint, key, secret: key !== placeholderKey, row }
  return yield* row.protocol === "anthropic" ? anthropicMessages(target) : openAiChat(target)
})
