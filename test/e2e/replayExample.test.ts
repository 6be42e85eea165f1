import { execFileSync, spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { makeHome } from "../support/Cli.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const example = join(root, "examples/replay-test")

describe("examples/replay-test", () => {
  it("compiles against the published types", () => {
    const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc")
    const { status, stdout } = spawnSync(
      process.execPath,
      [tsc, "-p", join(example, "tsconfig.package.json")],
      { encoding: "utf8" }
    )
    assert.strictEqual(status, 0, stdout)
  })

  it("records a run, plays it again, and stops at the first event that another outcome changes", async () => {
    await using home = makeHome()
    const printed = execFileSync(process.execPath, [join(example, "main.ts")], {
      env: home.env,
      encoding: "utf8"
    })
    const lines = printed.trimEnd().split("\n")
    assert.strictEqual(lines[0], "recorded: verified")
    assert.match(lines[1] ?? "", /^\d+ tool\.completed: step 1, 0 calls open$/)
    assert.match(lines[2] ?? "", /^\d+ tool\.completed: step 2, 0 calls open$/)
    assert.strictEqual(lines[3], "replayed: it agrees")
    const [, at, from] =
      /^with another outcome at (\d+): it differs from (\d+) on \(model\.exchanged\)$/.exec(lines[4] ?? "") ??
      []
    assert.isAbove(Number(from), Number(at))
    assert.strictEqual(`${at} `, (lines[1] ?? "").slice(0, `${at} `.length))
    assert.lengthOf(lines, 5)
    assert.deepStrictEqual(home.leftovers(), [])
  })
})
