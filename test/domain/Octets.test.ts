import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import fc from "fast-check"
import { fromOctets, Octets, toOctets } from "../../src/domain/Octets.ts"

const through = (bytes: Uint8Array) => {
  const json = JSON.stringify(Schema.encodeSync(Octets)(toOctets(bytes)))
  return fromOctets(Schema.decodeUnknownSync(Octets)(JSON.parse(json)))
}

describe("octets", () => {
  it("come back from JSON as they went, whatever they are", () => {
    const text = fc.string({ unit: "binary" }).map((each) => new TextEncoder().encode(each))
    const cutText = fc.tuple(text, fc.nat()).map(([bytes, at]) => bytes.slice(0, at % (bytes.length + 1)))
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), text, cutText), (bytes) => {
        assert.deepStrictEqual(through(bytes), new Uint8Array(bytes))
      })
    )
  })

  it("are readable where they are text, a byte order mark included", () => {
    const bytes = new TextEncoder().encode("\ufeffdata: 世界 🌍\r\n\u0000")
    assert.deepStrictEqual(toOctets(bytes), { encoding: "utf8", text: "\ufeffdata: 世界 🌍\r\n\u0000" })
    assert.deepStrictEqual(toOctets(Uint8Array.of(0xff, 0x41)), { encoding: "base64", text: "/0E=" })
    assert.deepStrictEqual(toOctets(Uint8Array.of(0xed, 0xa0, 0x80)).encoding, "base64")
  })

  it("read as none where they are no base64", () => {
    assert.deepStrictEqual(fromOctets({ encoding: "base64", text: "*" }), new Uint8Array())
  })
})
