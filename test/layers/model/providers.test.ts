import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { providerNames, providers } from "../../../src/domain/model/Providers.ts"
import { makeModel, type ModelOptions } from "../../../src/layers/model/Providers.ts"
import { failureOf, modelAt, serving, collect, request } from "./harness.ts"
import { turn } from "../../support/ModelServer.ts"

const options: ModelOptions = {
  provider: "openai-compatible",
  model: "m",
  apiUrl: null,
  apiKey: Redacted.make("k"),
  allowCustomEndpoint: false
}
const refusal = (over: Partial<ModelOptions>) =>
  Effect.map(Effect.flip(makeModel({ ...options, ...over })), (error) => error.message)

describe("making a model", () => {
  it.effect("knows every provider of the table, at its own address", () =>
    Effect.gen(function* () {
      for (const provider of providerNames) {
        const model = yield* makeModel({ ...options, provider })
        assert.deepInclude(model, { provider, model: "m" })
        assert.match(providers[provider].base_url, provider === "ollama" ? /^http:\/\/127/ : /^https:\/\//)
      }
    })
  )

  it.effect("says in one line what is missing", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [Partial<ModelOptions>, RegExp]> = [
        [{ provider: "gemini" }, /^provider gemini comes later$/],
        [{ provider: "workers-ai" }, /comes later/],
        [{ provider: "openai-codex" }, /comes later/],
        [{ provider: "nobody" }, /^unknown provider "nobody": use one of openai-compatible, anthropic, /],
        [{ provider: "constructor" }, /^unknown provider/],
        [{ model: " " }, /--model/],
        [{ apiKey: null }, /OPENAI_API_KEY/],
        [{ apiKey: Redacted.make("  ") }, /OPENAI_API_KEY/],
        [{ provider: "anthropic", apiKey: null }, /ANTHROPIC_API_KEY/],
        [{ provider: "groq", apiKey: null }, /GROQ_API_KEY/],
        [{ provider: "ollama", apiKey: null, apiUrl: "https://ollama.example" }, /OLLAMA_API_KEY/],
        [{ provider: "ollama", apiUrl: "http://ollama.example" }, /https/],
        [{ provider: "anthropic", apiUrl: "https://proxy.example" }, /--allow-custom-provider-endpoint/],
        [{ apiUrl: "http://example.com/v1" }, /https/],
        [{ apiKey: Redacted.make("sk-…") }, /copy it again/]
      ]
      for (const [over, why] of cases) {
        const message = yield* refusal(over)
        assert.match(message, why)
        assert.notMatch(message, /\n|sk-/)
      }
      assert.isDefined(
        yield* makeModel({
          ...options,
          provider: "anthropic",
          apiUrl: "https://proxy.example",
          allowCustomEndpoint: true
        })
      )
    })
  )

  it.effect("needs no key on this machine, and shows a local Ollama none", () =>
    Effect.gen(function* () {
      const server = yield* serving([turn({ text: "a" }), turn({ text: "b" }), turn({ text: "c" })])
      for (const provider of ["openai-compatible", "anthropic", "ollama"]) {
        const model = yield* modelAt(server, provider, { apiKey: null })
        yield* model.warm
        yield* collect(model.stream(request()))
      }
      assert.isEmpty(server.unexpected)
      assert.isFalse(server.calls.some((call) => call.rawBody.includes("sk-")))
    })
  )

  it.effect("says that nobody listens", () =>
    Effect.gen(function* () {
      const server = yield* serving([])
      yield* Effect.promise(() => server.close())
      for (const provider of ["openai-compatible", "anthropic"]) {
        const error = yield* failureOf(server, provider)
        assert.deepStrictEqual([error.kind, error.retryable], ["retryable", true])
        assert.include(error.message, server.url)
        assert.match(error.message, /ECONNREFUSED/)
      }
    })
  )
})
