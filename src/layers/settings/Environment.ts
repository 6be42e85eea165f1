/**
 * Settings from the environment and `config.json`, under the XDG base directories.
 */
import {
  Config as Env,
  Effect,
  FileSystem,
  Layer,
  Option,
  Path,
  type PlatformError,
  Redacted,
  Schema
} from "effect"
import { userInfo } from "node:os"
import { errnoOf, wordsOf } from "../../domain/Errno.ts"
import { parse, record } from "../../domain/Json.ts"
import { providers } from "../../domain/model/Providers.ts"
import { Config, Settings, SettingsError } from "../../services/Settings.ts"

/** Of `config.json`, in bytes. */
const maxConfigBytes = 64 * 1024

const optional = (name: string) =>
  Env.String(name).pipe(
    Env.option,
    Env.map((value) => {
      const text = Option.getOrElse(value, () => "").trim()
      return text === "" ? null : text
    })
  )

const decodeConfig = Schema.decodeUnknownEffect(Schema.fromJsonString(Config), {
  onExcessProperty: "error",
  errors: "all"
})

const readConfig = (fs: FileSystem.FileSystem, file: string): Effect.Effect<Config, SettingsError> => {
  const invalid = (why: string) => new SettingsError({ message: `${file}: ${why}` })
  // A home that is no directory (/dev/null, for a service) holds no configuration either.
  const isMissing = (error: PlatformError.PlatformError) =>
    error.reason._tag === "NotFound" || errnoOf(error) === "ENOTDIR"
  return Effect.gen(function* () {
    const info = yield* fs.stat(file)
    if (info.type !== "File") return yield* invalid("it is not a regular file")
    if (info.size > maxConfigBytes) return yield* invalid(`it is larger than ${maxConfigBytes} bytes`)
    const text = yield* fs.readFileString(file)
    const keys = Object.keys(Config.fields)
    const strange = Object.keys(record(parse(text))).find((key) => !keys.includes(key))
    if (strange !== undefined)
      return yield* invalid(`it knows no key ${JSON.stringify(strange)}; its keys are ${keys.join(", ")}`)
    return yield* decodeConfig(text).pipe(
      Effect.mapError((error) => invalid(error.message.replaceAll(/\s+/g, " ").slice(0, 300)))
    )
  }).pipe(
    Effect.catchTag("PlatformError", (error) =>
      isMissing(error) ? Effect.succeed({}) : Effect.fail(invalid(`it cannot be read: ${wordsOf(error)}`))
    )
  )
}

/** The home directory that the system has for the user; null when it knows no such user, as in some containers. */
const accountHome = (): string | null => {
  try {
    return userInfo().homedir
  } catch {
    return null
  }
}

/** `account`: the home directory where HOME says none; null for none. */
export const layerWith = (account: () => string | null) =>
  Layer.effect(
    Settings,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const home = Effect.map(optional("HOME"), (value) =>
        value !== null && path.isAbsolute(value) ? value : account()
      )
      /** A place below the home directory, unless its own variable or that of all such places names another one. */
      const place = Effect.fnUntraced(function* (own: string, base: string, fallback: string, name: string) {
        const named = yield* optional(own)
        if (named !== null) return path.resolve(named)
        const directory = yield* optional(base)
        if (directory !== null && path.isAbsolute(directory)) return path.resolve(directory, "looplane", name)
        const at = yield* home
        if (at === null)
          return yield* new SettingsError({ message: `no home directory is known: set HOME, or ${own}` })
        return path.resolve(at, fallback, "looplane", name)
      })
      const run_root = yield* place("LOOPLANE_RUN_ROOT", "XDG_STATE_HOME", ".local/state", "runs")
      const config_path = yield* place("LOOPLANE_CONFIG", "XDG_CONFIG_HOME", ".config", "config.json")
      const cache_root = Option.getOrNull(
        yield* Effect.option(place("LOOPLANE_CACHE_ROOT", "XDG_CACHE_HOME", ".cache", "sandbox"))
      )
      const keys = new Map<string, Redacted.Redacted>()
      const urls = new Map<string, string>()
      for (const [name, { key_env, url_env }] of Object.entries(providers)) {
        const key = yield* optional(key_env)
        if (key !== null) keys.set(name, Redacted.make(key))
        const url = url_env === null ? null : yield* optional(url_env)
        if (url !== null) urls.set(name, url)
      }
      return Settings.of({
        run_root,
        config_path,
        cache_root,
        config: readConfig(fs, config_path),
        provider: yield* optional("LOOPLANE_PROVIDER"),
        model: (yield* optional("LOOPLANE_MODEL")) ?? (yield* optional("CODING_AGENT_MODEL")),
        api_url: yield* optional("LOOPLANE_API_URL"),
        apiKey: (provider) => keys.get(provider) ?? null,
        baseUrl: (provider) => urls.get(provider) ?? null
      })
    }).pipe(Effect.mapError((error) => new SettingsError({ message: error.message })))
  )

export const layer = layerWith(accountHome)
