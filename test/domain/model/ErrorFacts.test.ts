import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { classify, type Failure } from "../../../src/domain/model/ErrorFacts.ts"
import { announcedDelay, parseDuration } from "../../../src/domain/model/RetryHints.ts"

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5)
const secret = "sk-live-0123456789abcdefghij"
const asked = { provider: "p", model: "big-model", nowMs, secret }

const of = (status: number | null, body: unknown, headers: Record<string, string> = {}) =>
  classify({ status, headers, body: typeof body === "string" ? body : JSON.stringify(body) }, asked)

const message = (text: string, code?: string) => ({
  error: { message: text, ...(code === undefined ? {} : { code }) }
})

describe("what a status means", () => {
  it.each([
    [400, "invalid_request", false],
    [401, "auth", false],
    [402, "quota_exhausted", false],
    [403, "auth", false],
    [404, "invalid_request", false],
    [405, "invalid_request", false],
    [408, "retryable", true],
    [409, "retryable", true],
    [413, "context_overflow", false],
    [415, "invalid_request", false],
    [422, "invalid_request", false],
    [429, "rate_limit", true],
    [500, "provider", true],
    [502, "provider", true],
    [503, "provider", true],
    [504, "provider", true],
    [529, "overloaded", true],
    [302, "provider", false]
  ] as const)("%d is %s", (status, kind, retryable) => {
    for (const body of ["", "{}", "nonsense", "[]", "null", "{", '{"error":null}']) {
      const error = of(status, body)
      assert.deepStrictEqual([error.kind, error.retryable, error.status_code], [kind, retryable, status])
    }
  })

  it("is total and keeps its promises for any body and headers", () => {
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 200, max: 599 })),
        fc.oneof(fc.string(), fc.json(), fc.constant(`{"error":{"message":"bad key ${secret}"}}`)),
        fc.dictionary(
          fc.constantFrom(
            "retry-after",
            "retry-after-ms",
            "x-ratelimit-reset",
            "x-ratelimit-remaining",
            "x-should-retry"
          ),
          fc.oneof(
            fc.string(),
            fc.integer().map(String),
            fc.constantFrom("true", "false", "-5", "1e9", "NaN")
          )
        ),
        (status, body, headers) => {
          const error = of(status, body, headers)
          assert.isAtMost(error.message.length, 500)
          assert.notMatch(error.message, /[\r\n\u001b]/)
          assert.notInclude(error.message, secret)
          if (error.retry_after_ms !== null) {
            assert.isTrue(Number.isFinite(error.retry_after_ms))
            assert.isAtLeast(error.retry_after_ms, 0)
          }
        }
      )
    )
  })
})

describe("a full context, in the words of many", () => {
  const overflow = [
    "prompt is too long: 250001 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease one of them",
    "This model's maximum context length is 8192 tokens, but you asked for 9000 (8500 in the messages, 500 in max_tokens).",
    "Your request's input exceeds the context window of the model",
    "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "Please reduce the length of the messages or the completion.",
    "the request exceeds the available context size, try to enlarge it",
    "Prompt contains 40000 tokens, too large for a model with 32768 maximum context length",
    "context window exceeds limit (2013)",
    "Input is too long for requested model.",
    "too many tokens: the total of prompt and answer is limited to 4096",
    "Your conversation is too long, please start a new one",
    "Requested token count exceeds the model's maximum context length",
    "the prompt is longer than the context length of 4096 tokens",
    "exceeded model token limit: 262144",
    "prompt too long; exceeded max context length by 120 tokens"
  ]
  it.each(overflow)("%s", (text) => {
    for (const status of [400, 422, 500, null]) {
      const error = of(status, message(text))
      assert.deepStrictEqual([error.kind, error.retryable], ["context_overflow", false])
    }
  })

  it.each([
    "context_length_exceeded",
    "CONTEXT_WINDOW_EXCEEDED",
    "model_max_prompt_tokens_exceeded",
    "request_too_large"
  ])("code %s", (code) => assert.strictEqual(of(400, message("no", code)).kind, "context_overflow"))

  it.each([
    [
      429,
      "Rate limit reached: limit 30000 tokens per minute, requested 40000. The input exceeds the token limit",
      "rate_limit"
    ],
    [
      400,
      "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
      "invalid_request"
    ],
    [400, "tools.0.name: String should match pattern", "invalid_request"],
    [400, "temperature exceeds the maximum of 2", "invalid_request"],
    [401, "the context window of your key is over", "auth"],
    [null, "Too many tokens, please wait before trying again", "provider"]
  ] as const)("not %d %s", (status, text, kind) => assert.strictEqual(of(status, message(text)).kind, kind))

  it("reads what an upstream said through a router, and not what a validator echoes", () => {
    const routed = {
      error: { message: "Provider returned error", code: 400, metadata: { raw: "prompt is too long" } }
    }
    assert.strictEqual(of(400, routed).kind, "context_overflow")
    const echoed = { detail: [{ msg: "field required", input: "the context length exceeded" }] }
    const error = of(422, echoed)
    assert.strictEqual(error.kind, "invalid_request")
    assert.include(error.message, "field required")
  })
})

describe("limits and quotas", () => {
  it.each([
    [message("You exceeded your current quota, please check your plan", "insufficient_quota"), {}],
    [message("You have hit the daily limit of free requests"), {}],
    [message("slow down"), { "retry-after": "601" }],
    [message("slow down"), { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(nowMs + 601_000) }],
    [{ error: { message: "busy", limit_source: "account_shared_capacity" } }, {}],
    [{ error: { message: "limit", type: "usage_limit_reached", resets_in_seconds: 7_200 } }, {}],
    [message("Quota used up, it will reset after 12h34m16s."), {}]
  ])("429 %j %j is a spent quota", (body, headers) => {
    const error = of(429, body, headers)
    assert.deepStrictEqual([error.kind, error.retryable], ["quota_exhausted", false])
  })

  it.each([
    [message("slow down"), { "retry-after": "600" }, 600_000],
    [
      message("slow down"),
      { "x-ratelimit-remaining": "3", "x-ratelimit-reset": String(nowMs + 900_000) },
      null
    ],
    [message("slow down"), { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "30" }, 30_000],
    [message("You exceeded your current quota. Please retry in 41.5s."), {}, 41_500],
    [{ error: { message: "quota exceeded", details: [{ retryDelay: "34s" }] } }, {}, 34_000],
    [message("Rate limit reached. Please try again in 6m0s"), {}, 360_000],
    [{ error: { message: "x", metadata: { headers: { "Retry-After": "9" } } } }, {}, 9_000]
  ])("429 %j %j is a limit that passes", (body, headers, delay) => {
    const error = of(429, body, headers)
    assert.deepStrictEqual([error.kind, error.retryable, error.retry_after_ms], ["rate_limit", true, delay])
  })

  it("says until when, if it was told", () => {
    const at = (body: unknown, headers = {}) => of(429, body, headers).resets_at
    assert.strictEqual(at(message("reset after 1h"), {}), "2026-01-02T04:04:05.000Z")
    const epoch = Math.floor(nowMs / 1_000) + 86_400
    assert.strictEqual(
      at({ error: { type: "usage_limit_reached", resets_at: epoch } }),
      "2026-01-03T03:04:05.000Z"
    )
    assert.strictEqual(at(message("insufficient", "insufficient_quota")), null)
    assert.strictEqual(at(message("slow"), { "retry-after": "20" }), null)
  })

  it.each([
    [400, "Your credit balance is too low to use this API"],
    [403, "You are out of credits"]
  ])("%d %s", (status, text) => assert.strictEqual(of(status, message(text)).kind, "quota_exhausted"))
})

describe("retry hints", () => {
  const after = (headers: Record<string, string>) => of(503, "", headers).retry_after_ms
  const date = (ms: number) => new Date(ms).toUTCString()

  it("prefers milliseconds, then seconds, then a date", () => {
    assert.strictEqual(after({ "retry-after-ms": "1500", "retry-after": "60" }), 1_500)
    assert.strictEqual(after({ "retry-after-ms": "soon", "retry-after": "60" }), 60_000)
    assert.strictEqual(after({ "retry-after": "2.5" }), 2_500)
    assert.strictEqual(after({ "retry-after": "1m30s" }), 90_000)
    assert.strictEqual(after({ "retry-after": "never" }), null)
    assert.strictEqual(after({ "retry-after": "-3" }), 0)
  })

  it("takes a date from the server's own clock where it shows it, and the past as now", () => {
    assert.strictEqual(after({ "retry-after": date(nowMs + 12_000) }), 12_000)
    assert.strictEqual(after({ "retry-after": date(nowMs - 12_000) }), 0)
    const jumped = nowMs + 7_200_000
    assert.strictEqual(after({ date: date(jumped), "retry-after": date(jumped + 12_000) }), 12_000)
  })

  it("takes no far date for a quota when only our clock places it", () => {
    const far = { "retry-after": date(nowMs + 7_200_000) }
    assert.strictEqual(of(429, "", far).kind, "rate_limit")
    assert.strictEqual(of(429, "", { ...far, date: date(nowMs) }).kind, "quota_exhausted")
  })

  it("honours x-should-retry where a retry can help", () => {
    const wish = (status: number, body: unknown, value: string) =>
      of(status, body, { "x-should-retry": value }).retryable
    assert.deepStrictEqual(
      [wish(429, "", "false"), wish(500, "", "false"), wish(400, "", "true")],
      [false, false, true]
    )
    assert.deepStrictEqual(
      [wish(401, "", "true"), wish(413, "", "true"), wish(402, "", "true")],
      [false, false, false]
    )
  })

  it("reads durations", () => {
    const cases = {
      "12h34m16s": 45_256_000,
      "350ms": 350,
      "1.5s": 1_500,
      "2 minutes": 120_000,
      "1 hour and 5 mins": 3_900_000
    }
    for (const [text, ms] of Object.entries(cases)) assert.strictEqual(parseDuration(text), ms, text)
    for (const text of ["", "5", "s", "5 apples", "1s later"]) assert.isNull(parseDuration(text), text)
    assert.strictEqual(announcedDelay("Your quota will reset after 18h31m10s."), 66_670_000)
    assert.strictEqual(announcedDelay("try again in 20 seconds"), 20_000)
    assert.isNull(announcedDelay("we served 20 seconds of audio"))
  })
})

describe("models, capacity, errors inside a stream", () => {
  it.each([
    [404, message('model "big-model" not found, try pulling it first')],
    [404, { type: "error", error: { type: "not_found_error", message: "model: big-model" } }],
    [
      404,
      message("The model `big-model` does not exist or you do not have access to it.", "model_not_found")
    ],
    [400, message("big-model is not a valid model ID")],
    [404, { error: "model 'big-model' not found" }]
  ])("%d %j names the model", (status, body) => {
    const error = of(status, body)
    assert.deepStrictEqual([error.kind, error.retryable], ["model_not_found", false])
    assert.include(error.message, "big-model")
  })

  it.each([
    [null, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "overloaded", true],
    [503, message("The model is currently overloaded"), "overloaded", true],
    [null, { error: { type: "api_error", message: "internal" } }, "provider", true],
    [null, { error: { type: "invalid_request_error", message: "bad field" } }, "invalid_request", false],
    [null, { error: { type: "authentication_error", message: "no" } }, "auth", false],
    [null, { error: { type: "rate_limit_error", message: "slow" } }, "rate_limit", true],
    [null, { error: { code: 502, message: "upstream" } }, "provider", true],
    [null, { error: { code: 429, message: "upstream" } }, "rate_limit", true],
    [null, { error: { type: "timeout_error", message: "late" } }, "retryable", true],
    [200, { error: "something broke" }, "provider", true]
  ] as const)("%s %j", (status, body, kind, retryable) => {
    const error = of(status, body)
    assert.deepStrictEqual([error.kind, error.retryable], [kind, retryable])
  })
})

describe("messages", () => {
  it("hold no key and nothing shaped like one", () => {
    const spoken = [
      message(`Incorrect API key provided: ${secret}`),
      message("Incorrect API key provided: sk-abc***********wxyz"),
      message("header Authorization: Bearer abcdefghijk was refused"),
      message('{"x-api-key": "zzz-1234567"}'),
      `plain ${secret} text`
    ]
    for (const body of spoken) {
      const { message: said } = of(401, body)
      assert.include(said, "[redacted]")
      assert.notMatch(said, /0123456789|wxyz|abcdefghijk|1234567/)
    }
    assert.include(of(401, message("invalid x-api-key")).message, "invalid x-api-key")
  })

  it("are short, one line, without markup or terminal control", () => {
    const page = `<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>${"<p>".repeat(9_999)}</body></html>`
    const error = of(502, page)
    assert.strictEqual(error.message, "p answered 502: 502 Bad Gateway, a web page in place of an answer")
    assert.strictEqual(of(500, message("a\u001b[31mb\r\nc\u0007d")).message, "p answered 500: ab c d")
    const long = of(500, message("é🌍".repeat(1_000))).message
    assert.isAtMost(long.length, 500)
    assert.isTrue(long.isWellFormed())
  })

  it("carry codes and the request's id", () => {
    const body = { type: "error", error: { type: "rate_limit_error", message: "x" }, request_id: "req_body" }
    assert.deepInclude(of(429, body).facts, { provider_code: "rate_limit_error", request_id: "req_body" })
    const ids: ReadonlyArray<Failure["headers"]> = [
      { "x-request-id": "a" },
      { "request-id": "a" },
      { "cf-ray": "a" }
    ]
    for (const headers of ids) assert.strictEqual(of(500, body, headers).request_id, "a")
  })
})
