/**
 * A model behind a provider's SDK. The SDK is the transport, loaded on first use; the answer's bytes are read by us.
 */
import { Effect, Redacted, Stream } from "effect"
import type { Endpoint } from "../../domain/model/Endpoint.ts"
import { minKeyChars } from "../../domain/model/Redact.ts"
import type { Fold } from "../../domain/model/Fold.ts"
import type { Provider } from "../../domain/model/Providers.ts"
import type { Model, ModelRequest } from "../../services/Model.ts"
import { answer } from "./Answer.ts"

/** What a layer needs to reach a provider's model. */
export interface Target {
  readonly provider: string
  readonly model: string
  readonly endpoint: Endpoint
  readonly key: Redacted.Redacted
  /** Whether the key is one, and no stand-in for it. */
  readonly secret: boolean
  readonly row: Provider
}

/** The time-outs are ours: an SDK's is set to the longest that a timer holds. */
export const sdkTimeoutMs = 2_147_483_647

/** The model of a target. `load` makes the SDK's client once; `send` asks it for one answer. */
export const sdkModel = Effect.fnUntraced(function* <Client, S>(
  { endpoint, key, model, provider, secret }: Target,
  sdk: {
    readonly load: (secret: string) => Promise<Client>
    readonly send: (client: Client, request: ModelRequest, signal: AbortSignal) => Promise<Response>
    readonly fold: Fold<S>
  }
): Effect.fn.Return<Model> {
  const value = Redacted.value(key)
  const hidden = secret && value.length >= minKeyChars ? value : ""
  const peer = { provider, model, url: endpoint.url, secret: hidden }
  const client = yield* Effect.cached(Effect.promise(() => sdk.load(value)))
  return {
    provider,
    model,
    endpoint: endpoint.url,
    warm: Effect.asVoid(client),
    stream: (request) =>
      Stream.unwrap(
        Effect.map(client, (loaded) =>
          answer(peer, sdk.fold, request, (signal) => sdk.send(loaded, request, signal))
        )
      )
  }
})
