/**
 * How the process ends: an exit code, and what was said already.
 */
import { Data, Runtime } from "effect"

/** Ends the process with a code. Nothing more is printed for it. */
export class CliExit extends Data.TaggedError("CliExit")<{ readonly code: number }> {
  override readonly [Runtime.errorExitCode]: number = this.code
  override readonly [Runtime.errorReported]: boolean = false
}
