import { execFileSync, spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { makeHome } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { addRepo } from "../support/repos/add.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

describe("examples/embed", () => {
  it("compiles against the published types", () => {
    const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc")
    const { status, stdout } = spawnSync(
      process.execPath,
      [tsc, "-p", join(root, "examples/embed/tsconfig.package.json")],
      {
        encoding: "utf8"
      }
    )
    assert.strictEqual(status, 0, stdout)
  })

  it("runs the loop with its own approval and a recorded model", async () => {
    await using repo = addRepo()
    await using home = makeHome()
    const before = snapshotTree(repo.root)
    const printed = execFileSync(
      process.execPath,
      [join(root, "examples/embed/main.ts"), repo.root, home.runRoot],
      {
        env: home.env,
        encoding: "utf8"
      }
    )
    assertUntouched(before, snapshotTree(repo.root))
    assert.include(printed, "asked: modify call_2")
    assert.include(printed, "approval.resolved")
    assert.match(printed, /^verified: src\/add\.js /m, "the edit under src was allowed, the other one denied")
    assert.deepStrictEqual(home.leftovers(), [])
  })
})
