/**
 * Processes that were recorded and are played back: for tests of whatever starts commands, without starting any.
 */
import { Deferred, Effect, Layer, PlatformError, Ref, Sink, Stream } from "effect"
import { type ChildProcess, ChildProcessSpawner, type CommandLine } from "effect/process"

export interface RecordedProcess {
  /** The command that this answers, whole. */
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly stdout?: string | Uint8Array
  readonly stderr?: string | Uint8Array
  /** 0 when absent. */
  readonly exit_code?: number
  /** Never ends by itself: it must be killed, and is when its scope closes. */
  readonly hangs?: boolean
}

/** A command that was started, and what happened to it. */
export interface StartedProcess {
  readonly argv: ReadonlyArray<string>
  readonly cwd: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly killed: boolean
}

const bytesOf = (output: string | Uint8Array | undefined): Stream.Stream<Uint8Array> =>
  output === undefined || output.length === 0
    ? Stream.empty
    : Stream.succeed(typeof output === "string" ? new TextEncoder().encode(output) : output)

const notRecorded = (argv: ReadonlyArray<string>) =>
  PlatformError.systemError({
    _tag: "NotFound",
    module: "ChildProcess",
    method: "spawn",
    description: `no recording answers: ${argv.join(" ")}`
  })

/** A word of a command, or of its environment; secrets stay covered. */
const textOf = (word: CommandLine.Word): string => (typeof word === "string" ? word : "<redacted>")

const killedExit = ChildProcessSpawner.ExitCode(137)

/**
 * A spawner that answers each command with the first recording of the same argv that is left; the last one of an argv
 * stays. `started` tells what was started, in order.
 */
export const makeRecordedSpawner = (recordings: ReadonlyArray<RecordedProcess>) => {
  const left = Ref.makeUnsafe(recordings)
  const started = Ref.makeUnsafe<ReadonlyArray<StartedProcess>>([])
  const sameAs = (argv: ReadonlyArray<string>) => (recording: RecordedProcess) =>
    recording.argv.length === argv.length && recording.argv.every((word, i) => word === argv[i])

  const take = (argv: ReadonlyArray<string>) =>
    Ref.modify(left, (all) => {
      const at = all.findIndex(sameAs(argv))
      const again = all.slice(at + 1).some(sameAs(argv))
      return [all[at], again ? all.toSpliced(at, 1) : all]
    })

  const spawn = Effect.fnUntraced(function* (command: ChildProcess.Command) {
    if (command._tag !== "StandardCommand") return yield* notRecorded(["a pipeline"])
    const argv = [command.command, ...command.args.map(textOf)]
    const recording = yield* take(argv)
    if (recording === undefined) return yield* notRecorded(argv)
    const at = (yield* Ref.get(started)).length
    yield* Ref.update(started, (all) => [
      ...all,
      {
        argv,
        cwd: command.options.cwd,
        env: Object.fromEntries(
          Object.entries(command.options.env ?? {}).map(([name, value]) => [
            name,
            value === undefined ? value : textOf(value)
          ])
        ),
        killed: false
      }
    ])
    const ended = yield* Deferred.make<ChildProcessSpawner.ExitCode>()
    if (recording.hangs !== true) {
      yield* Deferred.succeed(ended, ChildProcessSpawner.ExitCode(recording.exit_code ?? 0))
    }
    const kill = Effect.flatMap(Deferred.succeed(ended, killedExit), (first) =>
      first
        ? Ref.update(started, (all) => all.map((one, i) => (i === at ? { ...one, killed: true } : one)))
        : Effect.void
    )
    yield* Effect.addFinalizer(() => kill)
    const closed = Stream.drain(Stream.fromEffect(Deferred.await(ended)))
    const stdout = Stream.concat(bytesOf(recording.stdout), closed)
    const stderr = Stream.concat(bytesOf(recording.stderr), closed)
    return ChildProcessSpawner.makeHandle({
      pid: ChildProcessSpawner.ProcessId(1000 + at),
      exitCode: Deferred.await(ended),
      isRunning: Effect.map(Deferred.isDone(ended), (done) => !done),
      kill: () => kill,
      stdin: Sink.drain,
      stdout,
      stderr,
      all: Stream.concat(Stream.concat(bytesOf(recording.stdout), bytesOf(recording.stderr)), closed),
      getInputFd: () => Sink.drain,
      getOutputFd: () => Stream.empty,
      unref: Effect.succeed(Effect.void)
    })
  })

  return {
    spawner: ChildProcessSpawner.make(spawn),
    started: Ref.get(started)
  }
}

/** Recorded processes in place of real ones. */
export const layerRecorded = (recordings: ReadonlyArray<RecordedProcess>) =>
  Layer.sync(ChildProcessSpawner.ChildProcessSpawner, () => makeRecordedSpawner(recordings).spawner)
