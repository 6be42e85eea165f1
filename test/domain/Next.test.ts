import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { ModelTurn } from "../../src/domain/Conversation.ts"
import { RunEvent } from "../../src/domain/Event.ts"
import { TreeId } from "../../src/domain/Ids.ts"
import { next, type Move } from "../../src/domain/Next.ts"
import { toOctets } from "../../src/domain/Octets.ts"
import { unrun, type CheckVerdict } from "../../src/domain/Result.ts"
import { initial, reduce, type RunState } from "../../src/domain/Run.ts"
import { nudges } from "../../src/domain/SystemPrompt.ts"
import { zero } from "../../src/domain/Usage.ts"
import { exampleTask } from "../support/tasks.ts"

const base = TreeId.make("1".repeat(40))
const edited = TreeId.make("2".repeat(40))

const fold = (events: ReadonlyArray<RunEvent>, from: RunState = initial): RunState =>
  events.reduce(reduce, from)
const tag = (state: RunState, task = exampleTask): Move["_tag"] => next(state, task)._tag
const endOf = (state: RunState, task = exampleTask) => {
  const move = next(state, task)
  return move._tag === "End" ? move.ending.reason : null
}

const begun = fold([
  { event_type: "prompt.built", data: { prompt_version: "p", sections: [], tools: [] } },
  {
    event_type: "workspace.prepared",
    data: {
      base_sha: exampleTask.base.commit,
      tree: base,
      left_out: [],
      dependencies: { requested: { mode: "none" }, copied: [], lock_digest: null, reason: null },
      setup: []
    }
  },
  { event_type: "conversation.appended", data: { item: { role: "user", content: "Task: fix" } } }
])
const turn = (step: number, said: Partial<typeof ModelTurn.Type>): ReadonlyArray<RunEvent> => [
  { event_type: "model.requested", data: { step, provider: "p", model: "m", lane: "primary" } },
  {
    event_type: "model.completed",
    data: {
      step,
      provider: "p",
      model: "m",
      lane: "primary",
      turn: Schema.decodeSync(ModelTurn)({
        text: "",
        reasoning: [],
        tool_calls: [],
        finish_reason: "stop",
        usage: zero,
        ...said
      })
    }
  }
]
const scanned = (tree: TreeId): RunEvent => ({ event_type: "workspace.scanned", data: { tree } })
const collected: RunEvent = {
  event_type: "patch.collected",
  data: { tree: edited, files: [], patch: toOctets(new Uint8Array()), unrecorded: [] }
}
const checked = (verdict: CheckVerdict): RunEvent => ({
  event_type: "verification.completed",
  data: {
    purpose: "final",
    tree: edited,
    outcome: unrun({ name: "check-1", argv: ["node", "--test"] }, verdict, "why"),
    wrote: []
  }
})
const settled = (verdict: CheckVerdict): RunEvent => ({
  event_type: "verification.settled",
  data: { tree: edited, outcomes: [unrun({ name: "check-1", argv: ["node", "--test"] }, verdict, "why")] }
})
const judged = (verdict: CheckVerdict): ReadonlyArray<RunEvent> => [
  scanned(edited),
  collected,
  checked(verdict),
  settled(verdict)
]
const told: RunEvent = {
  event_type: "conversation.appended",
  data: { item: { role: "context", ...nudges.checksFailed("OUT") } }
}

describe("what a run does next", () => {
  it.prop(
    "is known whatever its journal says, and never more steps than allowed",
    [Arbitrary.array(Arbitrary.schema(RunEvent), { maxLength: 30 })],
    ([events]) => {
      const state = fold(events, begun)
      const move = next(state, exampleTask)
      if (move._tag === "Ask") assert.isAtMost(move.step - state.first_step, exampleTask.limits.max_steps)
    }
  )

  it("begins, asks, and judges a final answer step by step, wherever a process picks it up", () => {
    assert.strictEqual(tag(initial), "Begin")
    assert.deepStrictEqual(next(begun, exampleTask), { _tag: "Ask", step: 1 })
    const answered = fold(turn(1, { text: "Done." }), begun)
    assert.strictEqual(tag(answered), "Scan")
    assert.strictEqual(endOf(fold([scanned(base)], answered)), "no_changes")
    assert.strictEqual(tag(fold([scanned(edited)], answered)), "Collect")
    assert.strictEqual(tag(fold([scanned(edited), collected], answered)), "Verify")
    const cut = next(fold([scanned(edited), collected, checked("passed")], answered), exampleTask)
    assert.deepStrictEqual(cut._tag === "Verify" ? [cut.checks.length, cut.done.length] : cut, [0, 1])
    assert.strictEqual(endOf(fold(judged("passed"), answered)), "verified")
    assert.strictEqual(endOf(fold(judged("could_not_verify"), answered)), "could_not_verify")
  })

  it("asks again in the step that was asked and not answered", () => {
    const asked = fold(turn(1, {}).slice(0, 1), begun)
    assert.deepStrictEqual(next(asked, exampleTask), { _tag: "Ask", step: 1 })
  })

  it("reports a failure once, and ends on the same one", () => {
    const failed = fold([...turn(1, { text: "Done." }), ...judged("failed")], begun)
    assert.strictEqual(tag(failed), "Report")
    const again = fold([told, ...turn(2, { text: "Done." })], failed)
    assert.strictEqual(tag(fold([told], failed)), "Ask")
    assert.strictEqual(endOf(fold(judged("failed"), again)), "checks_failed")
    const passed = next(fold(judged("passed"), again), exampleTask)
    assert.match((passed._tag === "End" ? passed.note : null) ?? "", /failed before on exactly these files/)
  })

  it("starts its steps again with a follow-up task, and nothing of before decides", () => {
    const task = { ...exampleTask, limits: { ...exampleTask.limits, max_steps: 1 } }
    const used = fold([...turn(1, { text: "Done." }), ...judged("failed"), told], begun)
    assert.strictEqual(tag(used, task), "WindDown")
    const continued = fold(
      [
        {
          event_type: "session.continued",
          data: {
            provider: "p",
            model: "m",
            base_sha: task.base.commit,
            resumed_step: 1,
            active_ms: 0,
            models: [{ provider: "p", model: "m", endpoint: null }],
            instruction: "Go on."
          }
        }
      ],
      used
    )
    assert.deepStrictEqual(next(continued, task), { _tag: "Ask", step: 2 })
    const again = fold([...turn(2, { text: "Done." }), ...judged("failed")], continued)
    assert.strictEqual(tag(again, task), "Report")
  })
})
