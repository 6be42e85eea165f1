import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result } from "effect"
import * as fc from "fast-check"
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  watch,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeBoundedOutput } from "../../../src/layers/sandbox/BoundedOutput.ts"
import { HostEnvironment } from "../../../src/layers/sandbox/Environment.ts"
import { layerHost } from "../../../src/layers/sandbox/Host.ts"
import { layerNone } from "../../../src/layers/sandbox/None.ts"
import { Sandbox } from "../../../src/services/Sandbox.ts"
import { commandIn } from "../../support/commands.ts"
import { processCheck, processesOf } from "../../support/Leaks.ts"

const live = layerHost.pipe(Layer.provide(NodeServices.layer))

const scratch = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "looplane-test-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const bash = (cwd: string, script: string, timeout_ms = 30_000) =>
  Effect.flatMap(Sandbox, (sandbox) => sandbox.run(commandIn(cwd, ["bash", "-c", script], { timeout_ms })))

/** Nothing of the command is alive; a zombie nobody reaps is dead. */
const assertNoneLeft = (folder: string) => assert.deepStrictEqual(processesOf("none", [folder]), [])

it.live("gives output, exit code and duration as they were", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const result = yield* bash(folder, "echo out; echo err >&2; exit 7")
    assert.strictEqual(result.exit_code, 7)
    assert.isFalse(result.timed_out)
    assert.sameMembers(result.output.trim().split("\n"), ["out", "err"])
    assert.strictEqual(result.output_bytes, 8)
    assert.strictEqual((yield* bash(folder, "kill -9 $$")).exit_code, 137)
    assert.strictEqual((yield* bash(folder, "kill -TERM $$")).exit_code, 143)
    assert.strictEqual((yield* bash(folder, "pwd; cat")).output, `${folder}\n`)
  }).pipe(Effect.provide(live))
)

it.live("returns soon when a grandchild keeps the pipe open, and ends it, even outside of the group", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    for (const script of [
      "sleep 300 & echo done",
      "exec > >(tee -a x.log) 2>&1; echo done",
      "setsid sleep 300 >&1 & echo done"
    ]) {
      const result = yield* bash(folder, script)
      assert.strictEqual(result.output, "done\n", script)
      assert.strictEqual(result.exit_code, 0)
      assert.isBelow(result.duration_ms, 10_000)
      if (processCheck) assertNoneLeft(folder)
    }
  }).pipe(Effect.provide(live))
)

it.live("ends a command at its time, also one that ignores the first signal", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const result = yield* bash(folder, "trap '' TERM; echo started; while :; do sleep 300 & wait; done", 700)
    assert.isTrue(result.timed_out)
    assert.strictEqual(result.exit_code, 124)
    assert.strictEqual(result.output, "started\n")
    assertNoneLeft(folder)
  }).pipe(Effect.provide(live))
)

it.live("an interruption leaves no process", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const started = Effect.callback<void>((resume) => {
      const watcher = watch(folder, () => {
        if (existsSync(join(folder, "started"))) resume(Effect.void)
      })
      return Effect.sync(() => watcher.close())
    })
    const waiting = yield* Effect.forkChild(started, { startImmediately: true })
    const fiber = yield* Effect.forkChild(bash(folder, "sleep 300 & setsid sleep 300 & touch started; wait"))
    yield* Fiber.join(waiting)
    yield* Fiber.interrupt(fiber)
    assertNoneLeft(folder)
  }).pipe(Effect.provide(live))
)

it.live("says why a command could not be started", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const sandbox = yield* Sandbox
    writeFileSync(join(folder, "plain"), "#!/bin/sh\n")
    writeFileSync(join(folder, "lost"), "#!/nonexistent/interpreter\n")
    chmodSync(join(folder, "lost"), 0o755)
    const attempt = (name: string, cwd = folder) =>
      Effect.map(Effect.flip(sandbox.run(commandIn(cwd, [name]))), (error) => error.reason)
    assert.strictEqual(yield* attempt("no-such-program-here"), "not_found")
    assert.strictEqual(yield* attempt("./lost"), "not_found")
    assert.strictEqual(yield* attempt("./plain"), "not_executable")
    assert.strictEqual(yield* attempt("sh", join(folder, "missing")), "failed")
  }).pipe(Effect.provide(live))
)

it.live("passes nothing of the host's environment that is not named, and what the caller sets", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const sandbox = yield* Sandbox
    const result = yield* sandbox
      .run(
        commandIn(folder, [process.execPath, "-p", "JSON.stringify(process.env)"], {
          env: { HOME: "/task-home" }
        })
      )
      .pipe(
        Effect.provideService(HostEnvironment, {
          PATH: process.env["PATH"],
          LANG: "C",
          HOME: "/home/user",
          NODE_OPTIONS: "--require=/planted.js",
          LD_PRELOAD: "",
          OPENAI_API_KEY: "sk-secret",
          GIT_DIR: "/planted",
          SSH_AUTH_SOCK: "/agent"
        })
      )
    const seen: unknown = JSON.parse(result.output)
    assert.deepInclude(seen, {
      HOME: "/task-home",
      LANG: "C",
      GIT_CONFIG_GLOBAL: "/dev/null",
      PYTHONDONTWRITEBYTECODE: "1"
    })
    for (const name of ["NODE_OPTIONS", "LD_PRELOAD", "OPENAI_API_KEY", "GIT_DIR", "SSH_AUTH_SOCK"]) {
      assert.notProperty(seen, name)
    }
  }).pipe(Effect.provide(live))
)

it.live("bounds endless output and keeps its head and its tail", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const sandbox = yield* Sandbox
    const script = "echo first; for i in $(seq 20000); do echo line-é-$i; done; echo last"
    const result = yield* sandbox.run(commandIn(folder, ["bash", "-c", script], { max_output_bytes: 2000 }))
    assert.isAtMost(Buffer.byteLength(result.output), 2000)
    assert.match(result.output, /^first\n[\s\S]*\n\[\.\.\. \d+ bytes omitted \.\.\.\]\n[\s\S]*last\n$/)
    assert.isAbove(result.output_bytes, 200_000)
  }).pipe(Effect.provide(live))
)

it.live("nothing is started where nothing contains it", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const error = yield* Effect.flip(bash(folder, "touch started"))
    assert.strictEqual(error.reason, "refused")
    assert.include(error.message, "--unsafe-local-exec")
    assert.throws(() => readFileSync(join(folder, "started")))
  }).pipe(Effect.provide(layerNone))
)

it("bounded output is the whole or head and tail, never more than its bound, never a broken character", () => {
  const chunks = fc.array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 60 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))
    ),
    { maxLength: 30 }
  )
  fc.assert(
    fc.property(chunks, fc.integer({ min: 128, max: 400 }), (parts, max) => {
      const output = makeBoundedOutput(max)
      for (const part of parts) output.push(part)
      const whole = Buffer.concat(parts)
      const text = output.render()
      assert.strictEqual(output.total(), whole.length)
      assert.isAtMost(Buffer.byteLength(text), max)
      const valid = Result.isSuccess(
        Result.try(() => new TextDecoder("utf-8", { fatal: true }).decode(whole))
      )
      if (!valid) return
      const plain = new TextDecoder("utf-8", { ignoreBOM: true }).decode(whole)
      if (whole.length <= max) assert.strictEqual(text.replace(/^\ufeff/, ""), plain.replace(/^\ufeff/, ""))
      else {
        const [, head = "", omitted = "", tail = ""] =
          /^([\s\S]*)\n\[\.\.\. (\d+) bytes omitted \.\.\.\]\n([\s\S]*)$/.exec(text) ?? []
        assert.isTrue(plain.replace(/^\ufeff/, "").startsWith(head.replace(/^\ufeff/, "")))
        assert.isTrue(plain.endsWith(tail))
        assert.notInclude(text.replaceAll("\ufffd", plain.includes("\ufffd") ? "" : "\ufffd"), "\ufffd")
        assert.isAbove(Number(omitted), 0)
      }
    })
  )
})
