import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { parseCommandLine, renderCommandLine } from "../../src/domain/CommandLine.ts"

const argv = (line: string) => Result.getOrThrow(parseCommandLine(line))
const failure = (line: string) => {
  const parsed = parseCommandLine(line)
  assert.isTrue(Result.isFailure(parsed), line)
  return Result.isFailure(parsed) ? parsed.failure : ""
}

describe("parseCommandLine", () => {
  it("splits words, quotes and escapes the POSIX way", () => {
    assert.deepStrictEqual(argv("npm test"), ["npm", "test"])
    assert.deepStrictEqual(argv("  node   --test\ta.js "), ["node", "--test", "a.js"])
    assert.deepStrictEqual(argv(`sh -c 'a && b | c > d'`), ["sh", "-c", "a && b | c > d"])
    assert.deepStrictEqual(argv(`grep "it's" a\\ b`), ["grep", "it's", "a b"])
    assert.deepStrictEqual(argv(`x "a\\"b" "c\\d" ''`), ["x", 'a"b', "c\\d", ""])
    assert.deepStrictEqual(argv(`pre'mid'"post"`), ["premidpost"])
    assert.deepStrictEqual(argv("node --test $HOME/*.js"), ["node", "--test", "$HOME/*.js"])
  })

  it("refuses what only a shell could do, naming it and the way out", () => {
    for (const line of [
      "a && b",
      "a | b",
      "a; b",
      "a > f",
      "a < f",
      "a & ",
      "(a)",
      "a $(b)",
      "a `b`",
      "a\nb"
    ]) {
      assert.match(failure(line), /repeat --check, or use sh -c '…'/, line)
    }
  })

  it("refuses a line that is no command", () => {
    assert.match(failure(""), /empty/)
    assert.match(failure("   "), /empty/)
    assert.match(failure("''"), /empty/)
    assert.match(failure("a 'b"), /single quote is not closed/)
    assert.match(failure('a "b'), /double quote is not closed/)
    assert.match(failure("a \\"), /backslash/)
    assert.match(failure("CI=1 npm test"), /put "env" before it/)
    assert.match(failure("a\0b"), /NUL/)
  })

  it("reads back every argv that it renders", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }).filter((s) => !s.includes("\0") && !/^[A-Za-z_][A-Za-z0-9_]*=/.test(s)),
        fc.array(fc.string().filter((s) => !s.includes("\0"))),
        (first, rest) => {
          assert.deepStrictEqual([...argv(renderCommandLine([first, ...rest]))], [first, ...rest])
        }
      )
    )
  })
})
