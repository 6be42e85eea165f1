import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { makeRecordedSpawner } from "../../../src/layers/process/Recorded.ts"

const world = (recordings: Parameters<typeof makeRecordedSpawner>[0]) => {
  const { spawner, started } = makeRecordedSpawner(recordings)
  return { spawner, started, layer: Layer.succeed(ChildProcessSpawner.ChildProcessSpawner, spawner) }
}

describe("recorded processes", () => {
  it.effect("answer a command as the real one did, output and exit code", () =>
    Effect.gen(function* () {
      const { spawner, started } = world([
        { argv: ["git", "status"], stdout: "clean\n" },
        { argv: ["node", "--test"], stdout: "1 fails\n", stderr: "oh\n", exit_code: 1 }
      ])
      assert.strictEqual(
        yield* spawner.string(ChildProcess.make("git", ["status"], { cwd: "/repo" })),
        "clean\n"
      )
      assert.strictEqual(
        yield* spawner.exitCode(ChildProcess.make("node", ["--test"])),
        ChildProcessSpawner.ExitCode(1)
      )
      assert.deepStrictEqual(
        (yield* started).map(({ argv, cwd }) => [argv.join(" "), cwd]),
        [
          ["git status", "/repo"],
          ["node --test", undefined]
        ]
      )
    })
  )

  it.effect("play recordings of the same command in order and keep the last", () =>
    Effect.gen(function* () {
      const { spawner } = world([
        { argv: ["date"], stdout: "1" },
        { argv: ["date"], stdout: "2" }
      ])
      const ask = spawner.string(ChildProcess.make("date", []))
      assert.deepStrictEqual([yield* ask, yield* ask, yield* ask], ["1", "2", "2"])
    })
  )

  it.effect("fail as a missing program does when nothing was recorded", () =>
    Effect.gen(function* () {
      const { spawner } = world([])
      const error = yield* Effect.flip(spawner.string(ChildProcess.make("rm", ["-rf", "x"])))
      assert.strictEqual(error.reason._tag, "NotFound")
      assert.include(error.message, "rm -rf x")
    })
  )

  it.effect("that hang are killed when their scope closes", () =>
    Effect.gen(function* () {
      const { spawner, started } = world([{ argv: ["sleep", "100"], hangs: true }])
      const scope = yield* Scope.make()
      const handle = yield* spawner.spawn(ChildProcess.make("sleep", ["100"])).pipe(Scope.provide(scope))
      const waiting = yield* Effect.forkChild(handle.exitCode)
      assert.isTrue(yield* handle.isRunning)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* Fiber.join(waiting), ChildProcessSpawner.ExitCode(137))
      assert.deepStrictEqual(
        (yield* started).map(({ killed }) => killed),
        [true]
      )
    })
  )
})
