/**
 * stdout carries only the answer, stderr everything else. A reader that went away is not an error of ours.
 */
import { Effect } from "effect"
import { oneLine } from "../domain/Text.ts"
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

/** Resolves when the text has left the process, or with what kept it from that. */
const write = (stream: NodeJS.WriteStream, text: string): Effect.Effect<Error | null> =>
  Effect.callback((resume) => {
    stream.write(text, (failure) => {
      const error = stream.errored ?? failure ?? null
      resume(Effect.succeed(error === null || isGone(error) ? null : error))
    })
  })

export const writeErr = (text: string): Effect.Effect<void> => Effect.asVoid(write(process.stderr, text))

/** Ends the command with a code, after one line that says why. Names in it may be anybody's. */
export const endWith = (code: number, message: string): Effect.Effect<never, CliExit> =>
  writeErr(`looplane: ${oneLine(message)}\n`).pipe(Effect.andThen(Effect.fail(new CliExit({ code }))))

/** Ends a command that was refused before anything happened. */
export const refused = (error: { readonly message: string }) => endWith(2, error.message)

/** Writes an answer. One that cannot be kept where it was sent (a full disk) is a failure of the command. */
export const writeOut = (text: string): Effect.Effect<void, CliExit> =>
  Effect.flatMap(write(process.stdout, text), (error) =>
    error === null ? Effect.void : endWith(1, `stdout cannot be written: ${error.message}`)
  )

/** Writes a piece of what an answer will say again, so that nothing ends when it is lost. */
export const showOut = (text: string): Effect.Effect<void> => Effect.asVoid(write(process.stdout, text))
