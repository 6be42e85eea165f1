/**
 * What the user set outside the command line: environment and configuration file, decoded once.
 */
import { Context, type Effect, type Redacted, Schema } from "effect"
import { SandboxBackend } from "../domain/SandboxRule.ts"
import { Network } from "../domain/Task.ts"
import type { ProviderName } from "../domain/model/Providers.ts"

export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  message: Schema.String
}) {}

/** `config.json`. Unknown keys are refused; it never holds a secret. */
export const Config = Schema.Struct({
  provider: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  api_url: Schema.optionalKey(Schema.String),
  fallback_models: Schema.optionalKey(Schema.Array(Schema.String)),
  setup: Schema.optionalKey(Schema.Array(Schema.String)),
  check_network: Schema.optionalKey(Network),
  setup_network: Schema.optionalKey(Network),
  sandbox_backend: Schema.optionalKey(SandboxBackend),
  /** Directories that commands in the sandbox may read as well, absolute or below `~/`. */
  sandbox_read_roots: Schema.optionalKey(
    Schema.Array(
      Schema.String.check(
        Schema.isPattern(/^(?:~?\/)[^\0-\x1f]*$/, { expected: "an absolute path, or one below ~/" })
      )
    ).check(Schema.isMaxLength(64))
  )
})
export type Config = typeof Config.Type

export class Settings extends Context.Service<
  Settings,
  {
    /** Absolute. */
    readonly run_root: string
    readonly config_path: string
    /** What can be made again; null when there is no place for it. */
    readonly cache_root: string | null
    /** Reads and decodes the configuration file; an absent one is empty. */
    readonly config: Effect.Effect<Config, SettingsError>
    readonly provider: string | null
    readonly model: string | null
    readonly api_url: string | null
    /** The key for a provider, from its environment variables; null when none is set. */
    readonly apiKey: (provider: ProviderName) => Redacted.Redacted | null
    /** The environment's own base URL of a provider (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, OLLAMA_HOST). */
    readonly baseUrl: (provider: ProviderName) => string | null
  }
>()("looplane/services/Settings") {}
