import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { ModelTurn } from "../../../src/domain/Conversation.ts"
import { ModelError } from "../../../src/domain/ModelError.ts"
import { chunked, raw, type Chunks } from "../../support/ModelServer.ts"
import { ask, modelAt, serving, type Played } from "./harness.ts"
import { agrees, watch } from "./playback.ts"

interface Expected {
  readonly text?: string
  readonly refusal?: string
  readonly reasoning?: ReadonlyArray<{ text?: string; signature?: string; redacted?: string }>
  readonly toolCalls?: ReadonlyArray<{
    id: string | null
    name: string
    args?: unknown
    invalidArgs?: boolean
  }>
  readonly stop?: string
  readonly rawUsage?: Readonly<Record<string, number>> | null
  readonly error?: {
    readonly kind: string
    readonly retryable?: boolean
    readonly retryAfterMs?: number | string
    readonly messageMustNotContain?: string
  }
  readonly anyOf?: ReadonlyArray<Expected>
}

interface Case {
  readonly id: string
  readonly protocol: string
  readonly file: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly deliverInChunks?: Chunks
  readonly expect: Expected
}

const folder = fileURLToPath(new URL("../../../../shared/cases/streams/", import.meta.url))
const present = existsSync(folder)
const cases: ReadonlyArray<Case> = present
  ? JSON.parse(readFileSync(`${folder}index.json`, "utf8")).cases
  : []
const handed = cases.filter(({ protocol }) => ["openai-chat", "anthropic", "errors"].includes(protocol))

const kinds: Readonly<Record<string, string>> = {
  context_length: "context_overflow",
  quota: "quota_exhausted"
}

const checkUsage = (turn: ModelTurn, raw: Readonly<Record<string, number>>) => {
  const of = (name: string) => raw[name] ?? 0
  const usage = turn.usage
  const input =
    raw["prompt_tokens"] ??
    of("input_tokens") + of("cache_read_input_tokens") + of("cache_creation_input_tokens")
  assert.strictEqual(usage.input_tokens, input)
  assert.strictEqual(usage.output_tokens, raw["completion_tokens"] ?? of("output_tokens"))
  if (raw["total_tokens"] !== undefined)
    assert.strictEqual(
      usage.provider_total_tokens ?? usage.input_tokens + usage.output_tokens,
      raw["total_tokens"]
    )
}

const checkError = (error: ModelError, expected: NonNullable<Expected["error"]>) => {
  assert.strictEqual(error.kind, kinds[expected.kind] ?? expected.kind)
  if (expected.retryable !== undefined) assert.strictEqual(error.retryable, expected.retryable)
  if (typeof expected.retryAfterMs === "number")
    assert.strictEqual(error.retry_after_ms, expected.retryAfterMs)
  if (typeof expected.retryAfterMs === "string") assert.strictEqual(error.retry_after_ms, 12_000)
  if (expected.messageMustNotContain !== undefined)
    assert.notInclude(error.message.toLowerCase(), expected.messageMustNotContain)
  assert.isAtMost(error.message.length, 500)
  assert.notMatch(error.message, /[\r\n<]/)
}

const checkTurn = ({ reasoning, text, turn }: Played, expected: Expected) => {
  assert.strictEqual(turn.finish_reason, expected.stop)
  if (expected.text !== undefined) assert.deepStrictEqual([turn.text, text], [expected.text, expected.text])
  if (expected.refusal !== undefined) assert.strictEqual(turn.refusal, expected.refusal)
  if (expected.reasoning !== undefined) {
    assert.deepStrictEqual(
      turn.reasoning,
      expected.reasoning.map((each) => ({ text: "", ...each }))
    )
    assert.strictEqual(reasoning, expected.reasoning.map((each) => each.text ?? "").join(""))
  }
  const calls = turn.tool_calls.map((call) => ({ id: call.id, name: call.name }))
  const wanted = expected.toolCalls ?? []
  assert.deepStrictEqual<unknown>(
    calls,
    wanted.map(({ id, name }, at) => ({ id: id ?? calls[at]?.id, name }))
  )
  for (const [at, each] of wanted.entries()) {
    const call = turn.tool_calls[at]
    if (each.invalidArgs === true) assert.isDefined(call?.invalid_arguments)
    else assert.deepStrictEqual<unknown>([call?.arguments, call?.invalid_arguments], [each.args, undefined])
  }
  if (expected.rawUsage) checkUsage(turn, expected.rawUsage)
}

const check = (result: Result.Result<Played, unknown>, expected: Expected): void => {
  if (expected.anyOf !== undefined) {
    const faults = expected.anyOf.flatMap((each) => {
      try {
        check(result, each)
        return []
      } catch (fault) {
        return [fault]
      }
    })
    if (faults.length === expected.anyOf.length) throw faults[0]
  } else if (expected.error !== undefined) {
    const failure = Result.isFailure(result) ? result.failure : undefined
    if (!(failure instanceof ModelError)) assert.fail(`it must fail: ${String(failure)}`)
    checkError(failure, expected.error)
  } else {
    assert.isTrue(Result.isSuccess(result), Result.isFailure(result) ? String(result.failure) : "")
    if (Result.isSuccess(result)) checkTurn(result.success, expected)
  }
}

/** The server's clock stands still, so that a date says exactly how far off it is. */
const headersOf = (each: Case): Record<string, string> => ({
  date: new Date(0).toUTCString(),
  ...Object.fromEntries(
    Object.entries(each.headers).map(([name, value]) => [
      name,
      value.startsWith("<now + 12 s") ? new Date(12_000).toUTCString() : value
    ])
  )
})

const providersOf = (each: Case) =>
  each.protocol === "errors"
    ? ["openai-compatible", "anthropic"]
    : [each.protocol === "anthropic" ? "anthropic" : "openai-compatible"]

describe("handed stream cases, over a socket and through the SDKs", () => {
  console.log(present ? `handed cases: ${handed.length} run` : "handed cases: absent")
  it.skipIf(!present)("are there", () => assert.isNotEmpty(handed))
  for (const each of handed) {
    for (const provider of providersOf(each)) {
      it.effect(`${each.id} from ${provider}`, () =>
        Effect.gen(function* () {
          const body = readFileSync(`${folder}${each.file}`)
          const step = raw({
            status: each.status,
            headers: headersOf(each),
            body,
            ...(each.deliverInChunks === undefined ? {} : { chunks: each.deliverInChunks })
          })
          const cuts = [step, chunked(step, "whole"), chunked(step, "split every character")]
          if (body.length < 1_000) cuts.push(chunked(step, "1 byte each"))
          const server = yield* serving([step, ...cuts])
          check(yield* ask(server, provider), each.expect)

          const model = yield* modelAt(server, provider)
          const originals = yield* Effect.forEach(cuts, () => watch(model))
          assert.isEmpty(server.violations)
          yield* Effect.promise(() => server.close())
          for (const original of originals) yield* agrees(model, original)
        })
      )
    }
  }
})
