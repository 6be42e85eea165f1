import { assert, describe, it } from "@effect/vitest"
import { Arbitrary } from "effect"
import { RunEvent } from "../../src/domain/Event.ts"
import { initial, reduce, type RunState } from "../../src/domain/Run.ts"
import type * as Usage from "../../src/domain/Usage.ts"
import { created, note, runId, story } from "../layers/journal/support.ts"

const fold = (events: ReadonlyArray<RunEvent>, from: RunState = initial): RunState =>
  events.reduce(reduce, from)
const events = Arbitrary.array(Arbitrary.schema(RunEvent), { maxLength: 30 })

/** Freezes a state, so that a reducer that changes what it was given throws. */
const frozen = (state: RunState): RunState => {
  for (const value of Object.values(state)) Object.freeze(value)
  return Object.freeze(state)
}

describe("the state of a run", () => {
  it.prop("is a fold: any cut of the events gives the same", [events, events], ([before, after]) => {
    assert.deepStrictEqual(fold([...before, ...after]), fold(after, fold(before)))
  })

  it.prop("never changes a state that it gave before", [events], ([all]) => {
    let state = frozen(initial)
    for (const event of all) state = frozen(reduce(state, event))
  })

  it.prop("adds up the usage of every completed turn, per model and in all", [events], ([all]) => {
    const state = fold(all)
    const turns = all.flatMap((event) => (event.event_type === "model.completed" ? [event.data] : []))
    const sum = (usages: ReadonlyArray<Usage.Usage>) => usages.reduce((n, usage) => n + usage.input_tokens, 0)
    assert.strictEqual(state.usage.input_tokens, sum(turns.map((turn) => turn.turn.usage)))
    assert.strictEqual(sum(state.model_usage.map((one) => one.usage)), state.usage.input_tokens)
    const keys = state.model_usage.map((one) => `${one.lane} ${one.provider} ${one.model}`)
    assert.strictEqual(new Set(keys).size, keys.length)
  })

  it.prop("has one conversation item per item, turn and observation, in their order", [events], ([all]) => {
    const roles = all.flatMap((event) => {
      if (event.event_type === "conversation.appended") return [event.data.item.role]
      if (event.event_type === "session.continued") return ["user"]
      if (event.event_type === "model.completed") return ["assistant"]
      return event.event_type === "tool.completed" ? ["tool"] : []
    })
    assert.deepStrictEqual(
      fold(all).conversation.map((item) => item.role),
      roles
    )
  })

  it.prop("is interrupted until a request or the end, and ended from the end on", [events], ([all]) => {
    const state = fold(all)
    const last = (type: RunEvent["event_type"]) => all.findLastIndex((event) => event.event_type === type)
    const since = Math.max(
      ...(
        ["model.requested", "run.ended", "run.forked", "session.resumed", "session.continued"] as const
      ).map(last)
    )
    assert.strictEqual(state.interrupted, last("run.interrupted") > since)
    const reopened = Math.max(last("run.forked"), last("session.continued"))
    assert.strictEqual(
      state.ended === null,
      (last("run.ended") <= reopened && last("run.ended") !== reopened) || last("run.ended") === -1
    )
  })

  it("of a whole run says what happened", () => {
    const first: RunEvent = {
      event_type: "run.created",
      data: { run_id: runId("r-1"), ...created, store_version: 1 }
    }
    const state = fold([first, ...story, note("kept")])
    assert.strictEqual(state.run_id, "r-1")
    assert.strictEqual(state.model, created.model)
    assert.strictEqual(state.step, 1)
    assert.deepStrictEqual(state.pending, [])
    assert.strictEqual(state.tree, state.verification_tree)
    assert.notStrictEqual(state.tree, state.base_tree)
    assert.strictEqual(state.ended?.terminal_reason, "verified")
    assert.deepStrictEqual(state.notes, ["kept"])
    assert.strictEqual(state.checks.length, 1)
  })
})
