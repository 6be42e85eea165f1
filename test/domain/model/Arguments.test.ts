import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { jsonrepair } from "jsonrepair"
import { isRepairable, parseArguments, repairArguments } from "../../../src/domain/model/Arguments.ts"

const read = (json: string) => Result.getOrUndefined(parseArguments(json))
const repaired = (json: string) => Result.getOrUndefined(repairArguments(json, jsonrepair))

describe("tool arguments", () => {
  it("are the object that was written, whatever its clothes", () => {
    for (const none of ["", "  ", "{}", "null", "```json\n{}\n```"])
      assert.deepStrictEqual(read(none), {}, none)
    assert.deepStrictEqual(read('"{\\"a\\":1}"'), { a: 1 })
    assert.deepStrictEqual(read('```json\n{"a":1}\n```'), { a: 1 })
  })

  it("are never anything but an object", () => {
    for (const other of ["[]", "1", '"x"', "true", "{", '{"a":', "a: 1", "{}{}"]) {
      assert.isUndefined(read(other), other)
      assert.deepStrictEqual(parseArguments(other), Result.fail(other))
    }
    assert.isUndefined(read(`{"a":${"[".repeat(200)}${"]".repeat(200)}}`), "too deep")
  })

  it("round-trip", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })), (object) => {
        const json = JSON.stringify(object)
        assert.strictEqual(JSON.stringify(read(json)), JSON.stringify(JSON.parse(json)))
      })
    )
  })

  it("are repaired when they are broken and whole", () => {
    assert.deepStrictEqual(repaired('{"path":"a","content":"line1\nline2"}'), {
      path: "a",
      content: "line1\nline2"
    })
    assert.deepStrictEqual(repaired("{path: 'a', n: 1,}"), { path: "a", n: 1 })
    assert.deepStrictEqual(repaired('{"a": True, "b": None}'), { a: true, b: null })
  })

  it("are not guessed when their end is missing, nor when they are too large or too deep", () => {
    const cut = '{"path":"a","content":"half a fi'
    for (const bad of [
      cut,
      "hello",
      "[1,",
      `{"a":"${"x".repeat(300_000)}\n"}`,
      `{"a":${"[".repeat(200)},}`
    ]) {
      assert.isFalse(isRepairable(bad))
      assert.deepStrictEqual(repairArguments(bad, jsonrepair), Result.fail(bad))
    }
    assert.deepStrictEqual(
      repairArguments("{,,}", () => {
        throw new Error("no")
      }),
      Result.fail("{,,}")
    )
    assert.deepStrictEqual(
      repairArguments("{1 2}", () => "[1,2]"),
      Result.fail("{1 2}")
    )
  })

  it("of any text never throw", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("{", "}", "[", "]", '"', "\\", ",", ":", "a", "\n", "1") }),
        (json) => {
          const object = repaired(json)
          assert.isTrue(object === undefined || typeof object === "object")
        }
      )
    )
  })
})
