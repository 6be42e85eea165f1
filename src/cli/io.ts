/**
 * stdout carries only the answer, stderr everything else. A reader that went away is not an error of ours.
 */
import { Effect } from "effect"

const write = (stream: NodeJS.WriteStream, text: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    stream.write(text, () => resume(Effect.void))
  })

/** Resolves when the text has left the process. */
export const writeOut = (text: string): Effect.Effect<void> => write(process.stdout, text)
export const writeErr = (text: string): Effect.Effect<void> => write(process.stderr, text)
