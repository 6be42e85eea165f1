import { assert, describe, it } from "vitest"
import { file, patched, refusal, treeOf } from "./support.ts"

const update = (body: string, path = "f"): string =>
  `*** Begin Patch\n*** Update File: ${path}\n${body}*** End Patch\n`

const applied = (content: string, body: string): string => {
  const after = patched(treeOf({ f: content }), update(body))
  return typeof after === "string" ? after : String(JSON.parse(after["f"] ?? '""'))
}

const functions = "class A:\n    def f():\n        pass\n\nclass B:\n    def f():\n        pass\n"

describe("the *** Begin Patch format", () => {
  it("adds, updates, moves and deletes in one go", () => {
    const patch =
      "*** Begin Patch\n*** Add File: n/new.txt\n+one\n+\n+two\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n" +
      "*** Delete File: c\n*** End Patch\n"
    const tree = treeOf({ a: file("1\n", true), c: "3\n" })
    assert.deepStrictEqual(patched(tree, patch), { b: 'x "2\\n"', "n/new.txt": '"one\\n\\ntwo\\n"' })
  })

  it.each([
    ["@@\n-a\n+A\n@@\n-c\n+C\n", "A\nb\nC\n"],
    [" a\n-b\n+B\n", "a\nB\nc\n"],
    ["@@ a\n-b\n+B\n", "a\nB\nc\n"],
    ["@@ a\n+new\n", "a\nnew\nb\nc\n"],
    ["@@\n+end\n", "a\nb\nc\nend\n"],
    ["@@\n b\n c\n+end\n*** End of File\n", "a\nb\nc\nend\n"],
    ["@@\n-b\n", "a\nc\n"],
    ["@@ -1,3 +1,3 @@ heading\n a\n-b\n+B\n c\n", "a\nB\nc\n"],
    ["@@\n-b\n+B\n\n\n", "a\nB\nc\n"],
    ["\n@@\n-b\n+B\n\n@@\n-c\n+C\n", "a\nB\nC\n"],
    ["@@\n+end\n\n", "a\nb\nc\nend\n"]
  ])("applies %j", (body, after) => {
    assert.strictEqual(applied("a\nb\nc\n", body), after)
  })

  it("reads an empty line inside a chunk as empty context", () => {
    assert.strictEqual(applied("a\n\nb\n", "@@\n a\n\n-b\n+B\n"), "a\n\nB\n")
  })

  it("goes below the named lines, one after the other", () => {
    const fixed = "class A:\n    def f():\n        pass\n\nclass B:\n    def f():\n        return 1\n"
    assert.strictEqual(
      applied(functions, "@@ class B:\n@@     def f():\n-        pass\n+        return 1\n"),
      fixed
    )
    assert.strictEqual(
      applied(functions, "@@ class B:\n@@ def f():\n-        pass\n+        return 1\n"),
      fixed
    )
    const repeated = "@@ class B:\n class B:\n     def f():\n-        pass\n+        return 1\n"
    assert.strictEqual(applied(functions, repeated), fixed)
  })

  it("lets two chunks name the same enclosing line", () => {
    const content = "class A:\n  x = 1\n  y = 1\nclass B:\n  x = 1\n"
    const body = "@@ class A:\n-  x = 1\n+  x = 2\n@@ class A:\n-  y = 1\n+  y = 2\n"
    assert.strictEqual(applied(content, body), "class A:\n  x = 2\n  y = 2\nclass B:\n  x = 1\n")
  })

  it.each([
    ["two places fit", functions, "@@\n-        pass\n+        return 1\n", "ambiguous"],
    [
      "two named lines lead to two places",
      functions,
      "@@ def f():\n-        pass\n+        x\n",
      "ambiguous"
    ],
    ["two places fit but for blanks", "a \nb\na  \n", "@@\n-a\n+A\n", "ambiguous"],
    ["the lines are not there", "a\n", "@@\n-x\n+y\n", "no_match"],
    ["the named line is not there", "a\n", "@@ zzz\n-a\n+b\n", "no_match"],
    ["the chunks are out of order", "a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A\n", "no_match"],
    ["they are not the file's end", "a\nb\n", "@@\n-a\n+A\n*** End of File\n", "no_match"],
    ["tabs became blanks", "\ta\n", "@@\n-    a\n+    b\n", "no_match"],
    ["a chunk is empty", "a\n", "@@\n@@\n-a\n+b\n@@\n", "malformed"],
    ["there is no chunk", "a\n", "", "malformed"],
    ["context lacks its blank", "a\nb\n", "@@\na\n-b\n+B\n", "malformed"],
    ["nothing changes", "a\n", "@@\n-a\n+a\n", "no_change"],
    ["there is only context", "a\n", "@@\n a\n", "no_change"]
  ])("refuses when %s", (_, content, body, reason) => {
    assert.strictEqual(applied(content, body), reason)
  })

  it("says where the places are", () => {
    const message = refusal(treeOf({ f: functions }), update("@@\n-        pass\n+        x\n"))?.message
    assert.include(message, "fits 2 places")
    assert.include(message, "lines 3, 7")
    const order = refusal(treeOf({ f: "a\nb\n" }), update("@@\n-b\n+B\n@@\n-a\n+A\n"))?.message
    assert.include(order, "put the chunks in the file's order")
  })

  it.each([
    [
      "one\r\ntwo\r\nthree\r\n",
      "@@\n-one\n+ONE\n two\n+\n+between\n three\n",
      "ONE\r\ntwo\r\n\r\nbetween\r\nthree\r\n"
    ],
    [
      "one\r\ntwo\rthree\nfour\r\n",
      "@@\n one\n two\n-three\n+THREE\n four\n",
      "one\r\ntwo\rTHREE\r\nfour\r\n"
    ],
    ["one\rtwo\r", "@@\n one\n+mid\n two\n", "one\rmid\rtwo\r"],
    ["a\rb\nc\n", "@@\n-a\rb\n+A\rB\n", "A\rB\nc\n"],
    ["\ufeffone\ntwo\n", "@@\n-one\n+ONE\n", "\ufeffONE\ntwo\n"],
    ["\ufeffone\ntwo\n", "@@\n-\ufeffone\n+\ufeffONE\n", "\ufeffONE\ntwo\n"],
    ["a\nb", "@@\n-a\n+A\n", "A\nb"],
    ["a\nb", "@@\n-b\n+B\n", "a\nB\n"],
    ["a\nb", "@@\n b\n+c\n", "a\nb\nc\n"],
    ["a\r\nb", "@@\n b\n+c\n", "a\r\nb\r\nc\r\n"],
    ["a  \nb\t\nc\n", "@@\n a\n b\n-c\n+C\n", "a  \nb\t\nC\n"],
    ["", "@@\n+a\n", "a\n"],
    ["naïve à\nx\n", "@@\n naïve à\n-x\n+y à\n", "naïve à\ny à\n"]
  ])("keeps the bytes of %j that it does not change", (content, body, after) => {
    assert.strictEqual(
      applied(content, body),
      decodeURIComponent(encodeURIComponent(after)).replace(/[^\0-\x7f]/gu, asBytes)
    )
  })

  it("takes a patch that came with CRLF as one without", () => {
    const patch = update("@@\n-a\n+b\n").replaceAll("\n", "\r\n")
    assert.deepStrictEqual(patched(treeOf({ f: "a\nx\n" }), patch), { f: '"b\\nx\\n"' })
    const added = "*** Begin Patch\r\n*** Add File: g\r\n+x\r\n*** End Patch\r\n"
    assert.deepStrictEqual(patched(treeOf({}), added), { g: '"x\\n"' })
    assert.deepStrictEqual(patched(treeOf({}), "*** Begin Patch\n*** Add File: g\n+x\r\n*** End Patch\n"), {
      g: '"x\\r\\n"'
    })
  })

  it.each([
    ["blanks around markers", " *** Begin Patch \n  *** Update File: f\n@@\n-a\n+b\n *** End Patch \n\n"],
    ["a here-document", "<<'EOF'\n*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch\nEOF\n"],
    ["a command", 'apply_patch <<"EOF"\n*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch\nEOF'],
    ["a fence", "```diff\n*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch\n```\n"]
  ])("forgives %s", (_, patch) => {
    assert.deepStrictEqual(patched(treeOf({ f: "a\n" }), patch), { f: '"b\\n"' })
  })

  it.each([
    ["no end", "*** Begin Patch\n*** Add File: x\n+hi", "truncated"],
    ["only a beginning", "*** Begin Patch", "truncated"],
    ["text after the end", "*** Begin Patch\n*** Add File: x\n+hi\n*** End Patch\nthanks", "truncated"],
    ["no beginning", "*** Add File: x\n+hi\n*** End Patch", "malformed"],
    ["nothing between", "*** Begin Patch\n*** End Patch", "empty"],
    ["an unknown header", "*** Begin Patch\n*** Frobnicate File: x\n*** End Patch", "malformed"],
    ["new lines without a plus", "*** Begin Patch\n*** Add File: x\nhi\n*** End Patch", "malformed"],
    ["lines after a deletion", "*** Begin Patch\n*** Delete File: f\n-a\n*** End Patch", "malformed"],
    ["an existing target", "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch", "exists"],
    ["an existing destination", update("*** Move to: g\n@@\n-a\n+b\n"), "exists"],
    ["a missing file", update("@@\n-a\n+b\n", "missing"), "not_found"],
    ["a missing file to delete", "*** Begin Patch\n*** Delete File: missing\n*** End Patch", "not_found"],
    ["a directory to delete", "*** Begin Patch\n*** Delete File: d\n*** End Patch", "not_a_file"],
    ["a directory in the way", "*** Begin Patch\n*** Add File: d\n+x\n*** End Patch", "not_a_file"],
    ["a file as a directory", "*** Begin Patch\n*** Add File: f/x\n+x\n*** End Patch", "not_a_file"],
    ["a symlink to update", update("@@\n-a\n+b\n", "link"), "not_a_file"],
    ["a symlink to delete", "*** Begin Patch\n*** Delete File: link\n*** End Patch", "not_a_file"],
    ["a symlink on the way", "*** Begin Patch\n*** Add File: dlink/x\n+x\n*** End Patch", "not_a_file"],
    ["a move through a symlink", update("*** Move to: dlink/y\n@@\n-a\n+b\n"), "not_a_file"],
    ["a path out", "*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch", "invalid_path"],
    ["a move out", update("*** Move to: ../f\n@@\n-a\n+b\n"), "invalid_path"],
    ["an absolute path", "*** Begin Patch\n*** Add File: /tmp/x\n+x\n*** End Patch", "invalid_path"],
    ["no path", "*** Begin Patch\n*** Add File: \n+x\n*** End Patch", "malformed"],
    ["a git directory", "*** Begin Patch\n*** Add File: .Git/config\n+x\n*** End Patch", "invalid_path"],
    ["a binary file", update("@@\n+a\n", "bin"), "binary"],
    ["a file in another encoding", update("@@\n+a\n", "latin"), "encoding"],
    ["a broken character", "*** Begin Patch\n*** Add File: x\n+\ud83d\n*** End Patch", "encoding"],
    [
      "a second step that fails",
      "*** Begin Patch\n*** Add File: x\n+hi\n*** Delete File: missing\n*** End Patch",
      "not_found"
    ]
  ])("refuses %s", (_, patch, reason) => {
    const tree = treeOf({
      f: "a\n",
      g: "g\n",
      "d/x": "x\n",
      link: { _tag: "Symlink", target: "f" },
      dlink: { _tag: "Symlink", target: "d" },
      bin: new Uint8Array([0, 1, 2]),
      latin: new Uint8Array([0xe9, 10])
    })
    assert.strictEqual(patched(tree, patch), reason)
  })

  it("sees what earlier steps did", () => {
    const steps =
      "*** Add File: n\n+a\n*** Update File: n\n@@\n-a\n+b\n*** Delete File: f\n*** Add File: f\n+new\n"
    const patch = `*** Begin Patch\n${steps}*** End Patch`
    assert.deepStrictEqual(patched(treeOf({ f: "old\n" }), patch), { f: '"new\\n"', n: '"b\\n"' })
    const clash = "*** Begin Patch\n*** Add File: d/x\n+a\n*** Add File: d\n+b\n*** End Patch"
    assert.strictEqual(patched(treeOf({}), clash), "not_a_file")
  })

  it("moves a file without changing it, binary or not", () => {
    const tree = treeOf({ f: file(new Uint8Array([0, 255]), true) })
    assert.deepStrictEqual(patched(tree, update("*** Move to: d/g\n")), { "d/g": 'x "\\u0000ÿ"' })
  })

  it("handles many equal lines in linear time", () => {
    const content = `${"x\n".repeat(60_000)}end\n`
    const body = `@@\n${" x\n".repeat(1500)}-end\n+END\n`
    const after = applied(content, body)
    assert.strictEqual(after.length, content.length)
    assert.isTrue(after.endsWith("x\nEND\n"))
  })
})

function asBytes(character: string): string {
  return Array.from(new TextEncoder().encode(character), (byte) => String.fromCharCode(byte)).join("")
}
