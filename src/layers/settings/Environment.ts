/**
 * Settings from the environment and `config.json`, under the XDG base directories.
 */
import { Config as Env, Effect, FileSystem, Layer, Option, Path, PlatformError, Redacted, Schema } from "effect"
import { Config, Settings, SettingsError, type ProviderName } from "../../services/Settings.ts"

/** Of `config.json`, in bytes. */
const maxConfigBytes = 64 * 1024

/** Where each provider's key and base URL come from, first one that is set wins. */
export const providerVariables: Record<
  ProviderName,
  { readonly keys: ReadonlyArray<string>; readonly urls: ReadonlyArray<string> }
> = {
  "openai-compatible": { keys: ["OPENAI_API_KEY"], urls: ["OPENAI_BASE_URL"] },
  anthropic: { keys: ["ANTHROPIC_API_KEY"], urls: ["ANTHROPIC_BASE_URL"] },
  ollama: { keys: ["OLLAMA_API_KEY"], urls: ["OLLAMA_HOST"] },
  openrouter: { keys: ["OPENROUTER_API_KEY"], urls: [] },
  deepseek: { keys: ["DEEPSEEK_API_KEY"], urls: [] },
  groq: { keys: ["GROQ_API_KEY"], urls: [] },
  moonshotai: { keys: ["MOONSHOT_API_KEY"], urls: [] },
  zai: { keys: ["ZAI_API_KEY"], urls: [] },
  xai: { keys: ["XAI_API_KEY"], urls: [] },
  "nvidia-nim": { keys: ["NVIDIA_API_KEY"], urls: [] },
  "opencode-zen": { keys: ["OPENCODE_ZEN_API_KEY"], urls: [] },
  "ollama-cloud": { keys: ["OLLAMA_CLOUD_API_KEY"], urls: [] }
}

const optional = (name: string) =>
  Env.String(name).pipe(
    Env.option,
    Env.map((value) => Option.getOrNull(Option.filter(value, (text) => text.trim() !== "")))
  )

/** The first variable that is set; null when none is. */
const firstOf = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  for (const name of names) {
    const value = yield* optional(name)
    if (value !== null) return value.trim()
  }
  return null
})

const decodeConfig = Schema.decodeUnknownEffect(Schema.fromJsonString(Config), {
  onExcessProperty: "error",
  errors: "all"
})

const readConfig = (fs: FileSystem.FileSystem, file: string): Effect.Effect<Config, SettingsError> => {
  const invalid = (why: string) => new SettingsError({ message: `${file}: ${why}` })
  const isMissing = (error: PlatformError.PlatformError) => error.reason._tag === "NotFound"
  return Effect.gen(function* () {
    const info = yield* fs.stat(file)
    if (info.type !== "File") return yield* invalid("it is not a regular file")
    if (info.size > maxConfigBytes) return yield* invalid(`it is larger than ${maxConfigBytes} bytes`)
    const text = yield* fs.readFileString(file)
    return yield* decodeConfig(text).pipe(
      Effect.mapError((error) => invalid(error.message.replaceAll(/\s+/g, " ").slice(0, 300)))
    )
  }).pipe(
    Effect.catchTag("PlatformError", (error) =>
      isMissing(error) ? Effect.succeed({}) : Effect.fail(invalid(error.message))
    )
  )
}

export const layer = Layer.effect(
  Settings,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const home = (yield* optional("HOME")) ?? path.parse(path.resolve(".")).root
    const base = (variable: string, fallback: string) =>
      Effect.map(optional(variable), (value) =>
        value !== null && path.isAbsolute(value) ? value : path.join(home, fallback)
      )
    const state = yield* base("XDG_STATE_HOME", ".local/state")
    const configHome = yield* base("XDG_CONFIG_HOME", ".config")
    const run_root = path.resolve((yield* optional("LOOPLANE_RUN_ROOT")) ?? path.join(state, "looplane", "runs"))
    const config_path = path.resolve(
      (yield* optional("LOOPLANE_CONFIG")) ?? path.join(configHome, "looplane", "config.json")
    )
    const keys = new Map<string, Redacted.Redacted<string>>()
    const urls = new Map<string, string>()
    for (const [name, variables] of Object.entries(providerVariables)) {
      const key = yield* firstOf(variables.keys)
      if (key !== null) keys.set(name, Redacted.make(key))
      const url = yield* firstOf(variables.urls)
      if (url !== null) urls.set(name, url)
    }
    return Settings.of({
      run_root,
      config_path,
      config: readConfig(fs, config_path),
      provider: yield* optional("LOOPLANE_PROVIDER"),
      model: yield* firstOf(["LOOPLANE_MODEL", "CODING_AGENT_MODEL"]),
      api_url: yield* optional("LOOPLANE_API_URL"),
      apiKey: (provider) => keys.get(provider) ?? null,
      baseUrl: (provider) => urls.get(provider) ?? null
    })
  }).pipe(Effect.mapError((error) => new SettingsError({ message: error.message })))
)
