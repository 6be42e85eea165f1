import { readFileSync } from "node:fs"
import { assert, it } from "vitest"
import { version } from "../src/version.ts"

it("the version is package.json's", () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  assert.propertyVal(manifest, "version", version)
})
