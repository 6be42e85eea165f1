/**
 * Commands on the host itself. Nothing is contained: only the environment is scrubbed, the output bounded, and whatever
 * a command leaves running ended.
 */
import { Clock, Context, Effect, Layer, Path, type PlatformError, Random } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { Sandbox, type SandboxCommand, SandboxError } from "../../services/Sandbox.ts"
import { errnoOf } from "../fs/Files.ts"
import { HostEnvironment, scrubbedEnvironment } from "./Environment.ts"
import { endMarked, markName } from "./Leftovers.ts"
import { runProcess } from "./Runner.ts"

const refuse = (reason: SandboxError["reason"], message: string, cause: PlatformError.PlatformError) =>
  new SandboxError({ reason, message, cause })

const notStarted =
  (command: SandboxCommand, cwd: string) =>
  (error: PlatformError.PlatformError): SandboxError => {
    const name = JSON.stringify(command.argv[0])
    const code = errnoOf(error)
    if (error.reason.module === "FileSystem") return refuse("failed", `${cwd} is not there to run in`, error)
    if (code === "ENOENT")
      return refuse("not_found", `${name} was not found on PATH, or names an interpreter that was not`, error)
    return code === "EACCES" || code === "EPERM" || code === "ENOEXEC"
      ? refuse("not_executable", `${name} cannot be executed`, error)
      : refuse("failed", `${name} cannot be started: ${error.message}`, error)
  }

const run = Effect.fn("Sandbox.run")(function* (command: SandboxCommand) {
  const host = yield* HostEnvironment
  const path = yield* Path.Path
  const cwd = path.join(command.place.root, command.directory)
  const mark = `${process.pid}-${yield* Random.nextInt}-${yield* Clock.currentTimeMillis}`
  // Added before the spawn, so that it runs after the group has been ended.
  yield* Effect.addFinalizer(() => endMarked(mark))
  return yield* runProcess({
    argv: command.argv,
    cwd,
    env: { ...scrubbedEnvironment(host), ...command.env, [markName]: mark },
    contained: null,
    timeout_ms: command.timeout_ms,
    max_output_bytes: command.max_output_bytes
  }).pipe(
    Effect.mapError((error) => (error._tag === "SandboxError" ? error : notStarted(command, cwd)(error)))
  )
}, Effect.scoped)

type Needs = ChildProcessSpawner.ChildProcessSpawner | Path.Path

/** Runs commands directly on this machine. */
export const layerHost: Layer.Layer<Sandbox, never, Needs> = Layer.effect(
  Sandbox,
  Effect.gen(function* () {
    const services = yield* Effect.map(
      Effect.context<Needs>(),
      Context.pick(ChildProcessSpawner.ChildProcessSpawner, Path.Path)
    )
    return Sandbox.of({
      kind: "host",
      overlays: false,
      run: (command) => Effect.provideContext(run(command), services)
    })
  })
)
