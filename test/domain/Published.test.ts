import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { RunEvent } from "../../src/domain/Event.ts"
import { jsonSchemas } from "../../src/domain/Published.ts"

const folder = new URL("../../schema/", import.meta.url)

describe("the published schemas", () => {
  it("are what the code says: run npm run schema, and review the difference", () => {
    const expected = Object.entries(jsonSchemas())
    assert.deepStrictEqual(
      readdirSync(folder).toSorted(),
      expected.map(([name]) => `${name}.json`).toSorted()
    )
    for (const [name, schema] of expected)
      assert.deepStrictEqual(JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")), schema, name)
  })

  it("name every event", () => {
    const { events } = jsonSchemas()
    const text = JSON.stringify(events)
    for (const member of RunEvent.members) assert.include(text, `"${member.fields.event_type.literal}"`)
  })
})
