import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { add, totalTokens, zero, type Usage } from "../../src/domain/Usage.ts"

const count = fc.nat(1_000_000)
const usage: fc.Arbitrary<Usage> = fc.record({
  input_tokens: count,
  output_tokens: count,
  cached_input_tokens: count,
  cache_write_tokens: count,
  reasoning_tokens: count,
  provider_total_tokens: fc.option(count)
})

describe("Usage", () => {
  it("adds up: totals are never lost, in any grouping", () => {
    fc.assert(
      fc.property(usage, usage, usage, (a, b, c) => {
        assert.deepStrictEqual(add(add(a, b), c), add(a, add(b, c)))
        assert.deepStrictEqual(add(a, b), add(b, a))
        assert.strictEqual(totalTokens(add(a, b)), totalTokens(a) + totalTokens(b))
        assert.strictEqual(totalTokens(add(zero, a)), totalTokens(a))
      })
    )
  })
})
