import { Result } from "effect"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { replaceText } from "../../../src/domain/patch/Replace.ts"
import { utf8 } from "./support.ts"

const replace = (
  content: string | Uint8Array,
  oldText: string,
  newText: string,
  all = false
): string | { readonly refused: string } => {
  const bytes = typeof content === "string" ? utf8(content) : content
  return Result.match(replaceText({ path: "f", bytes, oldText, newText, all }), {
    onFailure: ({ reason }) => ({ refused: reason }),
    onSuccess: (after) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(after)
  })
}

const message = (content: string, oldText: string, newText = "new"): string =>
  Result.match(replaceText({ path: "f", bytes: utf8(content), oldText, newText, all: false }), {
    onFailure: (error) => error.message,
    onSuccess: () => "replaced"
  })

describe("replaceText", () => {
  it.each(["$&", "$1", "$$", "$`", "$'", "\\n", "a|b", "^.*$"])("takes %s literally", (special) => {
    assert.strictEqual(replace("one two", "one", special), `${special} two`)
    assert.strictEqual(replace(`x ${special} y`, special, "z"), "x z y")
  })

  it.each([
    ["foo foo foo", "foo"],
    ["a\nb\na\n", "a\n"],
    // Overlapping: either half of "aaa" could be meant.
    ["aaa", "aa"],
    ["hello\r\nworld\r\n---\r\nhello\nworld\n", "hello\nworld\n"]
  ])("refuses %j with %j, which occurs more than once", (content, oldText) => {
    assert.deepStrictEqual(replace(content, oldText, "x"), { refused: "ambiguous" })
  })

  it("counts the occurrences and names their lines", () => {
    assert.include(message("foo\nbar foo\n\nfoo\n", "foo"), "occurs 3 times")
    assert.include(message("foo\nbar foo\n\nfoo\n", "foo"), "lines 1, 2, 4")
  })

  it("replaces every occurrence from the left when asked", () => {
    assert.strictEqual(replace("foo bar foo", "foo", "foofoo", true), "foofoo bar foofoo")
    assert.strictEqual(replace("aaaa", "aa", "b", true), "bb")
    assert.deepStrictEqual(replace("bar", "foo", "x", true), { refused: "no_match" })
    assert.strictEqual(
      replace("a\r\nb\r\na\r\nb\r\n", "a\nb", "c\nd\ne", true),
      "c\r\nd\r\ne\r\nc\r\nd\r\ne\r\n"
    )
  })

  it.each([
    ["first\r\nsecond\r\nthird\r\n", "second\n", "2\n2b\n", "first\r\n2\r\n2b\r\nthird\r\n"],
    ["first\r\nsecond\r\n", "second", "a\nb", "first\r\na\r\nb\r\n"],
    ["first\r\nsecond\r\n", "first\r\nsecond", "a\r\nb\nc", "a\r\nb\r\nc\r\n"],
    ["\ufefffirst\r\nsecond\r\n", "first\nsecond", "one\ntwo", "\ufeffone\r\ntwo\r\n"],
    ["a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n"],
    ["one\rtwo\rthree\r", "one\ntwo", "1\n2\n2b", "1\r2\r2b\rthree\r"],
    ["a\nx\ry\nb\n", "x\ry", "x\rz", "a\nx\rz\nb\n"],
    ["a\r\nb\nc\r\nd\n", "b\nc", "B\nC", "a\r\nB\nC\r\nd\n"],
    ["a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nc\nnew\nd", "a\r\nb\nc\r\nnew\nd\n"],
    ["a\r\nb\n", "a", "a\na2", "a\r\na2\r\nb\n"],
    ["a\nb", "b", "c", "a\nc"],
    ["a\r\nb", "b", "b\nc", "a\r\nb\r\nc"]
  ])("keeps the endings of %j", (content, oldText, newText, after) => {
    assert.strictEqual(replace(content, oldText, newText), after)
  })

  it("lets a caller that spells out CRLF pick one of two places in a file of mixed endings", () => {
    assert.strictEqual(replace("a\r\nb\r\n-\na\nb\n", "a\r\nb\r\n", "x\r\n"), "x\r\n-\na\nb\n")
  })

  it.each<readonly [string, string | Uint8Array, string, string, string]>([
    ["an empty text", "a", "", "x", "empty"],
    ["equal texts", "a", "a", "a", "no_change"],
    ["texts that differ in endings only", "a\r\nb\r\n", "a\nb", "a\r\nb", "no_change"],
    ["a NUL in the text", "a", "a", "\0", "binary"],
    ["half a surrogate pair", "a", "a", "\ud83d", "encoding"],
    ["a binary file", new Uint8Array([97, 0, 98]), "a", "x", "binary"],
    ["a file that is not UTF-8", new Uint8Array([97, 0xe9, 98]), "a", "x", "encoding"],
    ["other blanks", "\tfoo\n", "  foo\n", "x", "no_match"],
    ["typographic quotes", "say ‘hi’", "say 'hi'", "x", "no_match"]
  ])("refuses %s", (_, content, oldText, newText, refused) => {
    assert.deepStrictEqual(replace(content, oldText, newText), { refused })
  })

  it("points at the place that looks most like the text", () => {
    const content = "def f():\n    return 1\n\ndef g():\n    return 2\n"
    assert.include(message(content, "def g():\n  return 2\n"), "line 4 differs from it only in blanks")
    assert.include(message(content, "def g():\n    return 3\n"), 'line 5 is "    return 2"')
    assert.include(message(content, "return 2\n}"), "the file ends")
    assert.include(message(content, "class Q:"), "read the file again")
  })

  it("finds in linear time what makes naive searches quadratic", () => {
    const content = `${"a".repeat(400_000)}b`
    assert.strictEqual(replace(content, `${"a".repeat(200_000)}b`, "x"), `${"a".repeat(200_000)}x`)
    assert.deepStrictEqual(replace(content, "a".repeat(200_000), "x"), { refused: "ambiguous" })
    assert.deepStrictEqual(replace(content, `${"a".repeat(200_000)}c`, "x"), { refused: "no_match" })
  })

  const pieces = fc.constantFrom("a", "b", "é", "😀", " ", "\n", "\r\n", "\r", "\ufeff", "$&")
  const texts = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(""))

  it("never changes a byte outside the replaced text", () => {
    fc.assert(
      fc.property(texts, texts, texts, texts, (before, oldText, after, newText) => {
        // A "\r\n" is one ending: a text that begins or ends inside one is not what these parts say.
        fc.pre(!before.endsWith("\r") && !(`${oldText} ${newText}`.includes("\r") && after.startsWith("\n")))
        const result = replace(before + oldText + after, oldText, newText)
        if (typeof result !== "string") return
        assert.strictEqual(result.slice(0, before.length), before)
        assert.strictEqual(result.slice(result.length - after.length), after)
        const lf = (text: string) => text.replaceAll("\r\n", "\n").replaceAll("\r", "\n")
        if (/\r(?!\n)/.test(newText)) return
        assert.strictEqual(lf(result), lf(before) + lf(newText) + lf(after))
      })
    )
  })

  it("is undone by the inverse replacement", () => {
    const words = fc.constantFrom("a", "b", "é", "\n", "c d")
    const text = fc.array(words, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(""))
    fc.assert(
      fc.property(text, text, text, text, fc.boolean(), (before, oldText, after, newText, crlf) => {
        const ending = (value: string) => (crlf ? value.replaceAll("\n", "\r\n") : value)
        const content = ending(`[${before}\n<${oldText}>\n${after}]\n`)
        const there = replace(content, `<${oldText}>`, `<<${newText}>>`)
        assert.isString(there)
        assert.strictEqual(
          replace(typeof there === "string" ? there : "", `<<${newText}>>`, `<${oldText}>`),
          content
        )
      })
    )
  })
})
