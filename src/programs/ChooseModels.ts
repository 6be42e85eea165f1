/**
 * Which models a run asks: command line before environment before configuration.
 */
import { Effect } from "effect"
import { refuse, type Refusal } from "../domain/Refusal.ts"
import {
  isProviderName,
  laterProviders,
  providerNames,
  providers,
  type ProviderName
} from "../domain/model/Providers.ts"
import type { RunRequest } from "../domain/Request.ts"
import type { ModelSpec } from "../services/Model.ts"
import { Settings } from "../services/Settings.ts"

export interface ModelRequestSpec {
  readonly provider: string | null
  readonly model: string | null
  readonly api_url: string | null
  readonly fallback_models: ReadonlyArray<string>
}

const providerOf = (name: string): Effect.Effect<ProviderName, Refusal> =>
  isProviderName(name)
    ? Effect.succeed(name)
    : Effect.fail(
        refuse(
          laterProviders.includes(name)
            ? `the provider ${name} is not in this version; there are: ${providerNames.join(", ")}`
            : `there is no provider ${JSON.stringify(name)}; there are: ${providerNames.join(", ")}`
        )
      )

/** `provider/model`, where the prefix is a provider; anything else is a model id, slashes included. */
const split = (spec: string): { readonly provider: string | null; readonly model: string } => {
  const slash = spec.indexOf("/")
  const prefix = slash === -1 ? "" : spec.slice(0, slash)
  return isProviderName(prefix) || laterProviders.includes(prefix)
    ? { provider: prefix, model: spec.slice(slash + 1) }
    : { provider: null, model: spec }
}

const defaultProvider: ProviderName = "openai-compatible"

/**
 * A model as the user names it. Beside an explicit provider the text is that provider's own id, unless it starts with the
 * provider's name; a prefix that names another provider is refused where ids have no slash.
 */
const namedModel = Effect.fnUntraced(function* (spec: string, explicit: string | null) {
  const parts = split(spec)
  if (explicit === null || parts.provider === null || parts.provider === explicit) return parts
  if (!isProviderName(explicit) || providers[explicit].slashed_ids) return { provider: explicit, model: spec }
  return yield* refuse(`--provider ${explicit} and --model ${spec} name two providers: keep one`)
})

/** The models in the order in which they are tried. */
export const chooseModels = Effect.fn("ChooseModels.chooseModels")(function* (
  request: ModelRequestSpec
): Effect.fn.Return<readonly [ModelSpec, ...ReadonlyArray<ModelSpec>], Refusal, Settings> {
  const settings = yield* Settings
  const config = yield* settings.config.pipe(Effect.mapError((error) => refuse(error.message)))
  const specified = request.model ?? settings.model
  const explicit = request.provider ?? settings.provider
  const named = specified === null ? null : yield* namedModel(specified, explicit)
  const configured =
    config.model === undefined ? null : yield* namedModel(config.model, config.provider ?? null)
  const configuredProvider = configured?.provider ?? config.provider ?? defaultProvider
  const provider = yield* providerOf(explicit ?? named?.provider ?? configuredProvider)
  // A configured model or URL belongs to the configured provider: it is never sent to another one.
  const sameAsConfig = configuredProvider === provider
  const model = named?.model ?? (sameAsConfig ? configured?.model : undefined)
  if (model === undefined || model.trim() === "") {
    return yield* refuse(
      `no model is set for ${provider}: give --model, set LOOPLANE_MODEL, or put "model" into ${settings.config_path}`
    )
  }
  const primary: ModelSpec = {
    provider,
    model,
    api_url:
      request.api_url ??
      settings.api_url ??
      (sameAsConfig ? config.api_url : undefined) ??
      settings.baseUrl(provider),
    api_key: settings.apiKey(provider)
  }
  const fallbacks = yield* Effect.forEach(
    request.fallback_models.length > 0 ? request.fallback_models : (config.fallback_models ?? []),
    Effect.fnUntraced(function* (text) {
      const fallback = split(text)
      if (fallback.provider === null || fallback.model.trim() === "") {
        return yield* refuse(
          `--fallback-model ${JSON.stringify(text)}: write provider/model, as in anthropic/claude-sonnet-5`
        )
      }
      const name = yield* providerOf(fallback.provider)
      return {
        provider: name,
        model: fallback.model,
        api_url: name === provider ? primary.api_url : settings.baseUrl(name),
        api_key: settings.apiKey(name)
      } satisfies ModelSpec
    })
  )
  return [primary, ...fallbacks]
})

/** What the user says differently when a run is gone on with; null where nothing is said. */
export interface ModelChange {
  readonly provider: string | null
  readonly model: string | null
  readonly api_url: string | null
}

/**
 * The models of a run that was there before, the one that answered last first. A change takes that one's place; what it
 * does not say stays as recorded. Keys come from this machine's settings.
 */
export const recordedModels = Effect.fn("ChooseModels.recordedModels")(function* (
  { models }: RunRequest,
  change: ModelChange
): Effect.fn.Return<readonly [ModelSpec, ...ReadonlyArray<ModelSpec>], Refusal, Settings> {
  const settings = yield* Settings
  const spec = Effect.fnUntraced(function* (name: string, model: string, api_url: string | null) {
    const provider = yield* providerOf(name)
    return { provider, model, api_url, api_key: settings.apiKey(provider) } satisfies ModelSpec
  })
  const [first, ...rest] = models
  const changed = change.provider !== null || change.model !== null || change.api_url !== null
  const named = change.model === null ? null : yield* namedModel(change.model, change.provider)
  const provider = change.provider ?? named?.provider ?? first.provider
  const same = provider === first.provider
  const model = named?.model ?? (same ? first.model : null)
  if (model === null) return yield* refuse(`which model of ${provider}? Say it with --model`)
  const primary = changed
    ? yield* spec(provider, model, change.api_url ?? (same ? first.endpoint : null))
    : yield* spec(first.provider, first.model, first.endpoint)
  return [primary, ...(yield* Effect.forEach(rest, (each) => spec(each.provider, each.model, each.endpoint)))]
})
