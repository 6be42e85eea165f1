/** Tools that only look. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import type { FileNode } from "../../../src/domain/patch/FileSet.ts"
import { byteLength } from "../../../src/domain/Text.ts"
import { open } from "./harness.ts"

const link = (target: string): FileNode => ({ _tag: "Symlink", target })
const text = (content: string) => ({ ok: true, content })

describe("read_file", () => {
  const read = (
    files: Parameters<typeof open>[0],
    args: Readonly<Record<string, unknown>>,
    options?: Parameters<typeof open>[1]
  ) => Effect.flatMap(open(files, options), ({ call }) => call("read_file", args))

  it.effect("gives the text as it is", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* read({ a: "x\n\ty \n" }, { path: "a" }), text("x\n\ty \n"))
      assert.deepStrictEqual(yield* read({ a: "x" }, { path: "./a" }), text("x"))
      assert.deepStrictEqual(yield* read({ a: "" }, { path: "a" }), text("[the file is empty]"))
    })
  )

  it.effect("hides line endings and the byte order mark, as replace_text does", () =>
    Effect.gen(function* () {
      const files = { a: "\ufeffone\r\ntwo\r\n", mac: "one\rtwo\r" }
      assert.deepStrictEqual(yield* read(files, { path: "a" }), text("one\ntwo\n"))
      assert.deepStrictEqual(yield* read(files, { path: "mac" }), text("one\ntwo\n"))
    })
  )

  it.effect("gives ranges and says how to go on", () =>
    Effect.gen(function* () {
      const files = { a: "1\n2\n3\n4\n5\n" }
      assert.deepStrictEqual(
        yield* read(files, { path: "a", offset: 2, limit: 2 }),
        text("2\n3\n[lines 2-3 of 5; go on with offset 4]")
      )
      assert.deepStrictEqual(yield* read(files, { path: "a", offset: 4 }), text("4\n5\n[lines 4-5 of 5]"))
      assert.deepStrictEqual(yield* read(files, { path: "a", offset: 1, limit: 99 }), text("1\n2\n3\n4\n5\n"))
      assert.deepStrictEqual(yield* read(files, { path: "a", offset: 6 }), {
        ok: false,
        content: '"a" has only 5 lines'
      })
    })
  )

  it.effect("pages through any file without losing or doubling a line", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.string({ unit: fc.constantFrom("a", "é", " "), maxLength: 40 }), {
            minLength: 1,
            maxLength: 60
          }),
          fc.integer({ min: 500, max: 900 }),
          (lines, max) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const { call } = yield* open(
                  { a: `${lines.join("\n")}\n` },
                  { limits: { max_tool_output_bytes: max } }
                )
                const seen: Array<string> = []
                for (let offset: number | undefined = 1; offset !== undefined;) {
                  const { content, ok } = yield* call("read_file", { path: "a", offset })
                  assert.isTrue(ok)
                  assert.isAtMost(byteLength(content), max)
                  const page = content.split("\n")
                  const note: string = page.pop() ?? ""
                  seen.push(...page)
                  const next: RegExpExecArray | null = /go on with offset (\d+)\]$/.exec(note)
                  offset = next === null ? undefined : Number(next[1])
                }
                assert.deepStrictEqual(seen, lines)
              })
            )
        ),
        { numRuns: 50 }
      )
    )
  )

  it.effect("cuts a line that is longer than everything, and goes on after it", () =>
    Effect.gen(function* () {
      const { content } = yield* read(
        { a: `${"x".repeat(5000)}\nend\n` },
        { path: "a" },
        { limits: { max_tool_output_bytes: 600 } }
      )
      assert.isAtMost(byteLength(content), 600)
      assert.match(
        content,
        /^x+\n\[\d+ bytes omitted\]\nx+\n\[line 1 is too long to be shown whole\]\n\[lines 1-1 of 2; go on with offset 2\]$/
      )
    })
  )

  it.effect("says what a file is that is no text", () =>
    Effect.gen(function* () {
      const files = {
        png: new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1]),
        bin: new Uint8Array([1, 0, 2]),
        bad: new Uint8Array([0x61, 0xff, 0x62, 0x0a]),
        dir: { _tag: "Directory" },
        pipe: { _tag: "Special" },
        big: "x".repeat(101)
      } as const
      const said = (path: string) => read(files, { path }, { limits: { max_read_bytes: 100 } })
      assert.deepStrictEqual(yield* said("png"), {
        ok: false,
        content: '"png" is a binary file: PNG image, 6 bytes'
      })
      assert.deepStrictEqual(yield* said("bin"), { ok: false, content: '"bin" is a binary file: 3 bytes' })
      assert.match((yield* said("bad")).content, /^a\ufffdb\n\[not valid UTF-8: /)
      assert.include((yield* said("dir")).content, "is a directory: list_files")
      assert.include((yield* said("pipe")).content, "neither a file nor a directory")
      assert.include((yield* said("none")).content, "does not exist")
      assert.isFalse((yield* said("big")).ok)
    })
  )

  it.effect("follows links inside and none outside, and judges where they lead", () =>
    Effect.gen(function* () {
      const files = {
        "src/a": "in\n",
        ".env": "SECRET\n",
        "src/inside": link("a"),
        "src/dir": link("../src"),
        "src/env": link("../.env"),
        "src/out": link("../../secret"),
        "src/abs": link("/etc/passwd"),
        "src/loop": link("loop"),
        "src/gone": link("nothing"),
        "src/git": link("../.git/config")
      }
      const { call } = yield* open(files, { allowed_paths: ["src/**"] })
      const ask = (path: string) => call("read_file", { path })
      assert.deepStrictEqual(yield* ask("src/inside"), text("in\n"))
      assert.deepStrictEqual(yield* ask("src/dir/dir/a"), text("in\n"))
      for (const path of ["src/env", "src/out", "src/abs", "src/loop", "src/gone", "src/git"]) {
        const { content, ok } = yield* ask(path)
        assert.isFalse(ok, path)
        assert.notInclude(content, "SECRET")
      }
      for (const path of [
        ".env",
        "../x",
        "/etc/passwd",
        "src/../.git/config",
        ".GIT/config",
        "",
        ".",
        "src/a\0",
        "~/x"
      ]) {
        assert.isFalse((yield* ask(path)).ok, path)
      }
    })
  )
})

describe("list_files", () => {
  const files = { "src/a.ts": "", "src/b/c.ts": "", "docs/d.md": "", "e.txt": "", "src/link": link("a.ts") }

  it.effect("lists what is below a directory and allowed", () =>
    Effect.gen(function* () {
      const { call } = yield* open(files)
      assert.deepStrictEqual(
        yield* call("list_files", {}),
        text("docs/d.md\ne.txt\nsrc/a.ts\nsrc/b/c.ts\nsrc/link")
      )
      assert.deepStrictEqual(yield* call("list_files", { path: "src/b/" }), text("src/b/c.ts"))
      assert.deepStrictEqual(yield* call("list_files", { path: "e.txt" }), text("e.txt"))
      assert.isFalse((yield* call("list_files", { path: "none" })).ok)
      assert.isFalse((yield* call("list_files", { path: ".git" })).ok)
      const narrow = yield* open(files, { allowed_paths: ["src/**"] })
      assert.deepStrictEqual(yield* narrow.call("list_files", {}), text("src/a.ts\nsrc/b/c.ts\nsrc/link"))
      assert.isFalse((yield* narrow.call("list_files", { path: "docs" })).ok)
    })
  )

  it.effect("counts directories when there are too many files", () =>
    Effect.gen(function* () {
      const { call } = yield* open(files, { limits: { max_list_files: 3 } })
      assert.deepStrictEqual(
        yield* call("list_files", {}),
        text(
          "docs/ (1 file)\ne.txt\nsrc/ (3 files)\n[5 files, more than 3: directories are counted, not listed; give one as path]"
        )
      )
      const few = yield* open(files, { limits: { max_list_files: 1 } })
      assert.include(
        (yield* few.call("list_files", {})).content,
        "docs/ (1 file)\n[2 more entries are not shown]"
      )
    })
  )
})

describe("search_text", () => {
  it.effect("shows path, line and text, of allowed files only", () =>
    Effect.gen(function* () {
      const files = { ".env": "KEY=1\n", "a.ts": "x\nKEY\n", "b/a.ts": "key KEY\n" }
      const { call } = yield* open(files, { allowed_paths: ["*.ts", "b/**"] })
      const search = (args: Readonly<Record<string, unknown>>) =>
        call("search_text", { query: "KEY", ...args })
      assert.deepStrictEqual(yield* search({}), text("a.ts:2:KEY\nb/a.ts:1:key KEY"))
      assert.deepStrictEqual(yield* search({ path: "b" }), text("b/a.ts:1:key KEY"))
      assert.deepStrictEqual(yield* search({ path: "b/a.ts" }), text("b/a.ts:1:key KEY"))
      assert.deepStrictEqual(yield* search({ glob: "/a.ts" }), text("a.ts:2:KEY"))
      assert.deepStrictEqual(
        yield* search({ query: "^key", regex: true, case_sensitive: false }),
        text("a.ts:2:KEY\nb/a.ts:1:key KEY")
      )
      assert.deepStrictEqual(yield* search({ query: "nothing" }), text("[no matches]"))
      const wrong = yield* search({ query: "(", regex: true })
      assert.isFalse(wrong.ok)
      assert.include(wrong.content, "regular expression is not valid")
    })
  )

  it.effect("says when there are more", () =>
    Effect.gen(function* () {
      const { call } = yield* open({ a: "x\nx\nx\n" }, { limits: { max_search_results: 2 } })
      assert.deepStrictEqual(
        yield* call("search_text", { query: "x" }),
        text("a:1:x\na:2:x\n[more than 2 matches: narrow the search with path, glob or a longer query]")
      )
    })
  )
})

describe("git_diff", () => {
  it.effect("shows every change since the base", () =>
    Effect.gen(function* () {
      const { call } = yield* open({ a: "1\n" })
      assert.deepStrictEqual(yield* call("git_diff", {}), text("[no changes]"))
      yield* call("create_file", { path: "b", content: "2\n" })
      yield* call("replace_text", { path: "a", old_text: "1", new_text: "one" })
      const { content } = yield* call("git_diff", {})
      assert.include(content, "-1\n+one\n")
      assert.include(content, "new file mode 100644\n--- /dev/null\n+++ b/b\n")
    })
  )
})

describe("run_check", () => {
  const outcome = {
    name: "test",
    argv: ["t"],
    verdict: "passed",
    exit_code: 0,
    duration_seconds: 1.25,
    tests: 3,
    reason: null,
    output: "fine\n"
  } as const

  it.effect("answers with the verdict and the output", () =>
    Effect.gen(function* () {
      const { call } = yield* open(
        {},
        {
          checks: {
            good: outcome,
            bad: {
              ...outcome,
              name: "bad",
              verdict: "failed",
              exit_code: 1,
              tests: null,
              reason: "exit code 1",
              output: ""
            }
          }
        }
      )
      assert.deepStrictEqual(
        yield* call("run_check", { name: "good" }),
        text('check "test" passed (exit 0, 1.3 s, 3 tests)\nfine')
      )
      assert.deepStrictEqual(yield* call("run_check", { name: "bad" }), {
        ok: false,
        content: 'check "bad" failed (exit 1, 1.3 s): exit code 1'
      })
    })
  )
})
