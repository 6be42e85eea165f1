/** Ripgrep's stream, however it is cut into chunks. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { makeRipgrepOutput } from "../../../src/layers/search/RipgrepOutput.ts"

const notice = (path: string): string =>
  `${path}: WARNING: stopped searching binary file after match (found "\\0" byte around offset 70000)\n`

const stream = [
  "./a.txt\u00001:one\n",
  "./a.txt\u000012:t:wo\r\n",
  "./b\nb\u00003:é\n",
  "./bin\u00001:gone\n",
  "./bin\u00002:gone\n",
  notice("./bin"),
  "./c:1:\u00004:\n",
  `./d\u00005:${notice("./d").trimEnd()}\n`,
  "./last\u00001:gone too\n",
  notice("./last")
].join("")

const matches = [
  { path: "a.txt", line: 1, text: "one" },
  { path: "a.txt", line: 12, text: "t:wo" },
  { path: "b\nb", line: 3, text: "é" },
  { path: "c:1:", line: 4, text: "" },
  { path: "d", line: 5, text: notice("./d").trimEnd() }
]

describe("the output of ripgrep", () => {
  it("is read alike in any pieces, without the matches of binary files", () => {
    const bytes = new TextEncoder().encode(stream)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 12 }), (cuts) => {
        const output = makeRipgrepOutput(() => true)
        let from = 0
        for (const to of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
          output.push(bytes.subarray(from, to))
          from = to
        }
        output.end()
        assert.deepStrictEqual(output.matches, matches)
      })
    )
  })

  it("leaves out what does not count and what has no name", () => {
    const output = makeRipgrepOutput((path) => path !== "a")
    const name = new Uint8Array([0x2e, 0x2f, 0xff])
    output.push(new TextEncoder().encode("./a\u00001:x\n"))
    output.push(name)
    output.push(new TextEncoder().encode("\u00001:x\n./b\u00001:x\n"))
    output.end()
    assert.deepStrictEqual(output.matches, [{ path: "b", line: 1, text: "x" }])
  })
})
