import { assert, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import * as PathRule from "../../src/domain/PathRule.ts"

const rule = (...patterns: ReadonlyArray<string>) => Result.getOrThrow(PathRule.compile(patterns))

it("allows a file, everything below a directory, and by segment", () => {
  const table: ReadonlyArray<
    readonly [pattern: string, allowed: ReadonlyArray<string>, refused: ReadonlyArray<string>]
  > = [
    ["**", ["a", "a/b/c", ".env"], []],
    [".", ["a", "a/b/c"], []],
    ["./", ["a"], []],
    ["src", ["src", "src/a", "src/a/b"], ["srcs", "a/src", "Src"]],
    ["./src/", ["src/a"], ["lib/a"]],
    ["src\\lib", ["src/lib/a"], ["src/a"]],
    [" a.ts ", ["a.ts"], ["b.ts"]],
    ["*.ts", ["a.ts", ".ts"], ["a/b.ts", "a.tsx", "a.ts/x"]],
    ["src/*", ["src/a"], ["src/a/b", "src"]],
    ["src/**", ["src", "src/a", "src/a/b"], ["a"]],
    ["src/**/*.ts", ["src/a.ts", "src/x/y/a.ts"], ["a.ts", "src/a.js"]],
    ["**/test/**", ["test/a", "x/test/y/z"], ["x/tests/y"]],
    ["a**b", ["aXb", "ab"], ["a/b"]],
    ["f?o.[jt]s", ["foo.js", "fxo.ts"], ["fo.js", "f/o.js", "foo.cs"]],
    ["[!a]b", ["xb"], ["ab", "/b"]],
    ["[^a]b", ["xb"], ["ab"]],
    ["a+(b)", ["a+(b)"], ["ab"]],
    ["[", ["["], ["a"]],
    ["[]x]", ["]", "x"], ["a"]],
    ["(docs)/[id]", ["(docs)/i"], ["(docs)/[id]"]],
    ["{a,b}.ts", ["{a,b}.ts"], ["a.ts"]]
  ]
  for (const [pattern, allowed, refused] of table) {
    for (const path of allowed)
      assert.isTrue(PathRule.allows(rule(pattern), path), `${pattern} should allow ${path}`)
    for (const path of refused)
      assert.isFalse(PathRule.allows(rule(pattern), path), `${pattern} should refuse ${path}`)
  }
})

it("allows what any pattern allows, and no pattern allows nothing", () => {
  assert.isTrue(PathRule.allows(rule("a", "b"), "b/x"))
  assert.isFalse(PathRule.allows(rule(), "a"))
  assert.isFalse(PathRule.allowsDirectory(rule(), "a"))
})

it("a directory may be listed when something below it may be allowed", () => {
  assert.isTrue(PathRule.allowsDirectory(rule("src/*.py"), "src"))
  assert.isTrue(PathRule.allowsDirectory(rule("src/*.py"), "."))
  assert.isTrue(PathRule.allowsDirectory(rule("a/**/z"), "a/b/c"))
  assert.isTrue(PathRule.allowsDirectory(rule("src"), "src/deep"))
  assert.isFalse(PathRule.allowsDirectory(rule("src/*.py"), "lib"))
  assert.isFalse(PathRule.allowsDirectory(rule("src/*.py"), "src/a/b"))
})

it("refuses patterns that leave the repository or say nothing, and names them", () => {
  for (const pattern of [
    "",
    "  ",
    "/abs",
    "../x",
    "a/../../b",
    "~",
    "~/x",
    "C:\\x",
    "\\abs",
    "a\0b",
    "[z-a]"
  ]) {
    const compiled = PathRule.compile(["ok", pattern])
    assert.isTrue(Result.isFailure(compiled), JSON.stringify(pattern))
    if (Result.isFailure(compiled)) assert.notInclude(compiled.failure, "\n")
  }
})

const segment = fc
  .string({ unit: fc.constantFrom("a", "b", ".", "-", "é"), minLength: 1, maxLength: 4 })
  .filter((text) => text !== "." && text !== "..")
const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("/"))

it("a path as a pattern allows itself and all below it; ** allows all; a star stays in its segment", () => {
  fc.assert(
    fc.property(path, path, (one, other) => {
      assert.isTrue(PathRule.allows(rule(one), one))
      assert.isTrue(PathRule.allows(rule(one), `${one}/${other}`))
      assert.isTrue(PathRule.allows(rule("**"), one))
      assert.strictEqual(PathRule.allows(rule("*"), one), !one.includes("/"))
      assert.isTrue(PathRule.allows(rule(`**/${one}`), `${other}/${one}`))
    })
  )
})

it("takes a bounded number of steps whatever the pattern is", () => {
  const nasty = `${"**/*a*/".repeat(40)}b`
  assert.isFalse(PathRule.allows(rule(nasty), "a/".repeat(400).concat("c")))
  assert.isFalse(PathRule.allows(rule(`${"*a".repeat(12)}b`), "a".repeat(60)))
})
