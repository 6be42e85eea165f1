/**
 * stdout carries only the answer, stderr everything else. A reader that went away is not an error of ours.
 */
import { Effect } from "effect"
import { CliExit } from "./exit.ts"

/** Nobody reads any more: the other end of the pipe was closed, or the terminal hung up. */
const goneCodes: ReadonlySet<string> = new Set(["EPIPE", "EIO", "ECONNRESET"])
const isGone = (error: Error): boolean => "code" in error && goneCodes.has(String(error.code))

/** From here on a stream that breaks ends no run: whoever writes hears of it, if it matters. */
export const tolerateLostStreams = () => {
  // The launcher's own listeners, for the time until now, throw at what they do not know.
  for (const stream of [process.stdout, process.stderr])
    stream.removeAllListeners("error").on("error", () => {})
}

/**
 * Resolves when the text has left the process. An answer that cannot be kept where it was sent (a full disk) is a
 * failure of the command.
 */
export const writeOut = (text: string): Effect.Effect<void, CliExit> =>
  Effect.callback<void, CliExit>((resume) => {
    process.stdout.write(text, (failure) => {
      const error = process.stdout.errored ?? failure
      resume(!error || isGone(error) ? Effect.void : endWith(1, `stdout cannot be written: ${error.message}`))
    })
  })

/** Ends the command with a code, after one line that says why. */
export const endWith = (code: number, message: string): Effect.Effect<never, CliExit> =>
  writeErr(`looplane: ${message}\n`).pipe(Effect.andThen(Effect.fail(new CliExit({ code }))))

/** Resolves when the text has left the process, or cannot. */
export const writeErr = (text: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    process.stderr.write(text, () => resume(Effect.void))
  })
