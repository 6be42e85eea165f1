/** Tools that change files. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { FileNode } from "../../../src/domain/patch/FileSet.ts"
import { open } from "./harness.ts"

const link = (target: string): FileNode => ({ _tag: "Symlink", target })
const script = (content: string): FileNode => ({
  _tag: "File",
  bytes: new TextEncoder().encode(content),
  executable: true
})

describe("replace_text", () => {
  it.effect("shows what changed and names the new tree", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* open({ a: "1\n2\n3\n" })
      const observation = yield* call("replace_text", { path: "a", old_text: "2", new_text: "two" })
      assert.deepStrictEqual(observation, {
        ok: true,
        content: "edited a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3",
        tree: yield* memory.workspace.tree
      })
    })
  )

  it.effect("keeps modes and links, and edits the file that a link names", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open({
        "bin/run": script("a\n"),
        "l/run": link("../bin/run"),
        d: link("bin")
      })
      assert.isTrue((yield* call("replace_text", { path: "l/run", old_text: "a", new_text: "b" })).ok)
      assert.isTrue((yield* call("replace_text", { path: "d/run", old_text: "b", new_text: "c" })).ok)
      assert.deepStrictEqual(yield* tree, { "bin/run": "+x c\n", d: "-> bin", "l/run": "-> ../bin/run" })
    })
  )

  it.effect("replaces every occurrence only when asked", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open({ a: "x x\n" })
      assert.isFalse((yield* call("replace_text", { path: "a", old_text: "x", new_text: "y" })).ok)
      assert.isTrue(
        (yield* call("replace_text", { path: "a", old_text: "x", new_text: "y", replace_all: true })).ok
      )
      assert.deepStrictEqual(yield* tree, { a: "y y\n" })
    })
  )

  it.effect("answers a stale guess with no match", () =>
    Effect.gen(function* () {
      const { call } = yield* open({ a: "new\n" })
      const { content, ok } = yield* call("replace_text", { path: "a", old_text: "old\n", new_text: "x\n" })
      assert.isFalse(ok)
      assert.include(content, "does not occur")
    })
  )

  it.effect("refuses files, texts and results that are too large", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open(
        { a: "x".repeat(60), b: "y".repeat(200) },
        { limits: { max_read_bytes: 100, max_patch_bytes: 90 } }
      )
      const before = yield* tree
      assert.isFalse(
        (yield* call("replace_text", { path: "b", old_text: "y", new_text: "z", replace_all: true })).ok
      )
      assert.include(
        (yield* call("replace_text", { path: "a", old_text: "x", new_text: "zzz", replace_all: true }))
          .content,
        "larger than 100 bytes"
      )
      assert.include(
        (yield* call("replace_text", { path: "a", old_text: "x".repeat(60), new_text: "z".repeat(40) }))
          .content,
        "more than 90 bytes"
      )
      assert.deepStrictEqual(yield* tree, before)
    })
  )
})

describe("create_file", () => {
  it.effect("makes files, empty ones too, with their directories", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open({ real: { _tag: "Directory" }, l: link("real") })
      assert.strictEqual(
        (yield* call("create_file", { path: "a/b/c.txt", content: "1\n2\n" })).content,
        "created a/b/c.txt (2 lines)"
      )
      assert.isTrue((yield* call("create_file", { path: "empty", content: "" })).ok)
      assert.isTrue((yield* call("create_file", { path: "l/x", content: "through a link" })).ok)
      assert.deepStrictEqual(yield* tree, {
        "a/b/c.txt": "1\n2\n",
        empty: "",
        l: "-> real",
        "real/x": "through a link"
      })
    })
  )

  it.effect("never overwrites and never leaves the workspace", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open(
        {
          file: "big ".repeat(10),
          "dir/x": "",
          dangling: link("nowhere"),
          out: link("../out"),
          ok: link("real"),
          "real/f": ""
        },
        { limits: { max_read_bytes: 20 } }
      )
      const before = yield* tree
      for (const path of [
        "file",
        "dir",
        "dangling",
        "out/x",
        "file/x",
        "../x",
        ".git/hooks/x",
        "a/.git/x",
        "git~1/x",
        "a/",
        ".",
        "ok/f"
      ]) {
        const { content, ok } = yield* call("create_file", { path, content: "evil" })
        assert.isFalse(ok, `${path}: ${content}`)
      }
      assert.isFalse((yield* call("create_file", { path: "n", content: "a\0b" })).ok)
      assert.deepStrictEqual(yield* tree, before)
    })
  )
})

describe("apply_patch", () => {
  const patch = (...lines: ReadonlyArray<string>) =>
    ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n")

  it.effect("lists what it did and shows the edits", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open({ a: "1\n", b: "2\n" })
      const { content, ok } = yield* call("apply_patch", {
        patch: patch("*** Update File: a", "@@", "-1", "+one", "*** Delete File: b", "*** Add File: c", "+3")
      })
      assert.isTrue(ok, content)
      assert.strictEqual(
        content.split("\n").slice(0, 4).toSorted().join("\n"),
        ["3 files changed", "created c (1 line)", "deleted b", "edited a"].join("\n")
      )
      assert.include(content, "-1\n+one")
      assert.deepStrictEqual(yield* tree, { a: "one\n", c: "3\n" })
    })
  )

  it.effect("applies nothing when one path is outside the allowed paths", () =>
    Effect.gen(function* () {
      const { call, tree } = yield* open({ "src/a": "1\n", b: "2\n" }, { allowed_paths: ["src/**"] })
      const before = yield* tree
      const { content, ok } = yield* call("apply_patch", {
        patch: patch("*** Update File: src/a", "@@", "-1", "+one", "*** Update File: b", "@@", "-2", "+two")
      })
      assert.isFalse(ok)
      assert.include(content, '"b" is outside the allowed paths: src/**')
      assert.deepStrictEqual(yield* tree, before)
    })
  )
})

describe("the limits of the whole patch", () => {
  it.effect("take an edit back that exceeds them, new and deleted files included", () =>
    Effect.gen(function* () {
      const { call, memory, tree } = yield* open(
        { a: script("1\n"), b: "2\n", c: "3\n" },
        { limits: { max_changed_files: 2 } }
      )
      assert.isTrue((yield* call("replace_text", { path: "c", old_text: "3", new_text: "three" })).ok)
      const before = yield* tree
      const treeBefore = yield* memory.workspace.tree
      const observation = yield* call("apply_patch", {
        patch: "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n*** End Patch\n"
      })
      assert.deepStrictEqual(observation, {
        ok: false,
        content: "the edit was refused and taken back: the patch would change 3 files, more than 2",
        tree: treeBefore
      })
      assert.isFalse(
        (yield* call("apply_patch", {
          patch: "*** Begin Patch\n*** Add File: d/e\n+1\n*** Add File: f\n+1\n*** End Patch\n"
        })).ok
      )
      assert.deepStrictEqual(yield* tree, before)
    })
  )

  for (const [limit, limits] of [
    ["bytes", { max_patch_bytes: 300 }],
    ["lines", { max_patch_lines: 20 }]
  ] as const) {
    it.effect(`count the ${limit} of everything so far`, () =>
      Effect.gen(function* () {
        const { call, tree } = yield* open({}, { limits })
        const content = "0123456789\n".repeat(8)
        assert.isTrue((yield* call("create_file", { path: "a", content })).ok)
        const before = yield* tree
        const second = yield* call("create_file", { path: "b", content })
        assert.isFalse(second.ok)
        assert.match(second.content, new RegExp(`taken back: the patch would have \\d+ ${limit}`))
        assert.deepStrictEqual(yield* tree, before)
      })
    )
  }
})
