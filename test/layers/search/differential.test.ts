/** Ripgrep and the walk are one service: over random trees and queries they give the same answer. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect, Result } from "effect"
import fc from "fast-check"
import { makeRipgrep } from "../../../src/layers/search/Ripgrep.ts"
import { makeWalk } from "../../../src/layers/search/Walk.ts"
import type { SearchQuery } from "../../../src/services/Search.ts"

type Files = ReadonlyArray<readonly [string, string]>

const names = ["a", "b", "ab", "a.ts", "b.js", ".hid", "src", "srcs", "sr"]
const oddNames = ["x y", "n\nl", "c:1", "é", "-d", "[z]", "node_modules"]
const ignoreLines = [
  ...[
    "a",
    "*.ts",
    "!a.ts",
    "/src",
    "src/",
    "src/**",
    "**/b.js",
    "src/*.js",
    "!src/",
    "node_modules/",
    "# a",
    "a*"
  ],
  ...[
    "",
    "\\#x",
    "!*",
    "*",
    "[ab]",
    "[!a]",
    "{a,b}.js",
    "/*/a",
    "x y ",
    "a?",
    "**/ab/**",
    "!.hid",
    "b.js  ",
    "/a/b"
  ],
  ...["**", "a/", "b/", "!b/", "/a/", "ab/*", "!ab", "sr", "c:?", "\\[z]", "é", "?"]
]
const globs = [null, null, "*.ts", "*.{ts,js}", "src/**", "**/a", "/a", "!*.js", "src/*/b", "[ab]", ".hid"]

const name = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...names) },
  { weight: 1, arbitrary: fc.constantFrom(...oddNames) }
)
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
const ignoreFile = fc
  .tuple(
    fc.constantFrom("", "", "a/", "src/", "b/", "src/a/"),
    fc.constantFrom(".gitignore", ".gitignore", ".ignore", ".rgignore"),
    fc.array(fc.constantFrom(...ignoreLines), { minLength: 1, maxLength: 4 })
  )
  .map(([directory, file, all]): readonly [string, string] => [directory + file, all.join("\n")])
const place = fc.record({
  files: fc.array(path, { minLength: 15, maxLength: 40 }),
  ignore: fc.array(ignoreFile, { maxLength: 4 }),
  directory: fc.constantFrom("", "", "", "src", "a", "src/a", "é"),
  glob: fc.constantFrom(...globs),
  limit: fc.constantFrom(3, 100, 100)
})

const lines = [
  ...[
    "foo",
    "Foo",
    "foo bar",
    "  foo",
    "f.o",
    "é foo",
    "foo\r",
    "",
    "barfoo(",
    "a1 b2",
    "ÉTÉ",
    "foo\rbar",
    "tab\there"
  ],
  ...[`${"x".repeat(700)}foo`, "\u{1f600}foo", "[x]", "a-b", "x{2}", "1٣", "\u2028foo"]
]
const literals = ["foo", "f.o", "(", "é", "bar", "x", "-e", "$", "\\", "a-b", "{2}", "ÉTÉ", "\u{1f600}"]
const expressions = [
  ...[
    "^foo$",
    "f.o",
    "\\bfoo\\b",
    "\\w+ \\w",
    "[^a-z ]",
    "(foo|bar)(?P<n>x?)",
    "\\d",
    "é\\s",
    "x{2,}",
    "^$",
    "."
  ],
  ...[
    "(?i)FOO",
    "\\.o",
    "foo\\(?",
    "a-z\\-?",
    "a\\-b",
    "[]x]",
    "\\pL\\d",
    "\\p{Lu}",
    "foo$",
    "^bar",
    "foo\\sbar",
    "\\d{2}"
  ],
  ...[
    "^.foo",
    "\\Bo\\b",
    "(?:foo)+?",
    "x\\{2}",
    "\\x66oo",
    "\\x{66}oo",
    "[\\p{Lu}\\d]",
    "\\PL",
    "[\\w.]+\\(",
    "^\\S+$"
  ]
]
const text = fc
  .array(fc.constantFrom(...lines), { minLength: 1, maxLength: 8 })
  .map((all) => `${all.join("\n")}\n`)
const content = fc.oneof(
  { weight: 8, arbitrary: text },
  { weight: 1, arbitrary: fc.constant("foo") },
  { weight: 1, arbitrary: fc.constant("foo\n\0foo\n") },
  { weight: 1, arbitrary: fc.constant("\ufefffoo\r\nbar\r\n") }
)

/** Paths that cannot be, below a file, are left out. */
const plant = async (root: string, files: Files): Promise<void> => {
  for (const [at, what] of files) {
    await mkdir(dirname(join(root, at)), { recursive: true })
      .then(() => writeFile(join(root, at), what))
      .catch(() => undefined)
  }
}

const compare = (
  files: Files,
  queries: ReadonlyArray<Omit<SearchQuery, "root" | "accepts">>
): Promise<void> =>
  Effect.gen(function* () {
    const root = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "looplane-search-"))),
      (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
    )
    yield* Effect.promise(() => plant(root, files))
    const ripgrep = yield* makeRipgrep(rgPath)
    const walk = yield* makeWalk
    for (const query of queries) {
      const whole: SearchQuery = { root, ...query, accepts: (at) => !at.endsWith("/c:1") }
      const expected = yield* Effect.result(ripgrep.search(whole))
      assert.isTrue(Result.isSuccess(expected), JSON.stringify(expected))
      assert.deepStrictEqual(yield* Effect.result(walk.search(whole)), expected)
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.runPromise)

const plain = { directory: "", glob: null, query: "foo", regex: false, case_sensitive: true, limit: 100 }

describe("ripgrep and the walk", () => {
  it("look into the same files in the same order", { timeout: 60_000 }, () =>
    fc.assert(
      fc.asyncProperty(place, ({ files, ignore, ...where }) =>
        compare(
          [...files.map((file) => [file, "foo\n"] as const), ...ignore, [".git/x", "foo\n"]],
          [{ ...plain, ...where }, plain]
        )
      ),
      { numRuns: 15 }
    )
  )

  it("find the same lines", { timeout: 60_000 }, () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(content, { minLength: 3, maxLength: 6 }),
        fc.constantFrom(
          ...[...literals.map((query) => ({ query, regex: false }))].concat(
            expressions.map((query) => ({ query, regex: true }))
          )
        ),
        fc.boolean(),
        fc.constantFrom(2, 100),
        (contents, query, case_sensitive, limit) =>
          compare(
            contents.map((what, index) => [`${index}`, what] as const),
            [{ ...plain, ...query, case_sensitive, limit }]
          )
      ),
      { numRuns: 25 }
    )
  )
})
