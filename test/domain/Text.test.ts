import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { boundText, byteLength, takeHead } from "../../src/domain/Text.ts"

const text = fc.string({ unit: "grapheme", maxLength: 300 })
const limit = fc.integer({ min: 0, max: 400 })
const marker = /\n\[(\d+) bytes omitted\]\n/

describe("boundText", () => {
  it("never exceeds its bound and leaves a text that fits alone", () => {
    fc.assert(
      fc.property(text, limit, (input, max) => {
        const bounded = boundText(input, max)
        assert.isAtMost(byteLength(bounded), max)
        if (byteLength(input) <= max) assert.strictEqual(bounded, input)
      })
    )
  })

  it("keeps the head and the tail, and the marker states exactly what is missing", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "é", "漢", "\u{1f600}"), { minLength: 120, maxLength: 400 }),
        fc.integer({ min: 40, max: 110 }),
        (characters, max) => {
          const input = characters.join("")
          const found = marker.exec(boundText(input, max))
          assert.isNotNull(found)
          const head = found.input.slice(0, found.index)
          const tail = found.input.slice(found.index + found[0].length)
          assert.isTrue(input.startsWith(head) && input.endsWith(tail))
          assert.notInclude(head + tail, "\ufffd")
          assert.strictEqual(Number(found[1]), byteLength(input) - byteLength(head) - byteLength(tail))
          assert.isAtLeast(byteLength(found.input), max - 9)
        }
      )
    )
  })

  it("cuts the marker when not even that fits", () => {
    assert.strictEqual(boundText("x".repeat(100), 6), "\n[100 ")
    assert.strictEqual(boundText("x".repeat(100), 0), "")
  })

  it("reads as before after a second bounding", () => {
    fc.assert(
      fc.property(text, limit, (input, max) => {
        const once = boundText(input, max)
        assert.strictEqual(boundText(once, max), once)
      })
    )
  })
})

describe("takeHead", () => {
  it("is the longest start that fits", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 60 }),
        fc.integer({ min: 0, max: 80 }),
        (input, max) => {
          const head = takeHead(input, max)
          assert.isTrue(input.startsWith(head))
          assert.isAtMost(byteLength(head), max)
          const next = String.fromCodePoint(input.codePointAt(head.length) ?? 0x61)
          if (head !== input) assert.isAbove(byteLength(head + next), max)
        }
      )
    )
  })
})
