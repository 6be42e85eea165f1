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

const names = [
  "a",
  "b",
  "ab",
  "a.ts",
  "b.js",
  ".hid",
  "src",
  "srcs",
  "sr",
  "x y",
  "n\nl",
  "c:1",
  "é",
  "-d",
  "[z]",
  "node_modules"
]
const lines = [
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
  "x".repeat(700) + "foo",
  "\u{1f600}foo",
  "foo\rbar",
  "tab\there"
]
const ignoreLines = [
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
  "",
  "\\#x",
  "a*",
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
  "/a/b",
  "**"
]
const queries: ReadonlyArray<{ readonly query: string; readonly regex: boolean }> = [
  ...["foo", "foo", "foo", "f.o", "(", "é", "bar", "x", "-e", "$"].map((query) => ({ query, regex: false })),
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
    "(?i)FOO",
    "\\.o",
    "foo\\(?",
    "a-z\\-?",
    "[]x]",
    "\\pL\\d",
    "foo$",
    "^bar",
    "foo\\sbar",
    "."
  ].map((query) => ({ query, regex: true }))
]
const globs = [
  null,
  null,
  null,
  "*.ts",
  "*.{ts,js}",
  "src/**",
  "**/a",
  "/a",
  "!*.js",
  "src/*/b",
  "[ab]",
  ".hid"
]

const path = fc
  .array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join("/"))
const text = fc
  .array(fc.constantFrom(...lines), { minLength: 1, maxLength: 6 })
  .chain((all) =>
    fc
      .constantFrom("", "\n")
      .map((end) => all.join("\n") + (all.at(-1)?.endsWith("\r") === true ? "\n" : end))
  )
const ignoreFile = fc
  .tuple(
    fc.constantFrom("", ...names.map((name) => `${name}/`)),
    fc.constantFrom(".gitignore", ".gitignore", ".ignore", ".rgignore"),
    fc.array(fc.constantFrom(...ignoreLines), { maxLength: 4 })
  )
  .map(([directory, name, all]): readonly [string, string] => [directory + name, all.join("\n")])
const tree = fc.record({
  files: fc.array(
    fc.tuple(
      path,
      fc.oneof({ weight: 9, arbitrary: text }, { weight: 1, arbitrary: fc.constant("foo\n\0foo\n") })
    ),
    { minLength: 6, maxLength: 20 }
  ),
  ignore: fc.array(ignoreFile, { maxLength: 3 }),
  git: fc.boolean()
})
const search = fc.record({
  query: fc.constantFrom(...queries),
  directory: fc.constantFrom("", "", "", "src", "a", "src/a", "é"),
  glob: fc.constantFrom(...globs),
  case_sensitive: fc.boolean(),
  limit: fc.constantFrom(1, 3, 100)
})

/** Files that cannot be (a path below a file) are left out, as a tree of this shape would. */
const plant = async (root: string, files: ReadonlyArray<readonly [string, string]>): Promise<void> => {
  for (const [name, content] of files) {
    try {
      await mkdir(dirname(join(root, name)), { recursive: true })
      await writeFile(join(root, name), content)
    } catch {
      continue
    }
  }
}

const accepts = (path: string): boolean => !path.endsWith("/c:1")

const inTemporaryDirectory = <A, E, R>(use: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "looplane-search-"))),
    use,
    (root) => Effect.promise(() => rm(root, { recursive: true, force: true }))
  )

const bothWays = (query: SearchQuery) =>
  Effect.gen(function* () {
    const ripgrep = yield* makeRipgrep(rgPath)
    const walk = yield* makeWalk
    return {
      ripgrep: yield* Effect.result(ripgrep.search(query)),
      walk: yield* Effect.result(walk.search(query))
    }
  }).pipe(Effect.provide(NodeServices.layer))

describe("ripgrep and the walk", () => {
  it.live(
    "find the same lines in the same order",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            tree,
            fc.array(search, { minLength: 6, maxLength: 6 }),
            ({ files, git, ignore }, searches) =>
              Effect.runPromise(
                inTemporaryDirectory((root) =>
                  Effect.gen(function* () {
                    yield* Effect.promise(() =>
                      plant(root, [...files, ...ignore, ...(git ? [[".git/x", "foo\n"] as const] : [])])
                    )
                    for (const { query, ...rest } of searches) {
                      const found = yield* bothWays({ root, ...query, ...rest, accepts })
                      assert.isTrue(Result.isSuccess(found.ripgrep), JSON.stringify(found.ripgrep))
                      assert.deepStrictEqual(found.walk, found.ripgrep)
                    }
                  })
                )
              )
          ),
          { numRuns: 25 }
        )
      ),
    60_000
  )
})
