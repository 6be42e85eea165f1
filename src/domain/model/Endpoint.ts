/**
 * Which base URLs may receive a conversation and a key.
 */
import { Result, Schema } from "effect"
import { officialAnthropicUrl } from "./Providers.ts"

/** Why no model can be made from what the user asked for, in one line that says what to do. */
export class ModelConfigError extends Schema.TaggedError<ModelConfigError>()("ModelConfigError", {
  message: Schema.String
}) {}

export interface Endpoint {
  /** Without a slash at its end. */
  readonly url: string
  readonly host: string
  /** Whether the request stays on this machine. */
  readonly loopback: boolean
}

/** localhost, 127.0.0.0/8 and [::1], as a parsed URL spells them. */
const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname)

const fail = (message: string) => Result.fail(new ModelConfigError({ message }))

const parseBase = (raw: string): Result.Result<Endpoint, ModelConfigError> => {
  const url = URL.parse(raw)
  if (url === null || /\s/.test(raw) || (url.protocol !== "http:" && url.protocol !== "https:"))
    return fail(
      `the API URL must be absolute and begin with https:// or http://; got ${JSON.stringify(bounded(raw))}`
    )
  // The text is not repeated: what stands before the @ is a secret.
  if (url.username !== "" || url.password !== "" || /^[a-z]+:\/\/[^/]*@/i.test(raw))
    return fail("the API URL must not contain credentials; give the key in its environment variable")
  if (raw.includes("?") || raw.includes("#"))
    return fail("the API URL must not contain a query or a fragment")
  const loopback = isLoopback(url.hostname)
  if (url.protocol === "http:" && !loopback)
    return fail(`the API URL ${url.origin} must use https: plain http is for this machine only`)
  return Result.succeed({ url: `${url.origin}${url.pathname.replace(/\/+$/, "")}`, host: url.host, loopback })
}

const bounded = (raw: string) => (raw.length > 200 ? `${raw.slice(0, 200)}…` : raw)

/** A base URL of an OpenAI-compatible service: any host over https, this machine over http too. */
export const openAiEndpoint = parseBase

/**
 * A base URL of Anthropic Messages, given without `/v1` (which is dropped at the end). A host that is neither the
 * official one nor this machine needs `allowCustom`.
 */
export const anthropicEndpoint = (
  raw: string,
  allowCustom: boolean
): Result.Result<Endpoint, ModelConfigError> =>
  Result.flatMap(parseBase(raw), (endpoint) => {
    const url = endpoint.url.replace(/(?:\/+v1)*\/*$/, "")
    if (!endpoint.loopback && !allowCustom && !sameOrigin(url, officialAnthropicUrl))
      return fail(
        `${endpoint.host} is not Anthropic's own host: add --allow-custom-provider-endpoint to send your key there`
      )
    return Result.succeed({ ...endpoint, url })
  })

const sameOrigin = (a: string, b: string) => URL.parse(a)?.origin === URL.parse(b)?.origin

/**
 * `OLLAMA_HOST` as Ollama itself reads it: scheme, port and path may be missing, and an address that means "every
 * interface" means this machine to a client.
 */
export const ollamaUrl = (raw: string): string => {
  const given = raw.trim()
  const schemed = /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`
  const url = URL.parse(schemed)
  if (url === null) return given
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1"
  if (url.hostname === "[::]") url.hostname = "[::1]"
  if (schemed !== given && url.port === "" && !/:80(?:\/|$)/.test(given)) url.port = "11434"
  if (/^\/*$/.test(url.pathname)) url.pathname = "/v1"
  return url.href
}
