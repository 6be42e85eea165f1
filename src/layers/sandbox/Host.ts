/**
 * Commands on the host itself. Nothing is contained: only the environment is scrubbed, the output bounded, and whatever
 * a command leaves running ended.
 */
import { Context, Clock, Effect, Fiber, Layer, Option, type PlatformError, Random, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { constants } from "node:os"
import { Sandbox, type SandboxCommand, SandboxError, type SandboxResult } from "../../services/Sandbox.ts"
import { errnoOf } from "../fs/Files.ts"
import { makeBoundedOutput } from "./BoundedOutput.ts"
import { HostEnvironment, scrubbedEnvironment } from "./Environment.ts"
import { endMarked, markName } from "./Leftovers.ts"

/** How long a pipe may stay open after the command itself has ended. */
const drainGrace = "250 millis"

const refuse = (reason: SandboxError["reason"], message: string, cause: PlatformError.PlatformError) =>
  new SandboxError({ reason, message, cause })

const notStarted =
  (command: SandboxCommand) =>
  (error: PlatformError.PlatformError): SandboxError => {
    const name = JSON.stringify(command.argv[0])
    const code = errnoOf(error)
    if (error.reason.module === "FileSystem")
      return refuse("failed", `${command.cwd} is not there to run in`, error)
    if (code === "ENOENT")
      return refuse("not_found", `${name} was not found on PATH, or names an interpreter that was not`, error)
    return code === "EACCES" || code === "EPERM" || code === "ENOEXEC"
      ? refuse("not_executable", `${name} cannot be executed`, error)
      : refuse("failed", `${name} cannot be started: ${error.message}`, error)
  }

const signalNumbers: Readonly<Record<string, number>> = constants.signals

/** 128 + n for a command that signal n ended. The spawner tells the signal only in its message. */
const signalExit = (error: PlatformError.PlatformError): number => {
  const cause = error.reason.cause
  const name = /signal: '(SIG[A-Z0-9]+)'/.exec(cause instanceof Error ? cause.message : "")?.[1] ?? "SIGKILL"
  return 128 + (signalNumbers[name] ?? 9)
}

const run = Effect.fn("Sandbox.run")(function* (command: SandboxCommand) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const host = yield* HostEnvironment
  const [program, ...args] = command.argv
  const started = yield* Clock.currentTimeMillis
  const mark = `${process.pid}-${yield* Random.nextInt}-${started}`
  // Added before the spawn, so that it runs after the group has been ended.
  yield* Effect.addFinalizer(() => endMarked(mark))
  const handle = yield* spawner
    .spawn(
      ChildProcess.make(program, args, {
        cwd: command.cwd,
        env: { ...scrubbedEnvironment(host), ...command.env, [markName]: mark },
        stdin: "ignore",
        killSignal: "SIGTERM",
        forceKillAfter: "500 millis"
      })
    )
    .pipe(Effect.mapError(notStarted(command)))
  const output = makeBoundedOutput(command.max_output_bytes)
  const reader = yield* Effect.forkScoped(
    Stream.runForEach(handle.all, (chunk) => Effect.sync(() => output.push(chunk))).pipe(Effect.ignore)
  )
  const ended = yield* handle.exitCode.pipe(
    Effect.map((code): number => code),
    Effect.catchTag("PlatformError", (error) => Effect.succeed(signalExit(error))),
    Effect.timeoutOption(command.timeout_ms)
  )
  const timed_out = Option.isNone(ended)
  if (timed_out)
    yield* handle.kill({ killSignal: "SIGTERM", forceKillAfter: "500 millis" }).pipe(Effect.ignore)
  // A grandchild may hold the pipe for ever: the command has ended, and closing the scope ends what is left of it.
  yield* Fiber.await(reader).pipe(Effect.timeoutOption(drainGrace))
  const result: SandboxResult = {
    exit_code: Option.getOrElse(ended, () => 124),
    timed_out,
    output: output.render(),
    output_bytes: output.total(),
    duration_ms: (yield* Clock.currentTimeMillis) - started
  }
  return result
}, Effect.scoped)

/** Runs commands directly on this machine. */
export const layerHost: Layer.Layer<Sandbox, never, ChildProcessSpawner.ChildProcessSpawner> = Layer.effect(
  Sandbox,
  Effect.gen(function* () {
    const services = yield* Effect.map(
      Effect.context<ChildProcessSpawner.ChildProcessSpawner>(),
      Context.pick(ChildProcessSpawner.ChildProcessSpawner)
    )
    return Sandbox.of({ kind: "host", run: (command) => Effect.provideContext(run(command), services) })
  })
)
