import { Result } from "effect"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { encode } from "../../../src/domain/patch/ByteString.ts"
import type { FileNode } from "../../../src/domain/patch/FileSet.ts"
import { bodyOf, splitLines } from "../../../src/domain/patch/Lines.ts"
import { parseDiff } from "../../../src/domain/patch/UnifiedDiff.ts"
import { checkWorkspacePath } from "../../../src/domain/WorkspacePath.ts"
import {
  applyPatch,
  file,
  patched,
  readerOf,
  renderDiff,
  shown,
  type Tree,
  treeOf,
  withChanges
} from "./support.ts"

/** Lines that look like parts of a patch, and endings of every kind. */
const line = fc
  .tuple(
    fc.constantFrom(
      "a",
      "b",
      "c",
      "",
      "  ",
      "x\t",
      "é 😀",
      "- q",
      "-- q",
      "++ z",
      "@@ -1 +1 @@",
      "\\ No newline",
      "*** End Patch",
      "diff --git a/f b/f",
      "\ufeff",
      "$&"
    ),
    fc.constantFrom("\n", "\n", "\n", "\r\n", "\r\r\n")
  )
  .map((parts) => parts.join(""))
const contents = fc
  .tuple(fc.array(line, { maxLength: 30 }), fc.constantFrom("", "", "end", "end\r"))
  .map(([lines, end]) => lines.join("") + end)
const names = fc.constantFrom("f", "dir/g", "a b", "x y/c d", "é/ü.txt", 'q"q', "t\tt", "-rf", "b/a", "$HOME")
const edits = fc
  .tuple(contents, fc.array(fc.tuple(fc.nat(), fc.nat(2), line), { minLength: 1, maxLength: 4 }))
  .map(([before, changes]) => {
    const lines = [...splitLines(before)]
    for (const [at, count, text] of changes) lines.splice(at % (lines.length + 1), count, text)
    // Only the last line may lack an ending.
    const after = lines
      .map((text, at) => (at < lines.length - 1 && !text.endsWith("\n") ? `${text}\n` : text))
      .join("")
    return { before, after }
  })
const trees = fc.uniqueArray(fc.tuple(names, edits), {
  selector: ([name]) => name,
  minLength: 1,
  maxLength: 4
})

describe("unified diffs", () => {
  it("bring the old files to the new ones, with any context that git would take", () => {
    fc.assert(
      fc.property(trees, fc.integer({ min: 3, max: 9 }), (files, context) => {
        const patch = files
          .map(([name, { after, before }]) => renderDiff(name, before, after, context))
          .join("")
        fc.pre(patch !== "")
        const before = treeOf(Object.fromEntries(files.map(([name, edit]) => [name, edit.before])))
        const after = treeOf(Object.fromEntries(files.map(([name, edit]) => [name, edit.after])))
        assert.deepStrictEqual(patched(before, patch), shown(after))
      })
    )
  })

  it("create and delete files", () => {
    fc.assert(
      fc.property(names, contents, (name, content) => {
        assert.deepStrictEqual(
          patched(treeOf({}), renderDiff(name, undefined, content)),
          shown(treeOf({ [name]: content }))
        )
        assert.deepStrictEqual(patched(treeOf({ [name]: content }), renderDiff(name, content, undefined)), {})
      })
    )
  })

  it("read back as they were written", () => {
    fc.assert(
      fc.property(trees, (files) => {
        const changed = files.filter(([, { after, before }]) => after !== before)
        fc.pre(changed.length > 0)
        const patch = changed.map(([name, { after, before }]) => renderDiff(name, before, after)).join("")
        const parsed = Result.getOrThrow(parseDiff(`Subject: x\n\n${patch}-- \n2.39\n`))
        assert.deepStrictEqual(
          parsed.map(({ kind, newPath, oldPath }) => [kind, oldPath, newPath]),
          changed.map(([name]) => ["modify", encode(name), encode(name)])
        )
        const body = parsed.flatMap(({ hunks }) =>
          hunks.flatMap(({ lines }) => lines.map(({ text }) => text))
        )
        const written = splitLines(encode(patch)).filter(
          (text) => !/^(?:diff --git |--- [ab"]|\+\+\+ [ab"]|@@ |\\ No newline at)/.test(text)
        )
        assert.strictEqual(body.length, written.length)
        for (const { hunks, additions, deletions } of parsed) {
          const count = (kind: string) =>
            hunks.flatMap(({ lines }) => lines).filter((entry) => entry.kind === kind).length
          assert.deepStrictEqual([additions, deletions], [count("add"), count("remove")])
          for (const { lines, newCount, oldCount } of hunks) {
            assert.strictEqual(lines.filter(({ kind }) => kind !== "add").length, oldCount)
            assert.strictEqual(lines.filter(({ kind }) => kind !== "remove").length, newCount)
          }
        }
      })
    )
  })
})

/** A chunk for the whole file: everything around the change is context, so it fits in one place only. */
const codexOf = (before: string, after: string): string => {
  const mark = (prefix: string, text: string) =>
    splitLines(text)
      .map((each) => `${prefix}${bodyOf(each)}\n`)
      .join("")
  return `*** Begin Patch\n*** Update File: f\n@@\n${mark("-", before)}${mark("+", after)}*** End of File\n*** End Patch\n`
}

describe("*** Begin Patch patches", () => {
  const plainLine = fc.constantFrom(
    "a\n",
    "b\n",
    "\n",
    "  x\n",
    "é\n",
    "-q\n",
    "+z\n",
    "@@\n",
    "*** End Patch\n"
  )
  const plain = fc.array(plainLine, { maxLength: 12 }).map((lines) => lines.join(""))

  it("bring an old file to the new one, in the endings that it has", () => {
    fc.assert(
      fc.property(
        plain,
        plain,
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.boolean(),
        (before, after, ending, bom) => {
          fc.pre(before !== after && before !== "")
          const real = (text: string) => (bom ? "\ufeff" : "") + text.replaceAll("\n", ending)
          assert.deepStrictEqual(
            patched(treeOf({ f: real(before) }), codexOf(before, after)),
            shown(treeOf({ f: real(after) }))
          )
        }
      )
    )
  })

  it("keep every line that they do not name", () => {
    fc.assert(
      fc.property(contents, contents, fc.boolean(), (above, below, crlf) => {
        const start = above === "" || above.endsWith("\n") ? above : `${above}\n`
        const content = `${start}UNIQUE${crlf ? "\r\n" : "\n"}${below}`
        const patch = "*** Begin Patch\n*** Update File: f\n@@\n-UNIQUE\n*** End Patch\n"
        assert.deepStrictEqual(patched(treeOf({ f: content }), patch), shown(treeOf({ f: start + below })))
      })
    )
  })
})

const fragments = fc.constantFrom(
  ...[
    "*** Begin Patch\n",
    "*** End Patch\n",
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: "
  ],
  ...[
    "diff --git a/",
    " b/",
    "--- a/",
    "--- /dev/null\n",
    "+++ b/",
    "+++ /dev/null\n",
    "rename from ",
    "rename to "
  ],
  ...[
    "new file mode 100644\n",
    "deleted file mode 100644\n",
    "old mode 100755\n",
    "new mode 120000\n",
    "@@\n",
    "@@ a\n"
  ],
  ...[
    "@@ -1,2 +1,2 @@\n",
    "@@ -0,0 +1 @@\n",
    "@@ -1 +0,0 @@\n",
    "\\ No newline at end of file\n",
    " a\n",
    "-a\n",
    "+b\n"
  ],
  ...[
    "f",
    "d/g",
    "../x",
    "/etc/x",
    ".git/config",
    ".GIT ",
    "link/x",
    "f/x",
    '"\\056./x"',
    "~/x",
    "C:x",
    "\n",
    "\0",
    "\ud83d"
  ]
)

describe("any text at all", () => {
  const tree: Tree = treeOf({
    f: "a\na\n",
    "d/g": file("a\n", true),
    "out/x": "a\n",
    link: { _tag: "Symlink", target: "out" }
  })
  const before = shown(tree)

  it("is refused or applied, throws never, and writes only inside", () => {
    const scripts = fc.oneof(
      fc.array(fragments, { maxLength: 14 }).map((parts) => parts.join("")),
      fc
        .array(fragments, { maxLength: 10 })
        .map((parts) => `*** Begin Patch\n${parts.join("")}\n*** End Patch`),
      fc.string({ unit: "binary" })
    )
    fc.assert(
      fc.property(scripts, (patch) => {
        const result = applyPatch(patch, readerOf(tree))
        assert.deepStrictEqual(shown(tree), before)
        if (Result.isFailure(result)) {
          assert.notMatch(result.failure.message, /\n/)
          return
        }
        const paths = result.success.map(({ path }) => path)
        assert.strictEqual(new Set(paths).size, paths.length)
        for (const path of paths) {
          assert.strictEqual(Result.getOrUndefined(checkWorkspacePath(path)), path)
          assert.isFalse(path.startsWith("link"))
        }
        assert.notDeepEqual(shown(withChanges(tree, result.success)), before)
      }),
      { numRuns: 2000 }
    )
  })

  it("changes nothing when a later part fails, whatever came before", () => {
    fc.assert(
      fc.property(trees, (files) => {
        const patch = files.map(([name, { after, before }]) => renderDiff(name, before, after)).join("")
        const start = treeOf(Object.fromEntries(files.map(([name, edit]) => [name, edit.before])))
        const seen = new Map<string, FileNode>(start)
        const failing = `${patch}${renderDiff("missing", "x\n", "y\n")}`
        assert.strictEqual(patched(start, failing), "not_found")
        assert.deepStrictEqual(shown(start), shown(seen))
      })
    )
  })
})
