import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { canonical } from "../../src/domain/Canonical.ts"
import type { RunEvent, UnknownEvent } from "../../src/domain/Event.ts"
import { CommitId, RunId, ToolCallId, TreeId } from "../../src/domain/Ids.ts"
import { momentOf, replayState, timelineOf } from "../../src/domain/Timeline.ts"
import { zero } from "../../src/domain/Usage.ts"

const base_sha = CommitId.make("1".repeat(40))
const tree = TreeId.make("2".repeat(40))
const created: RunEvent = {
  event_type: "run.created",
  data: {
    run_id: RunId.make("r-1"),
    provider: "p",
    model: "m",
    prompt_version: "looplane-1",
    base_sha,
    store_version: 2
  }
}
const asked: RunEvent = {
  event_type: "conversation.appended",
  data: { item: { role: "user", content: "Task: Fix add." } }
}
const called: RunEvent = {
  event_type: "tool.requested",
  data: { call: { id: ToolCallId.make("c"), name: "read_file", arguments: { path: "a" } }, effect: "read" }
}
const answered: RunEvent = {
  event_type: "tool.completed",
  data: { tool_call_id: ToolCallId.make("c"), name: "read_file", ok: true, content: "text of a", tree }
}
const ended: RunEvent = {
  event_type: "run.ended",
  data: {
    status: "completed",
    terminal_reason: "verified",
    error: null,
    changed_files: [],
    tree,
    usage: zero
  }
}
const continued: RunEvent = {
  event_type: "session.continued",
  data: {
    provider: "p",
    model: "m",
    base_sha,
    resumed_step: 1,
    active_ms: 0,
    models: [{ provider: "p", model: "m", endpoint: null }],
    instruction: "And a test."
  }
}
const later: UnknownEvent = { event_type: "moon.landed", data: { tool: "", name: "eagle", text: "one step" } }
const forked: RunEvent = {
  event_type: "run.forked",
  data: {
    run_id: RunId.make("r-2"),
    source_run_id: RunId.make("r-1"),
    fork_point_sequence: 5,
    fork_point_event_type: "run.ended",
    base_sha
  }
}

const story = [created, asked, called, answered, later, ended, continued]
const numbered = (events: ReadonlyArray<RunEvent | UnknownEvent>) =>
  events.map((event, sequence) =>
    momentOf({ sequence, created_at: `2026-11-29T10:00:0${sequence}.000Z`, event })
  )
const told = (events: ReadonlyArray<RunEvent | UnknownEvent>) =>
  Result.getOrThrow(timelineOf(numbered(events)))

describe("timelineOf", () => {
  it("tells what was said and done, turn by turn, and leaves out what is nothing", () => {
    assert.deepStrictEqual(replayState(told(story)), {
      schema_version: 1,
      first_sequence: 0,
      last_sequence: 6,
      event_count: 7,
      unknown_event_count: 1,
      run_id: "r-1",
      active_turn_id: "turn-2",
      completed_turn_ids: ["turn-1"],
      timeline: [
        { sequence: 0, event_type: "run.created", turn_id: "turn-1", detail: "m" },
        {
          sequence: 1,
          event_type: "conversation.appended",
          turn_id: "turn-1",
          text: "Task: Fix add.",
          detail: "user"
        },
        { sequence: 2, event_type: "tool.requested", turn_id: "turn-1", detail: "read_file" },
        {
          sequence: 3,
          event_type: "tool.completed",
          turn_id: "turn-1",
          text: "text of a",
          detail: "read_file"
        },
        { sequence: 4, event_type: "moon.landed", turn_id: "turn-1", text: "one step", detail: "eagle" },
        { sequence: 5, event_type: "run.ended", turn_id: "turn-1", detail: "verified" },
        {
          sequence: 6,
          event_type: "session.continued",
          turn_id: "turn-2",
          text: "And a test.",
          detail: "m"
        }
      ]
    })
  })

  it("ends with the event that ended the last turn, and a fork names itself", () => {
    const state = replayState(told([created, asked, ended, forked]))
    assert.strictEqual(state["terminal_event_type"], "run.ended")
    assert.strictEqual(state["run_id"], "r-2")
    assert.notProperty(state, "active_turn_id")
    assert.notProperty(replayState(told([])), "first_sequence")
  })

  it("says the same bytes whatever the order of its input", () => {
    const moments = numbered(story)
    const expected = canonical(replayState(told(story)))
    fc.assert(
      fc.property(fc.shuffledSubarray(moments, { minLength: moments.length }), (shuffled) => {
        assert.strictEqual(canonical(replayState(Result.getOrThrow(timelineOf(shuffled)))), expected)
      })
    )
  })

  it("takes gaps, and refuses what is no order", () => {
    const [first, ...rest] = numbered(story)
    assert.isDefined(first)
    if (first === undefined) return
    assert.isTrue(Result.isSuccess(timelineOf([first, ...rest.slice(2)])))
    const faults = [
      [[first, ...rest, { ...first, sequence: 3 }], /two events with the sequence 3/],
      [[{ ...first, sequence: -1 }], /sequence -1/],
      [[{ ...first, sequence: 0.5 }], /sequence 0\.5/],
      [[{ ...first, event_type: " " }], /event 0 has no type/]
    ] as const
    for (const [moments, why] of faults) {
      const refused = timelineOf(moments)
      assert.isTrue(Result.isFailure(refused))
      if (Result.isFailure(refused)) assert.match(refused.failure.message, why)
    }
  })
})

describe("momentOf", () => {
  it("bounds every text, and cuts between characters", () => {
    const long = "é".repeat(20_000)
    const events: ReadonlyArray<RunEvent | UnknownEvent> = [
      { event_type: "run.noted", data: { note: long } },
      { event_type: "moon.landed", data: { message: long, summary: long } }
    ]
    for (const { detail, text } of numbered(events)) {
      assert.strictEqual(text, "é".repeat(8_000))
      assert.isTrue(detail === null || detail === "é".repeat(8_000))
    }
  })

  it("takes any data of an event that it does not know", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (data, event_type) => {
        const moment = momentOf({
          sequence: 0,
          created_at: "",
          event: { event_type: `x${event_type}`, data }
        })
        assert.isFalse(moment.known)
        assert.isNull(moment.turn)
      })
    )
  })

  it("says of a check what came of it, and of a failed request why", () => {
    const [check, failed] = numbered([
      {
        event_type: "verification.completed",
        data: {
          purpose: "final",
          tree,
          wrote: [],
          outcome: {
            name: "check-1",
            argv: ["node"],
            verdict: "failed",
            exit_code: 1,
            duration_seconds: 1,
            tests: null,
            reason: "exit 1",
            output: "not ok"
          }
        }
      },
      {
        event_type: "model.failed",
        data: {
          step: 1,
          error: {
            provider: "p",
            model: "m",
            kind: "auth",
            retryable: false,
            message: "no such key",
            status_code: 401,
            retry_after_ms: null,
            resets_at: null,
            provider_code: null,
            request_id: null
          }
        }
      }
    ])
    assert.deepInclude(check, { detail: "check-1: exit 1", text: "not ok" })
    assert.deepInclude(failed, { detail: "no such key", text: null })
  })
})
