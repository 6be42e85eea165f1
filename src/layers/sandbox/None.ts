/**
 * No place to run anything in.
 */
import { Effect, Layer } from "effect"
import { Sandbox, SandboxError } from "../../services/Sandbox.ts"

/** Refuses every command. */
export const layerNone: Layer.Layer<Sandbox> = Layer.succeed(
  Sandbox,
  Sandbox.of({
    kind: "none",
    overlays: false,
    run: (command) =>
      Effect.fail(
        new SandboxError({
          reason: "refused",
          message: `${JSON.stringify(command.argv[0])} was not started: nothing contains commands here, use --unsafe-local-exec to run them on this machine`
        })
      )
  })
)
