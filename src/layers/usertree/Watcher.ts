/**
 * A second process that outlives the one that applies: when that one dies in the middle, whatever killed it, this one
 * puts the tree right at once. Without it the next apply in the repository does.
 */
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

export class ApplyWatcher extends Context.Service<
  ApplyWatcher,
  {
    /** Watches over the tree at `root` until the scope closes. Best effort: never fails, and never waits long. */
    readonly start: (root: string) => Effect.Effect<void, never, Scope.Scope>
  }
>()("looplane/layers/usertree/ApplyWatcher") {}

/** Nobody watches. */
export const layerNone: Layer.Layer<ApplyWatcher> = Layer.succeed(
  ApplyWatcher,
  ApplyWatcher.of({ start: () => Effect.void })
)

/** What the process says on stdout when it watches. */
export const watching = "watching"

/**
 * Starts `argv` with the root behind it. That process reads its stdin, which ends only when this process is gone: the
 * kernel closes the pipe, so nothing can be missed. It has a session of its own, so that no signal of a terminal or to
 * this group reaches it.
 */
export const layerProcess = (
  argv: readonly [string, ...ReadonlyArray<string>]
): Layer.Layer<ApplyWatcher, never, ChildProcessSpawner.ChildProcessSpawner> =>
  Layer.effect(
    ApplyWatcher,
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const [program, ...args] = argv
      const start = Effect.fn("ApplyWatcher.start")(
        function* (root: string) {
          const handle = yield* spawner.spawn(
            ChildProcess.make(program, [...args, root], {
              cwd: "/",
              extendEnv: true,
              detached: true,
              stdin: "pipe",
              stderr: "ignore",
              killSignal: "SIGKILL"
            })
          )
          yield* handle.stdout.pipe(
            Stream.decodeText(),
            Stream.splitLines,
            Stream.takeUntil((line) => line === watching),
            Stream.runDrain,
            Effect.timeoutOption("5 seconds")
          )
        },
        Effect.catchTag("PlatformError", (cause) =>
          Effect.logWarning("no second process watches over the apply", cause)
        )
      )
      return ApplyWatcher.of({ start })
    })
  )
