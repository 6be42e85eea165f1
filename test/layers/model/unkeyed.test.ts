import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { holdsKey, unkeyed } from "../../../src/layers/model/Unkeyed.ts"

const key = 'sk-/"q\\0123456789'
const bytes = (text: string) => new TextEncoder().encode(text)
const cutAt = (body: Uint8Array, ends: ReadonlyArray<number>) => {
  const sorted = [...new Set([...ends.map((end) => end % (body.length + 1)), body.length])].toSorted(
    (a, b) => a - b
  )
  return sorted.map((end, at) => body.slice(sorted[at - 1] ?? 0, end)).filter((piece) => piece.length > 0)
}
const hide = (text: string, ends: ReadonlyArray<number> = [], heard = false, open = false) => {
  const found = unkeyed(cutAt(bytes(text), ends), key, { heard, open })
  assert.strictEqual(
    found.pieces.reduce((sum, length) => sum + length, 0),
    found.body.length
  )
  return new TextDecoder().decode(found.body)
}
const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`
const contents = (body: string) =>
  Array.from(body.matchAll(/^data: (.*)$/gm), ([, json = ""]) =>
    String(JSON.parse(json).choices[0].delta.content)
  )

describe("a body without the key", () => {
  it("is the same bytes in the same pieces where the key is not", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.array(fc.nat()), (body, ends) => {
        const pieces = cutAt(body, ends)
        const found = unkeyed(pieces, key, { heard: true, open: false })
        assert.deepStrictEqual(new Uint8Array(found.body), new Uint8Array(body))
        assert.deepStrictEqual(
          found.pieces,
          pieces.map((piece) => piece.length)
        )
      })
    )
  })

  it("is masked however the key is cut and spelled", () => {
    const json = JSON.stringify(key).slice(1, -1)
    const slashed = json.replaceAll("/", "\\/")
    const escaped = Array.from(key, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join(
      ""
    )
    const spelled = fc.constantFrom(key, json, slashed, escaped, escaped.replaceAll("2f", "2F"))
    fc.assert(
      fc.property(spelled, fc.string(), fc.string(), fc.array(fc.nat()), (each, before, after, ends) => {
        assert.strictEqual(
          hide(`${before}\n${each}\n${after}`, ends),
          new TextDecoder().decode(bytes(`${before}\n[redacted]\n${after}`))
        )
      })
    )
  })

  it("is cut where it was, around the mask", () => {
    const text = `ab${key}cd${key}`
    const pieces = [bytes(text.slice(0, 1)), bytes(text.slice(1, 5)), bytes(text.slice(5))]
    const found = unkeyed(pieces, key, { heard: false, open: false })
    assert.strictEqual(new TextDecoder().decode(found.body), "ab[redacted]cd[redacted]")
    assert.deepStrictEqual(found.pieces, [1, 11, 12])
  })

  it("is masked where the key is spread over events", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: key.length + 8 })), fc.array(fc.nat()), (cuts, ends) => {
        const text = `You 世 ${key} ok`
        const sorted = [...new Set([0, ...cuts.map((end) => Math.min(end, text.length)), text.length])]
        sorted.sort((a, b) => a - b)
        const said = sorted.slice(1).map((end, at) => text.slice(sorted[at], end))
        const body = hide(`: hi\n\n${said.map(event).join(": ping\n\n")}data: [DONE]\n\n`, ends, true)
        const shown = contents(body.replace("data: [DONE]\n\n", ""))
        assert.lengthOf(shown, said.length)
        assert.strictEqual(shown.join(""), "You 世 [redacted] ok")
      })
    )
  })

  it("is masked where it breaks off in the key", () => {
    assert.strictEqual(hide(`x ${key.slice(0, -1)}`), "x [redacted]")
    assert.strictEqual(hide(`x ${key.slice(0, 7)}`), `x ${key.slice(0, 7)}`)
    const half = event(`x ${key.slice(0, 5)}`) + event(key.slice(5, 12))
    assert.deepStrictEqual(contents(hide(half, [], true, true)), ["x [redacted]", ""])
    assert.deepStrictEqual(contents(hide(half, [], true, false)), contents(half))
  })

  it("leaves JSON of any depth alone", () => {
    const nested = `${"[".repeat(50_000)}${"]".repeat(50_000)}`
    const deep = `data: ${nested}\n\n`
    assert.strictEqual(hide(deep, [], true), deep)
    assert.isTrue(holdsKey(JSON.parse(nested), key))
    const said = (content: string) => `data: {"content":${JSON.stringify(content)},"rest":${nested}}\n\n`
    const spread = hide(said(key.slice(0, 9)) + said(key.slice(9)), [], true)
    assert.match(spread, /^data: {"content":"\[redacted\]","rest":\[+null\]+}\n\ndata: {"content":"",/)
  })

  it("is heard only where a value holds the key's beginning", () => {
    assert.isTrue(holdsKey({ text: `a ${key}` }, key))
    assert.isTrue(holdsKey([[key.slice(0, 9)]], key))
    assert.isFalse(holdsKey({ text: key.slice(0, 7) }, key))
    assert.isFalse(holdsKey({ text: "" }, ""))
  })
})
