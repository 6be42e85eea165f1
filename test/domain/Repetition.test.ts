import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { callText, maxCycles, memory, remember, repeats, type Round } from "../../src/domain/Repetition.ts"

/** Feeds calls one by one; returns how many were let through before one was stopped. */
const letThrough = (calls: ReadonlyArray<readonly [call: string, observation: string]>): number => {
  let past: ReadonlyArray<Round> = []
  for (const [i, [call, observation]] of calls.entries()) {
    if (repeats(past, call)) return i
    past = remember(past, { call, observation })
  }
  return calls.length
}
const times = <A>(n: number, make: (i: number) => ReadonlyArray<A>) =>
  Array.from({ length: n }, (_, i) => make(i)).flat()

describe("repeats", () => {
  it("lets two identical calls through and stops the third", () => {
    assert.strictEqual(letThrough(times(5, () => [["a", "x"]])), 2)
    assert.strictEqual(
      letThrough([
        ["a", "1"],
        ["a", "2"],
        ["b", "x"],
        ["a", "3"],
        ["a", "4"]
      ]),
      5
    )
  })

  it("stops cycles of two and three calls with the same answers", () => {
    assert.strictEqual(
      letThrough(
        times(20, () => [
          ["a", "x"],
          ["b", "y"]
        ])
      ),
      2 * maxCycles - 1
    )
    assert.strictEqual(
      letThrough(
        times(20, () => [
          ["a", "x"],
          ["b", "y"],
          ["c", "z"]
        ])
      ),
      3 * maxCycles - 1
    )
  })

  it("lets a cycle go on whose answers change: something is being waited for or worked on", () => {
    assert.strictEqual(
      letThrough(
        times(20, (i) => [
          ["a", `${i}`],
          ["b", "y"]
        ])
      ),
      40
    )
  })

  it("never stops distinct calls, whatever their answers", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { maxLength: 60 }), (calls) => {
        assert.strictEqual(letThrough(calls.map((call) => [call, "same"] as const)), calls.length)
      })
    )
  })

  it("remembers a bounded past", () => {
    const past = Array.from({ length: 500 }, (_, i) => ({ call: `${i}`, observation: "" })).reduce<
      ReadonlyArray<Round>
    >(remember, [])
    assert.strictEqual(past.length, memory)
    assert.strictEqual(past.at(-1)?.call, "499")
  })

  it("ignores the order of keys and nothing else", () => {
    assert.strictEqual(
      callText("t", { a: 1, b: { c: 2, d: [1, 2] } }),
      callText("t", { b: { d: [1, 2], c: 2 }, a: 1 })
    )
    assert.notStrictEqual(callText("t", { a: [1, 2] }), callText("t", { a: [2, 1] }))
    assert.notStrictEqual(callText("t", {}), callText("u", {}))
  })
})
