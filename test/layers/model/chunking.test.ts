import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { anthropicFold } from "../../../src/domain/model/AnthropicFold.ts"
import type { Fold } from "../../../src/domain/model/Fold.ts"
import { openAiFold } from "../../../src/domain/model/OpenAiFold.ts"
import { answer } from "../../../src/layers/model/Answer.ts"
import { renderAnthropic } from "../../support/wire/anthropic.ts"
import { renderOpenAi } from "../../support/wire/openai.ts"
import type { TurnSpec } from "../../support/wire/types.ts"
import { collect, request } from "./harness.ts"

const peer = { provider: "p", model: "m", url: "http://127.0.0.1", secret: "k" }
const encoder = new TextEncoder()

/** The same bytes, in pieces that end where it is said. */
const bodyOf = (bytes: Uint8Array, ends: ReadonlyArray<number>) => {
  const sorted = [...new Set(ends.map((end) => Math.min(end, bytes.length)))].toSorted((a, b) => a - b)
  return new ReadableStream<Uint8Array>({
    start(controller) {
      for (const [at, end] of [...sorted, bytes.length].entries()) {
        const piece = bytes.subarray(sorted[at - 1] ?? 0, end)
        if (piece.length > 0) controller.enqueue(piece)
      }
      controller.close()
    }
  })
}

const fold = <S>(folding: Fold<S>, bytes: Uint8Array, ends: ReadonlyArray<number>) => {
  const headers = { "content-type": "text/event-stream" }
  const response = () => Promise.resolve(new Response(bodyOf(bytes, ends), { headers }))
  return Effect.runPromise(collect(answer(peer, folding, request(), response)))
}

const context = { model: "m", stream: true, includeUsage: true, index: 0 } as const
const render = (protocol: "openai-chat" | "anthropic", spec: TurnSpec) => {
  const { chunks } =
    protocol === "anthropic"
      ? renderAnthropic(spec, { ...context, protocol })
      : renderOpenAi(spec, { ...context, protocol })
  return new TextDecoder().decode(Buffer.concat(chunks))
}

const word = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 })
const spec = fc.record(
  {
    text: word,
    reasoning: word,
    toolCalls: fc.array(fc.record({ name: fc.constant("f"), arguments: fc.dictionary(word, word) }), {
      maxLength: 3
    }),
    chunkSize: fc.integer({ min: 1, max: 9 })
  },
  { requiredKeys: ["text", "chunkSize"] }
)
const newline = fc.constantFrom("\n", "\r\n", "\r")

describe.each(["openai-chat", "anthropic"] as const)("any cut of a body of %s", (protocol) => {
  it("folds into the turn that was sent", async () => {
    await fc.assert(
      fc.asyncProperty(spec, newline, fc.array(fc.nat({ max: 4_000 })), async (sent, end, ends) => {
        const bytes = encoder.encode(render(protocol, sent).replaceAll("\n", end))
        const played = await (protocol === "anthropic"
          ? fold(anthropicFold, bytes, ends)
          : fold(openAiFold, bytes, ends))
        assert.deepStrictEqual([played.turn.text, played.text], [sent.text, sent.text])
        assert.deepStrictEqual(
          [played.turn.reasoning.map((each) => each.text).join(""), played.reasoning],
          [sent.reasoning ?? "", sent.reasoning ?? ""]
        )
        assert.strictEqual(
          JSON.stringify(played.turn.tool_calls.map((call) => call.arguments)),
          JSON.stringify((sent.toolCalls ?? []).map((call) => JSON.parse(JSON.stringify(call.arguments))))
        )
      }),
      { numRuns: 60 }
    )
  })
})
