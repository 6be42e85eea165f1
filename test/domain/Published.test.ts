import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { jsonSchemas } from "../../src/domain/Published.ts"

const folder = new URL("../../schema/", import.meta.url)

describe("the published schemas", () => {
  it("are what the code says: run npm run schema, and review the difference", () => {
    const expected = Object.entries(jsonSchemas())
    assert.deepStrictEqual(
      readdirSync(folder).sort(),
      expected.map(([name]) => `${name}.json`).sort()
    )
    for (const [name, schema] of expected)
      assert.deepStrictEqual(JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")), schema, name)
  })

  it("leave no key open to null that the code requires, and name every event", () => {
    const { events } = jsonSchemas()
    const text = JSON.stringify(events)
    for (const type of ["run.created", "model.completed", "tool.completed", "run.ended"]) assert.include(text, type)
  })
})
