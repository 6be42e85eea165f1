/**
 * Where commands run. The only way a program starts a foreign process that the task or the model named.
 */
import { Context, type Effect, Schema } from "effect"
import type { SandboxKind } from "../domain/SandboxRule.ts"
import type { Network } from "../domain/Task.ts"

export class SandboxError extends Schema.TaggedError<SandboxError>()("SandboxError", {
  /** `refused`: it could not be started contained, so it was not started. */
  reason: Schema.Literals(["not_found", "not_executable", "refused", "failed"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** What a command works in, and what it may write. */
export interface CommandPlace {
  /** The directory that it works in or below. Absolute, as are all of these. */
  readonly root: string
  /** Where a sandbox that can, shows the root: at the path of the user's own repository, so that absolute paths of what
   * is installed lead to the clone and the user's files are out of sight. */
  readonly at: string
  /** More that it may write, at its own path: its home, its temporary files. */
  readonly writable: ReadonlyArray<string>
  /** Directories and files shown below the root as if they were copied there: what a command writes to them is gone with
   * it. Only where `overlays` is true. */
  readonly layers: ReadonlyArray<{ readonly from: string; readonly path: string }>
}

export interface SandboxCommand {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly place: CommandPlace
  /** Relative to the place's root. */
  readonly directory: string
  /** Set on top of the scrubbed environment. */
  readonly env: Readonly<Record<string, string>>
  readonly network: Network
  readonly timeout_ms: number
  /** Of stdout and stderr together; head and tail are kept. */
  readonly max_output_bytes: number
}

export interface SandboxResult {
  /** 124 when the time was up; 128 + n when signal n ended it. */
  readonly exit_code: number
  readonly timed_out: boolean
  /** Why it was stopped before its end, when it was too much for the machine; null when it was not. */
  readonly stopped: string | null
  /** stdout and stderr as they came, bounded, decoded with replacement. */
  readonly output: string
  readonly output_bytes: number
  readonly duration_ms: number
}

export class Sandbox extends Context.Service<
  Sandbox,
  {
    /** `host` contains nothing, `none` starts nothing. */
    readonly kind: SandboxKind
    /** Whether it can show the layers of a place, and its root at the path of the user's repository. */
    readonly overlays: boolean
    /** Runs to the end, then ends whatever the command left behind. A non-zero exit is a value. */
    readonly run: (command: SandboxCommand) => Effect.Effect<SandboxResult, SandboxError>
  }
>()("looplane/services/Sandbox") {}
