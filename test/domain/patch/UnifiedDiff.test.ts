import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { isEpoch } from "../../../src/domain/patch/DiffNames.ts"
import { decodeLossy } from "../../../src/domain/patch/ByteString.ts"
import type { DiffFile } from "../../../src/domain/patch/Diff.ts"
import { parseDiff } from "../../../src/domain/patch/UnifiedDiff.ts"
import { file, patched, refusal, renderDiff, treeOf } from "./support.ts"

const header = (path: string): string => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n`
const change = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
const abc = treeOf({ f: "a\nb\nc\n" })

const shown = ({ additions, binary, deletions, kind, newMode, newPath, oldMode, oldPath }: DiffFile) => ({
  kind,
  oldPath: oldPath === undefined ? undefined : decodeLossy(oldPath),
  newPath: newPath === undefined ? undefined : decodeLossy(newPath),
  oldMode,
  newMode,
  binary,
  additions,
  deletions
})
const listed = (patch: string | Uint8Array) =>
  Result.match(parseDiff(patch), {
    onFailure: ({ reason }) => reason,
    onSuccess: (files) => files.map(shown)
  })

describe("applying unified diffs", () => {
  it.each([
    ["git's own", header("f") + change],
    ["a plain one", `--- a/f\n+++ b/f\n${change}`],
    ["a plain one without directories or prefixes", `--- f\n+++ f\n${change}`],
    ["a backup as the old name", `--- a/f.orig\n+++ b/f\n${change}`],
    [
      "time stamps after a tab",
      `--- a/f\t2007-02-21 01:04:24.000000000 -0800\n+++ b/f\t2007-02-21 01:07:44\n${change}`
    ],
    [
      "time stamps after a blank",
      `--- a/f 2007-02-21 01:04:24 -0800\n+++ b/f 2007-02-21 01:07:44 -0800\n${change}`
    ],
    ["mnemonic prefixes", `diff --git i/f w/f\n--- i/f\n+++ w/f\n${change}`],
    ["reversed prefixes", `diff --git b/f a/f\n--- b/f\n+++ a/f\n${change}`],
    ["a heading in the hunk's header", header("f") + change.replace("@@\n", "@@ def f(): @@ x\n")],
    ["index and mode", `diff --git a/f b/f\nindex 1234567..89abcde 100644\n--- a/f\n+++ b/f\n${change}`],
    ["an index line before the file", `Index: f\n=====\n--- a/f\n+++ b/f\n${change}`],
    [
      "a mail around it",
      `From 1 Mon\nSubject: [PATCH] x\n\n---\n f | 2 +-\n\n${header("f")}${change}-- \n2.39.5\n\n`
    ],
    ["a fence around it", `Here it is:\n\`\`\`diff\n${header("f")}${change}\`\`\`\nDone.\n`],
    ["headers with CRLF", header("f").replaceAll("\n", "\r\n") + change],
    ["a trimmed last newline", (header("f") + change).trimEnd()]
  ])("reads %s", (_, patch) => {
    assert.deepStrictEqual(patched(abc, patch), { f: '"a\\nB\\nc\\n"' })
  })

  it.each([
    ["a file.txt", "diff --git a/a file.txt b/a file.txt\n--- a/a file.txt\t\n+++ b/a file.txt\t\n"],
    ["a b/a b", "diff --git a/a b/a b b/a b/a b\n--- a/a b/a b\t\n+++ b/a b/a b\t\n"],
    [
      "é.txt",
      'diff --git "a/\\303\\251.txt" "b/\\303\\251.txt"\n--- "a/\\303\\251.txt"\n+++ "b/\\303\\251.txt"\n'
    ],
    ["é.txt", "diff --git a/é.txt b/é.txt\n--- a/é.txt\n+++ b/é.txt\n"],
    ['q"q', 'diff --git "a/q\\"q" "b/q\\"q"\n--- "a/q\\"q"\n+++ "b/q\\"q"\n'],
    ["t\tt", 'diff --git "a/t\\tt" "b/t\\tt"\n--- "a/t\\tt"\n+++ "b/t\\tt"\n'],
    ["-f", "diff --git a/-f b/-f\n--- a/-f\n+++ b/-f\n"]
  ])("reads the name %j", (path, names) => {
    assert.deepStrictEqual(Object.keys(patched(treeOf({ [path]: "a\nb\nc\n" }), names + change)), [path])
    assert.strictEqual(refusal(treeOf({ [path]: "a\nb\nc\n" }), names + change), undefined)
  })

  it("keeps every byte that it does not name, in any encoding", () => {
    const before = new Uint8Array([0xe9, 10, 97, 13, 10, 98, 10, 99, 32, 32, 10, 13, 0xff])
    const patch = `${header("f")}@@ -2,3 +2,3 @@\n a\r\n-b\n+B\t\n c  \n`
    assert.deepStrictEqual(patched(treeOf({ f: before }), patch), { f: '"é\\na\\r\\nB\\t\\nc  \\n\\rÿ"' })
  })

  it("follows a unique move and leaves the rest alone", () => {
    const content = "1\n2\n3\n4\n5\nh\na\nb\nc\nt\n"
    const patch = `${header("f")}@@ -2,5 +2,5 @@\n h\n a\n-b\n+B\n c\n t\n`
    assert.deepStrictEqual(patched(treeOf({ f: content }), patch), {
      f: '"1\\n2\\n3\\n4\\n5\\nh\\na\\nB\\nc\\nt\\n"'
    })
    assert.strictEqual(patched(treeOf({ f: content + content }), patch.replace("-2,5", "-4,5")), "ambiguous")
    const exact = patched(treeOf({ f: `x\n${content.slice(10)}${content.slice(10)}` }), patch)
    assert.deepStrictEqual(exact, { f: '"x\\nh\\na\\nB\\nc\\nt\\nh\\na\\nb\\nc\\nt\\n"' })
  })

  it("takes hunks in any order, each on its own lines", () => {
    const content = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    const first = "@@ -2,3 +2,3 @@\n 2\n-3\n+C\n 4\n"
    const second = "@@ -6,3 +6,3 @@\n 6\n-7\n+G\n 8\n"
    const after = { f: '"1\\n2\\nC\\n4\\n5\\n6\\nG\\n8\\n9\\n"' }
    assert.deepStrictEqual(patched(treeOf({ f: content }), header("f") + first + second), after)
    assert.deepStrictEqual(patched(treeOf({ f: content }), header("f") + second + first), after)
    assert.strictEqual(patched(treeOf({ f: content }), header("f") + first + first), "no_match")
  })

  it("creates, deletes, copies, renames and changes modes", () => {
    const tree = treeOf({ a: "1\n2\n3\n", "d/b": file("x\n", true), gone: "bye", empty: "" })
    const patch =
      "diff --git a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1,2 @@\n+#!\n+x\n\\ No newline at end of file\n" +
      "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\\ No newline at end of file\n" +
      "diff --git a/empty b/empty\ndeleted file mode 100644\n" +
      "diff --git a/a b/c\nsimilarity index 60%\ncopy from a\ncopy to c\n--- a/a\n+++ b/c\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" +
      "diff --git a/d/b b/e/b\nold mode 100755\nnew mode 100644\nsimilarity index 100%\nrename from d/b\nrename to e/b\n" +
      "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
    assert.deepStrictEqual(patched(tree, patch), {
      a: 'x "1\\n2\\n3\\n"',
      c: '"1\\ntwo\\n3\\n"',
      "e/b": '"x\\n"',
      "new.sh": 'x "#!\\nx"'
    })
  })

  it("swaps two files, since renames see the tree before the patch", () => {
    const rename = (from: string, to: string) =>
      `diff --git a/${from} b/${to}\nsimilarity index 100%\nrename from ${from}\nrename to ${to}\n`
    const swapped = patched(treeOf({ a: "A", b: "B" }), rename("a", "b") + rename("b", "a"))
    assert.deepStrictEqual(swapped, { a: '"B"', b: '"A"' })
    assert.strictEqual(patched(treeOf({ a: "A", b: "B" }), rename("a", "b")), "exists")
    assert.strictEqual(patched(treeOf({ a: "A" }), rename("a", "a/b")), "not_a_file")
    const edited = patched(treeOf({ f: "a\nb\nc\n" }), header("f") + change + rename("f", "g"))
    assert.strictEqual(edited, "conflict")
  })

  it("sees what earlier files of the patch did", () => {
    const second = "@@ -1,3 +1,3 @@\n a\n-B\n+BB\n c\n"
    assert.deepStrictEqual(patched(abc, header("f") + change + header("f") + second), {
      f: '"a\\nBB\\nc\\n"'
    })
    const retyped = renderDiff("f", "a\nb\nc\n", undefined) + renderDiff("f/g", undefined, "x\n")
    assert.deepStrictEqual(patched(abc, retyped), { "f/g": '"x\\n"' })
  })

  it("lets a plain diff create and remove files", () => {
    const hunk = "@@ -0,0 +1 @@\n+x\n"
    assert.deepStrictEqual(patched(treeOf({}), `--- /dev/null\n+++ b/d/n\n${hunk}`), { "d/n": '"x\\n"' })
    assert.deepStrictEqual(patched(treeOf({}), `--- a/n\n+++ b/n\n${hunk}`), { n: '"x\\n"' })
    const epoch = "1970-01-01 00:00:00.000000000 +0000"
    assert.deepStrictEqual(patched(treeOf({}), `--- a/n\t${epoch}\n+++ b/n\t2020-01-01 00:00:00\n${hunk}`), {
      n: '"x\\n"'
    })
    const removal = "@@ -1 +0,0 @@\n-x\n"
    assert.deepStrictEqual(patched(treeOf({ n: "x\n" }), `--- a/n\n+++ b/n\t${epoch}\n${removal}`), {})
    assert.deepStrictEqual(patched(treeOf({ n: "x\n" }), `--- a/n\n+++ /dev/null\n${removal}`), {})
    assert.deepStrictEqual(patched(treeOf({ n: "x\n" }), `--- a/n\n+++ b/n\n${removal}`), { n: '""' })
  })

  it("knows the epoch in every time zone, and nothing near it", () => {
    assert.isTrue(isEpoch("1970-01-01 00:00:00.000000000 +0000"))
    assert.isTrue(isEpoch("1969-12-31 16:00:00 -0800"))
    assert.isTrue(isEpoch("1970-01-01 05:30:00.0 +05:30"))
    assert.isFalse(isEpoch("1970-01-01 00:00:01 +0000"))
    assert.isFalse(isEpoch("1970-01-01 01:00:00 +0000"))
    assert.isFalse(isEpoch("1969-12-31 23:59:00 +0000"))
  })

  it.each([
    ["context that differs", header("f") + change.replace(" c", " C"), "no_match"],
    ["a patch that is in already", header("f") + "@@ -1,3 +1,3 @@\n a\n-B\n+b\n c\n", "no_match"],
    ["blanks that differ", header("f") + change.replace(" a\n", " a \n"), "no_match"],
    [
      "line endings that differ",
      header("f") + change.replaceAll("\n", "\r\n").replace("@@\r", "@@"),
      "no_match"
    ],
    ["an end that is none", header("f") + "@@ -1,2 +1,3 @@\n a\n b\n+x\n", "no_match"],
    ["a start that is none", header("f") + "@@ -1,2 +1,3 @@\n+x\n b\n c\n", "no_match"],
    ["no context and a wrong line", header("f") + "@@ -2,1 +2,1 @@\n-c\n+C\n", "no_match"],
    ["an insertion without context in the middle", header("f") + "@@ -1,0 +2,1 @@\n+x\n", "no_match"],
    [
      "a newline that is there",
      header("f") + "@@ -1,3 +1,3 @@\n a\n b\n-c\n\\ No newline at end of file\n+C\n",
      "no_match"
    ],
    [
      "a deletion that leaves lines",
      header("f").replace("+++ b/f", "+++ /dev/null") + "@@ -1,2 +0,0 @@\n-a\n-b\n",
      "no_match"
    ],
    ["counts that are too large", header("f") + change.replace("-1,3", "-1,4"), "truncated"],
    ["counts that are too small", header("f") + change.replace("-1,3 +1,3", "-1,2 +1,2"), "counts"],
    ["lost lines after a gap", `${header("f")}${change}\n+lost\n`, "counts"],
    ["a line without a mark", header("f") + change.replace(" a", "a"), "counts"],
    ["an end in the middle", header("f") + change.slice(0, -4), "truncated"],
    ["an added line that may be cut", `${header("f")}@@ -1,3 +1,4 @@\n a\n b\n c\n+dddd`, "truncated"],
    ["a hunk without numbers", `${header("f")}@@ ... @@\n a\n-b\n+B\n`, "malformed"],
    ["a hunk without a file", change, "malformed"],
    ["a hunk that changes nothing", `${header("f")}@@ -1,3 +1,3 @@\n a\n b\n c\n`, "malformed"],
    [
      "lines after the last one",
      `${header("f")}@@ -1,3 +1,3 @@\n a\n-b\n+B\n\\ No newline at end of file\n c\n`,
      "malformed"
    ],
    [
      "a marker after nothing",
      `${header("f")}@@ -1,3 +1,3 @@\n\\ No newline at end of file\n a\n-b\n+B\n c\n`,
      "malformed"
    ],
    ["a header without hunks", header("f"), "malformed"],
    ["a header alone", "diff --git a/f b/f\nindex 1234567..89abcde 100644\n", "malformed"],
    ["lines without a hunk's header", "diff --git a/n b/n\nnew file mode 100644\n+x\n", "counts"],
    ["names that disagree", header("f").replace("+++ b/f", "+++ b/g") + change, "malformed"],
    ["names that differ in a plain diff", `--- a/f\n+++ b/g\n${change}`, "malformed"],
    ["a missing name", header("f").replace("+++ b/f\n", "") + change, "malformed"],
    ["two missing names", `diff --git a/f b/f\n${change}`, "malformed"],
    ["a bad quote", 'diff --git "a/f b/f\n--- a/f\n+++ b/f\n' + change, "malformed"],
    ["no names at all", `--- /dev/null\n+++ /dev/null\n${change}`, "malformed"],
    ["a new file with old lines", header("f").replace("--- a/f", "--- /dev/null") + change, "malformed"],
    [
      "a file both new and deleted",
      "diff --git a/f b/f\nnew file mode 100644\ndeleted file mode 100644\n",
      "malformed"
    ],
    ["names without prefixes", `--- src/f\n+++ src/f\n${change}`, "malformed"],
    ["prose", "this is no patch\n", "malformed"],
    ["nothing", " \n\n", "empty"],
    ["a NUL", `${header("f")}@@ -1 +1 @@\n-a\n+\0\n`, "binary"],
    [
      "a binary difference",
      "diff --git a/f b/f\nindex aed2973..0000000\nBinary files a/f and b/f differ\n",
      "binary"
    ],
    [
      "a binary patch",
      "diff --git a/f b/f\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n",
      "binary"
    ],
    ["a text patch of a binary file", header("bin") + "@@ -1 +1 @@\n-\u0001\n+x\n", "binary"],
    ["a merge", "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n", "unsupported"],
    [
      "a new symlink",
      "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n",
      "unsupported"
    ],
    [
      "a submodule",
      "diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject commit 1\n",
      "unsupported"
    ],
    [
      "a deleted symlink",
      "diff --git a/link b/link\ndeleted file mode 120000\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-f\n\\ No newline at end of file\n",
      "unsupported"
    ],
    [
      "a file that becomes a symlink",
      "diff --git a/f b/f\nold mode 100644\nnew mode 120000\n",
      "unsupported"
    ],
    ["an odd mode", "diff --git a/f b/f\nold mode 100644\nnew mode 040000\n", "unsupported"],
    ["a change to a symlink", header("link") + change, "not_a_file"],
    ["a mode for a symlink", "diff --git a/link b/link\nold mode 100644\nnew mode 100755\n", "not_a_file"],
    ["a rename of a symlink", "diff --git a/link b/l2\nrename from link\nrename to l2\n", "not_a_file"],
    ["a file behind a symlink", renderDiff("dlink/x", undefined, "x\n"), "not_a_file"],
    ["a file below a file", renderDiff("f/x", undefined, "x\n"), "not_a_file"],
    ["a FIFO", header("fifo") + change, "not_a_file"],
    ["a directory", header("d") + change, "not_a_file"],
    ["a missing file", header("missing") + change, "not_found"],
    ["a missing source", "diff --git a/missing b/m\nrename from missing\nrename to m\n", "not_found"],
    ["an existing target", renderDiff("f", undefined, "new\n"), "exists"],
    ["a way out", renderDiff("../x", undefined, "x\n"), "invalid_path"],
    ["a way around", renderDiff("d/../x", undefined, "x\n"), "invalid_path"],
    ["a quoted way out", 'diff --git "a/\\056./x" "b/\\056./x"\nnew file mode 100644\n', "invalid_path"],
    ["an absolute path", "--- /dev/null\n+++ /tmp/x\n@@ -0,0 +1 @@\n+x\n", "invalid_path"],
    ["a rename out", "diff --git a/f b/../f\nrename from f\nrename to ../f\n", "invalid_path"],
    ["a git directory", renderDiff(".git/hooks/post-checkout", undefined, "x\n"), "invalid_path"],
    ["a git directory in other letters", renderDiff("sub/.GiT/config", undefined, "x\n"), "invalid_path"],
    ["a name that is not UTF-8", 'diff --git "a/\\377" "b/\\377"\nnew file mode 100644\n', "invalid_path"],
    ["a name with a line break", 'diff --git "a/x\\ny" "b/x\\ny"\nnew file mode 100644\n', "invalid_path"],
    ["a mode that is there already", "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n", "no_change"],
    ["a broken character", `${header("f")}@@ -1 +1 @@\n-a\n+\ud83d\n`, "encoding"],
    ["a second file that fails", header("f") + change + header("missing") + change, "not_found"]
  ])("refuses %s", (_, patch, reason) => {
    const tree = treeOf({
      f: "a\nb\nc\n",
      "d/x": "x\n",
      link: { _tag: "Symlink", target: "f" },
      dlink: { _tag: "Symlink", target: "d" },
      fifo: { _tag: "Special" },
      bin: new Uint8Array([1, 10, 0])
    })
    assert.strictEqual(patched(tree, patch), reason)
  })

  it("tells what to do about the usual mistakes", () => {
    const says = (patch: string, content = "a\nb\nc\n") =>
      refusal(treeOf({ f: content }), patch)?.message ?? ""
    assert.include(
      says(header("f") + change.replace(" c", " C")),
      'at line 3 the patch has "C", the file has "c"'
    )
    assert.include(says(header("f") + change, "a\r\nb\r\nc\r\n"), "line ending")
    const cut = "@@ -1,3 +1,3 @@\n a\n b\n-c\n+C\n"
    assert.include(says(header("f") + cut, "a\nb\nc"), "ends there without a newline")
    assert.include(
      says(header("f") + change.replace("-1,3 +1,3", "-1,7 +1,9")),
      "the body has 3 old and 3 new lines"
    )
    assert.include(says(`--- src/f\n+++ src/f\n${change}`), "prefixes a/ and b/")
  })
})

describe("parseDiff", () => {
  it("lists what applying would refuse", () => {
    const patch =
      "diff --git a/l b/l\nnew file mode 120000\nindex 0000000..1234567\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+t\n\\ No newline at end of file\n" +
      "diff --git a/s b/s\nindex 1234567..89abcde 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n" +
      "diff --git a/b b/b\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 3\nKcmZQzWMT#Y01f~L\n\n" +
      'diff --git "a/\\377" "b/\\377"\ndeleted file mode 100644\nindex e69de29..0000000\n' +
      "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\nindex 1234567..89abcde 100755\n--- a/x\n+++ b/y\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"
    const text = { binary: false, additions: 0, deletions: 0 }
    assert.deepStrictEqual(listed(patch), [
      {
        ...text,
        kind: "create",
        oldPath: undefined,
        newPath: "l",
        oldMode: undefined,
        newMode: "120000",
        additions: 1
      },
      {
        ...text,
        kind: "modify",
        oldPath: "s",
        newPath: "s",
        oldMode: "160000",
        newMode: "160000",
        additions: 1,
        deletions: 1
      },
      {
        ...text,
        kind: "modify",
        oldPath: "b",
        newPath: "b",
        oldMode: "100644",
        newMode: "100644",
        binary: true
      },
      {
        ...text,
        kind: "delete",
        oldPath: "\ufffd",
        newPath: undefined,
        oldMode: "100644",
        newMode: undefined
      },
      {
        ...text,
        kind: "rename",
        oldPath: "x",
        newPath: "y",
        oldMode: "100755",
        newMode: "100755",
        additions: 2,
        deletions: 1
      }
    ])
  })

  it("reads bytes that are not UTF-8", () => {
    const text = `${header("f")}@@ -1 +1 @@\n-?\n+!\n`
    const bytes = new TextEncoder()
      .encode(text)
      .map((byte) => (byte === 63 ? 0xe9 : byte === 33 ? 0xff : byte))
    assert.strictEqual(listed(bytes).length, 1)
  })

  it("finds no file in an empty patch and refuses a damaged one", () => {
    assert.deepStrictEqual(listed(""), [])
    assert.deepStrictEqual(listed("\n"), [])
    assert.strictEqual(listed("hello\n"), "malformed")
    const early = `${header("f")}@@ -1,2 +1,2 @@\n-b\n\\ No newline at end of file\n-c\n+B\n+C\n`
    assert.strictEqual(listed(early), "malformed")
    assert.strictEqual(listed(header("f") + change.slice(0, -4)), "truncated")
  })
})
