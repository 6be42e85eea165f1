/**
 * Where the prompt comes from. stdin is read for the prompt "-" only: an open pipe in CI must not stop a run.
 */
import { Effect, Option, Stdio, Stream, Terminal } from "effect"
import { refuse, type Refusal } from "../domain/Refusal.ts"

const maxPromptBytes = 1_000_000
const stdinTimeout = "30 seconds"

const fromStdin = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  const text = yield* stdio.stdin.pipe(
    Stream.runFoldEffect(
      () => ({ bytes: 0, chunks: new Array<Uint8Array>() }),
      (all, chunk) =>
        all.bytes + chunk.length > maxPromptBytes
          ? Effect.fail(refuse(`the prompt on stdin is larger than ${maxPromptBytes} bytes`))
          : Effect.sync(() => {
              all.chunks.push(chunk)
              return { bytes: all.bytes + chunk.length, chunks: all.chunks }
            })
    ),
    Effect.map(({ chunks }) => new TextDecoder().decode(Buffer.concat(chunks))),
    Effect.catchTag("PlatformError", () =>
      Effect.fail(refuse("stdin cannot be read: give the prompt as an argument"))
    ),
    Effect.timeoutOrElse({
      duration: stdinTimeout,
      orElse: () =>
        Effect.fail(
          refuse(`stdin did not end within ${stdinTimeout}: close it, or give the prompt as an argument`)
        )
    })
  )
  return text
})

/** The prompt's text, or what to do about it. */
export const readPrompt = Effect.fnUntraced(function* (
  words: ReadonlyArray<string>,
  task: string | null,
  mode: { readonly print: boolean; readonly command: string }
): Effect.fn.Return<string, Refusal, Stdio.Stdio | Terminal.Terminal> {
  if (words.length > 0 && task !== null) {
    return yield* refuse("the prompt is given twice, as an argument and as --task: keep one")
  }
  const given = task ?? (words.length > 0 ? words.join(" ") : null)
  if (given === "-") return yield* fromStdin
  if (given !== null) return given
  if (mode.print || !process.stdin.isTTY) {
    return yield* refuse(`a prompt is needed, as in: ${mode.command} "Fix the failing test."`)
  }
  const terminal = yield* Terminal.Terminal
  yield* terminal.display("› ").pipe(Effect.ignore)
  const line = yield* terminal.readLine.pipe(Effect.option)
  return Option.getOrElse(line, () => "")
})
