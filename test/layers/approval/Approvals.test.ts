import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream, Terminal } from "effect"
import type { ApprovalDecision } from "../../../src/domain/Event.ts"
import * as Headless from "../../../src/layers/approval/Headless.ts"
import * as Remote from "../../../src/layers/approval/Remote.ts"
import * as AtTerminal from "../../../src/layers/approval/Terminal.ts"
import { Approval, type ApprovalRequest } from "../../../src/services/Approval.ts"

const question = (
  id: string,
  effect: ApprovalRequest["effect"] = "modify_execute",
  preview = "$ rm -rf build"
): ApprovalRequest => ({
  request_id: `approval:${id}`,
  action_id: id,
  effect,
  reason: "model_tool",
  preview
})

describe("nobody there", () => {
  it.effect("what needs an answer ends at once, and says what would need none", () =>
    Effect.gen(function* () {
      const approval = yield* Approval
      for (const effect of ["read", "modify", "execute"] as const)
        assert.strictEqual(approval.standing(question("a", effect)), "allow_once")
      assert.isNull(approval.standing(question("a")))
      const error = yield* Effect.flip(approval.ask(question("a")))
      assert.match(error.message, /leave was needed.*modify_execute, a.*--check/)
    }).pipe(Effect.provide(Headless.layer))
  )
})

describe("at a terminal", () => {
  /** Somebody who types these lines, one a question; then the terminal says that it is left. */
  const typing = (lines: ReadonlyArray<string>, seen: Array<string> = []) => {
    let at = 0
    return AtTerminal.layer.pipe(
      Layer.provide(
        Layer.succeed(
          Terminal.Terminal,
          Terminal.make({
            columns: Effect.succeed(80),
            rows: Effect.succeed(24),
            size: Effect.never,
            readInput: Effect.never,
            display: (text) => Effect.sync(() => void seen.push(text)),
            readLine: Effect.suspend(() => {
              const line = lines[at++]
              return line === undefined ? Effect.fail(new Terminal.QuitError()) : Effect.succeed(line)
            })
          })
        )
      )
    )
  }

  it.effect.each<readonly [string, ApprovalDecision]>([
    ["y", "allow_once"],
    [" YES ", "allow_once"],
    ["a", "allow_session"],
    ["c", "cancel"],
    ["n", "deny"],
    ["", "deny"],
    ["yess", "deny"],
    ["allow", "deny"]
  ])("%j means %s", ([line, decision]) =>
    Effect.flatMap(Approval, (approval) => approval.ask(question("a"))).pipe(
      Effect.map((answer) => assert.strictEqual(answer, decision)),
      Effect.provide(typing([line]))
    )
  )

  it.effect("leaving the question cancels; nothing that is shown can steer the terminal", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const approval = yield* Approval
      const many = Array.from({ length: 100 }, (_, at) => `line ${at}`).join("\n")
      assert.strictEqual(
        yield* approval.ask(question("a", "modify_execute", `\u001b[2J$ evil\u202e\n${many}`)),
        "cancel"
      )
      assert.notMatch(seen.join(""), /[\u001b\u202e]/)
      assert.match(seen.join(""), /\$ evil\nline 0\n[^]*… 61 more lines\nAllow this \(modify_execute\)\?/)
    }).pipe(Effect.provide(typing([], seen)))
  })

  it.effect("always holds for that effect in this run, and for no other", () =>
    Effect.gen(function* () {
      const approval = yield* Approval
      assert.strictEqual(yield* approval.ask(question("a")), "allow_session")
      assert.strictEqual(approval.standing(question("b")), "allow_session")
    }).pipe(Effect.provide(typing(["a"])))
  )

  it.effect("two questions at once are asked one after the other", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const approval = yield* Approval
      const answers = yield* Effect.all([approval.ask(question("a")), approval.ask(question("b"))], {
        concurrency: 2
      })
      assert.deepStrictEqual(answers, ["allow_once", "deny"])
      assert.strictEqual(seen.length, 2)
    }).pipe(Effect.provide(typing(["y", "n"], seen)))
  })
})

describe("somebody elsewhere", () => {
  it.effect("is told of every question, and answers by id in whatever order", () =>
    Effect.gen(function* () {
      const approval = yield* Approval
      const remote = yield* Remote.RemoteApprovals
      const first = yield* Effect.forkChild(approval.ask(question("a")), { startImmediately: true })
      const told = yield* Effect.forkChild(Stream.runCollect(Stream.take(remote.requests, 2)), {
        startImmediately: true
      })
      const second = yield* Effect.forkChild(approval.ask(question("b")), { startImmediately: true })
      assert.deepStrictEqual(
        [...(yield* Fiber.join(told))].map(({ action_id }) => action_id),
        ["a", "b"]
      )
      assert.isTrue(yield* remote.answer("approval:b", "deny"))
      assert.strictEqual(yield* Fiber.join(second), "deny")
      assert.deepStrictEqual(
        (yield* remote.pending).map(({ action_id }) => action_id),
        ["a"]
      )
      assert.isTrue(yield* remote.answer("approval:a", "allow_once"))
      assert.strictEqual(yield* Fiber.join(first), "allow_once")
    }).pipe(Effect.provide(Remote.layer))
  )

  it.effect("answers no question twice, and none that nobody asked or whose run is gone", () =>
    Effect.gen(function* () {
      const approval = yield* Approval
      const remote = yield* Remote.RemoteApprovals
      assert.isFalse(yield* remote.answer("approval:a", "allow_once"))
      const asking = yield* Effect.forkChild(approval.ask(question("a")), { startImmediately: true })
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* remote.pending, [])
      assert.isFalse(yield* remote.answer("approval:a", "allow_once"))
      const again = yield* Effect.forkChild(approval.ask(question("a")), { startImmediately: true })
      assert.isTrue(yield* remote.answer("approval:a", "deny"))
      assert.isFalse(yield* remote.answer("approval:a", "allow_once"))
      assert.strictEqual(yield* Fiber.join(again), "deny")
    }).pipe(Effect.provide(Remote.layer))
  )
})
