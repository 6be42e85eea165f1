/**
 * Runs one process to its end: bounded output, a bounded wait, and nothing of it left running.
 */
import { Clock, Effect, Fiber, Option, type PlatformError, Queue, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { constants } from "node:os"
import type { SandboxResult } from "../../services/Sandbox.ts"
import { makeBoundedOutput } from "./BoundedOutput.ts"
import { closingInherited } from "./Descriptors.ts"

/** How long a pipe may stay open after the command itself has ended. */
const drainGrace = "250 millis"

const grace = "500 millis"

const signalNumbers: Readonly<Record<string, number>> = constants.signals

/** 128 + n for a command that signal n ended. The spawner tells the signal only in its message. */
const signalExit = (error: PlatformError.PlatformError): number => {
  const cause = error.reason.cause
  const name = /signal: '(SIG[A-Z0-9]+)'/.exec(cause instanceof Error ? cause.message : "")?.[1] ?? "SIGKILL"
  return 128 + (signalNumbers[name] ?? 9)
}

/** However long a command computes, whoever works on this machine comes first. */
const niceness = "5"

export interface Process {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** What it can read from descriptor 3, and what is made of what it writes to descriptor 4: completes when the process
   * is to be stopped, with the reason. Null: it has no such descriptors. */
  readonly contained: {
    readonly filter: Uint8Array
    readonly watch: (status: Stream.Stream<Uint8Array, unknown>) => Effect.Effect<string>
    /** The program that makes room for everybody else's; null where there is none. */
    readonly nice: string | null
    /** See `Descriptors.ts`; null: it closes what it inherits by itself. */
    readonly closing: { readonly bash: string | null } | null
  } | null
  readonly timeout_ms: number
  readonly max_output_bytes: number
}

export interface Ran extends SandboxResult {
  /** What it wrote to descriptor 4. */
  readonly status: string
}

/** Fails only when it could not be started. Closing the scope ends its process group. */
export const runProcess = Effect.fnUntraced(function* (process: Process) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const { contained } = process
  const nice = contained?.nice ?? null
  const closing = contained?.closing ?? null
  const alone = closing === null ? process.argv : yield* closingInherited(process.argv, closing.bash)
  const [program, ...args] = nice === null ? alone : ([nice, "-n", niceness, ...alone] as const)
  const started = yield* Clock.currentTimeMillis
  const handle = yield* spawner.spawn(
    ChildProcess.make(program, args, {
      cwd: process.cwd,
      env: process.env,
      stdin: "ignore",
      ...(contained === null
        ? {}
        : {
            additionalFds: {
              fd3: { type: "input", stream: Stream.succeed(contained.filter) },
              fd4: { type: "output" }
            }
          }),
      killSignal: "SIGTERM",
      forceKillAfter: grace
    })
  )
  const output = makeBoundedOutput(process.max_output_bytes)
  const reader = yield* Effect.forkScoped(
    Stream.runForEach(handle.all, (chunk) => Effect.sync(() => output.push(chunk))).pipe(Effect.ignore)
  )
  let status = ""
  const told = yield* Queue.unbounded<Uint8Array>()
  const listener =
    contained === null
      ? null
      : yield* Effect.forkScoped(
          Stream.runForEach(handle.getOutputFd(4), (chunk) => {
            status += Buffer.from(chunk).toString("latin1")
            return Queue.offer(told, chunk)
          }).pipe(Effect.ignore)
        )
  const exit = handle.exitCode.pipe(
    Effect.map((code): number => code),
    Effect.catchTag("PlatformError", (error) => Effect.succeed(signalExit(error)))
  )
  const ended = yield* (
    contained === null ? exit : Effect.raceFirst(exit, contained.watch(Stream.fromQueue(told)))
  ).pipe(Effect.timeoutOption(process.timeout_ms))
  const timed_out = Option.isNone(ended)
  const stopped = Option.isSome(ended) && typeof ended.value === "string" ? ended.value : null
  if (timed_out || stopped !== null)
    yield* handle.kill({ killSignal: "SIGTERM", forceKillAfter: grace }).pipe(Effect.ignore)
  // A grandchild may hold the pipe for ever: the command has ended, and closing the scope ends what is left of it.
  yield* Fiber.await(reader).pipe(Effect.timeoutOption(drainGrace))
  if (listener !== null) yield* Fiber.await(listener).pipe(Effect.timeoutOption(drainGrace))
  const result: Ran = {
    exit_code: Option.isSome(ended) ? (typeof ended.value === "string" ? 137 : ended.value) : 124,
    timed_out,
    stopped,
    output: output.render(),
    output_bytes: output.total(),
    status,
    duration_ms: (yield* Clock.currentTimeMillis) - started
  }
  return result
})
