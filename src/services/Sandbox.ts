/**
 * Where commands run. The only way a program starts a foreign process that the task or the model named.
 */
import { Context, type Effect, Schema } from "effect"

export class SandboxError extends Schema.TaggedError<SandboxError>()("SandboxError", {
  reason: Schema.Literals(["not_found", "not_executable", "refused", "failed"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export interface SandboxCommand {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  /** Set on top of the scrubbed environment. */
  readonly env: Readonly<Record<string, string>>
  readonly timeout_ms: number
  /** Of stdout and stderr together; head and tail are kept. */
  readonly max_output_bytes: number
}

export interface SandboxResult {
  /** 124 when the time was up; 128 + n when signal n ended it. */
  readonly exit_code: number
  readonly timed_out: boolean
  /** stdout and stderr as they came, bounded, decoded with replacement. */
  readonly output: string
  readonly output_bytes: number
  readonly duration_ms: number
}

export class Sandbox extends Context.Service<
  Sandbox,
  {
    /** `host` contains nothing. */
    readonly kind: "host" | "none"
    /** Runs to the end, then ends whatever the command left in its process group. A non-zero exit is a value. */
    readonly run: (command: SandboxCommand) => Effect.Effect<SandboxResult, SandboxError>
  }
>()("looplane/services/Sandbox") {}
