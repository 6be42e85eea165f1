import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { readFileSync } from "node:fs"
import type { RunEvent } from "../../../src/domain/Event.ts"
import { initial, reduce } from "../../../src/domain/Run.ts"
import { countTime, noTime } from "../../../src/layers/journal/ActiveTime.ts"
import { makeCollector } from "../../../src/layers/journal/Collect.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import { story } from "./support.ts"

const fixture = new URL("../../fixtures/store-v2/every-event/events.jsonl", import.meta.url)
const everyEvent: ReadonlyArray<RunEvent> = [
  ...story,
  ...readFileSync(fixture, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
]

describe("events collected in one go", () => {
  it("make the state that they make one after the other", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...everyEvent), { maxLength: 60 }), (events) => {
        const collector = makeCollector()
        for (const event of events) collector.add(event)
        assert.deepStrictEqual(collector.state(), events.reduce(reduce, initial))
      })
    )
  })
})

describe("the time that a run has used", () => {
  const hash = sha256(new Uint8Array())
  const entry = fc.record({
    at: fc.integer({ min: 0, max: 100_000 }),
    event: fc.constantFrom<RunEvent>(
      ...everyEvent.filter(({ event_type }) =>
        /^(?:model\.requested|session\.|approval\.|run\.(?:interrupted|forked|noted))/.test(event_type)
      )
    )
  })

  it("never falls but where the journal says what it is, whatever the clock does", () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 40 }), (entries) => {
        let time = noTime
        for (const [sequence, { at, event }] of entries.entries()) {
          const created_at = new Date(at).toISOString()
          const next = countTime(time, { sequence, created_at, hash, event })
          const said = "active_ms" in event.data ? event.data.active_ms : undefined
          if (said === undefined) assert.isAtLeast(next.active_ms, time.active_ms)
          else assert.strictEqual(next.active_ms, said)
          time = next
        }
      })
    )
  })
})
