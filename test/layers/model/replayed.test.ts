import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import fc from "fast-check"
import { providerNames, type ProviderName } from "../../../src/domain/model/Providers.ts"
import { makeModel } from "../../../src/layers/model/Providers.ts"
import { replayedModel } from "../../../src/layers/model/Replayed.ts"

const make = (provider: ProviderName, apiUrl: string | null) =>
  makeModel({
    provider,
    model: "m",
    apiUrl,
    apiKey: Redacted.make("sk-some-key-of-a-user"),
    allowCustomEndpoint: true
  })

/** The endpoint of a model of this address, of one of that endpoint, and of a replayed one. */
const endpoints = (provider: ProviderName, apiUrl: string | null) =>
  Effect.gen(function* () {
    const { endpoint } = yield* make(provider, apiUrl)
    const again = yield* make(provider, endpoint)
    const replayed = yield* replayedModel({ provider, model: "m", endpoint, allow_custom_endpoint: true })
    return [endpoint, again.endpoint, replayed.endpoint] as const
  })

describe.each(providerNames)("an endpoint of %s", (provider) => {
  it.effect("is the same again when a model is made from it", () =>
    Effect.gen(function* () {
      const addresses = [
        null,
        "https://gateway.example",
        "https://gateway.example/",
        "https://gateway.example/v1",
        "https://gateway.example/v1/",
        "https://gateway.example//v1//v1/",
        "https://gateway.example:8443/a/V1",
        "https://GATEWAY.example:443/a/../v1/%2e",
        "http://127.0.0.1:8080//",
        "http://localhost:11434",
        "http://[::1]:1/v1"
      ]
      for (const address of addresses) {
        const [first, again, replayed] = yield* endpoints(provider, address)
        assert.isString(first)
        assert.deepStrictEqual([again, replayed], [first, first], String(address))
      }
    })
  )

  it("is the same again, whatever was given", () => {
    const part = fc.constantFrom("/", "v1", "/v1", "a", ".", "..", "%2e", "%2F", ":", "api", "\\", "é")
    const host = fc.constantFrom(
      "h.example",
      "h.example:80",
      "127.0.0.1:443",
      "localhost",
      "[::]",
      "0.0.0.0:1"
    )
    const scheme = fc.constantFrom("https://", "http://", "")
    fc.assert(
      fc.property(scheme, host, fc.array(part), (before, at, path) => {
        const found = Effect.runSync(Effect.result(endpoints(provider, before + at + path.join(""))))
        if (Result.isFailure(found)) return
        const [first, again, replayed] = found.success
        assert.deepStrictEqual([again, replayed], [first, first])
      })
    )
  })
})

describe("a replayed model", () => {
  it.effect("needs no key, and may go nowhere that its run might not", () =>
    Effect.gen(function* () {
      const recorded = { provider: "anthropic", model: "m", endpoint: "https://proxy.example" }
      const refused = yield* Effect.flip(replayedModel(recorded))
      assert.match(refused.message, /--allow-custom-provider-endpoint/)
      const model = yield* replayedModel({ ...recorded, allow_custom_endpoint: true })
      assert.deepInclude(model, recorded)
      const scripted = yield* replayedModel({ ...recorded, endpoint: null })
      assert.deepInclude(scripted, { ...recorded, endpoint: null })
    })
  )
})
