import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { anthropicEndpoint, ollamaUrl, openAiEndpoint } from "../../../src/domain/model/Endpoint.ts"

const told = <A>(result: Result.Result<A, { readonly message: string }>) =>
  Result.match(result, { onSuccess: (value) => value, onFailure: (error) => error.message })

describe("OpenAI-compatible base URLs", () => {
  it.each([
    ["https://api.example.com/v1", "https://api.example.com/v1", false],
    ["https://api.example.com/v1///", "https://api.example.com/v1", false],
    ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", true],
    ["http://127.9.8.7/v1", "http://127.9.8.7/v1", true],
    ["http://localhost:11434", "http://localhost:11434", true],
    ["http://[::1]:1/v1", "http://[::1]:1/v1", true],
    ["http://2130706433/", "http://127.0.0.1", true]
  ])("%s", (raw, url, loopback) => {
    const endpoint = told(openAiEndpoint(raw))
    assert.deepInclude(endpoint, { url, loopback })
  })

  it.each([
    ["", /must be absolute/],
    ["api.example.com/v1", /must be absolute/],
    ["localhost:8080", /must be absolute/],
    ["ftp://example.com", /must be absolute/],
    ["file:///etc/passwd", /must be absolute/],
    ["https://exa mple.com", /must be absolute/],
    ["https://user:hunter2@example.com/v1", /must not contain credentials/],
    ["https://@example.com/v1", /must not contain credentials/],
    ["https://example.com/v1?key=1", /query or a fragment/],
    ["https://example.com/v1?", /query or a fragment/],
    ["https://example.com/v1#x", /query or a fragment/],
    ["http://example.com/v1", /must use https/],
    ["http://192.168.1.5:11434/v1", /must use https/],
    ["http://127.0.0.1.example.com/v1", /must use https/],
    ["http://localhost.example.com/v1", /must use https/]
  ])("%s is refused in one line", (raw, why) => {
    const message = told(openAiEndpoint(raw))
    if (typeof message !== "string") assert.fail("accepted")
    assert.match(message, why)
    assert.notMatch(message, /\n|hunter2/)
  })
})

describe("Anthropic's base URL", () => {
  it("is the official host, this machine, or what the user allows", () => {
    assert.deepInclude(told(anthropicEndpoint("https://api.anthropic.com", false)), { loopback: false })
    assert.deepInclude(told(anthropicEndpoint("https://api.anthropic.com/v1/", false)), {
      url: "https://api.anthropic.com"
    })
    assert.deepInclude(told(anthropicEndpoint("http://127.0.0.1:9", false)), { url: "http://127.0.0.1:9" })
    assert.match(
      JSON.stringify(told(anthropicEndpoint("https://proxy.example/anthropic", false))),
      /--allow-custom-provider-endpoint/
    )
    assert.deepInclude(told(anthropicEndpoint("https://proxy.example/anthropic", true)), {
      url: "https://proxy.example/anthropic"
    })
    assert.match(
      JSON.stringify(told(anthropicEndpoint("https://api.anthropic.com.evil.example", false))),
      /--allow-custom/
    )
    assert.match(
      JSON.stringify(told(anthropicEndpoint("https://api.anthropic.com:444", false))),
      /--allow-custom/
    )
    assert.match(JSON.stringify(told(anthropicEndpoint("http://proxy.example", true))), /must use https/)
  })
})

describe("OLLAMA_HOST", () => {
  it.each([
    ["127.0.0.1:11434", "http://127.0.0.1:11434/v1"],
    ["127.0.0.1", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0", "http://127.0.0.1:11434/v1"],
    ["localhost:1234", "http://localhost:1234/v1"],
    ["http://127.0.0.1:5/v1", "http://127.0.0.1:5/v1"],
    ["https://ollama.example", "https://ollama.example/v1"],
    ["https://ollama.example/proxy/v1", "https://ollama.example/proxy/v1"]
  ])("%s", (raw, url) => assert.strictEqual(ollamaUrl(raw), url))
})
