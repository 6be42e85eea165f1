/**
 * How a run shows itself while it works, and what it leaves on stdout.
 */
import { Effect } from "effect"
import type { JournalEntry } from "../../domain/Event.ts"
import { toLine } from "../../domain/JournalCodec.ts"
import { exitCodeOf } from "../../domain/Result.ts"
import type { Task } from "../../domain/Task.ts"
import type { FinishedRun } from "../../programs/Run.ts"
import { CliExit } from "../exit.ts"
import { showOut, writeErr, writeOut } from "../io.ts"
import { progressLine } from "../render/progress.ts"
import { absolute, resultText } from "../render/result.ts"

export type Output = "text" | "json" | "jsonl"

export const observerOf = (output: Output) => ({
  entry: (entry: JournalEntry) =>
    output === "jsonl"
      ? showOut(`${JSON.stringify(toLine(entry))}\n`)
      : Effect.suspend(() => {
          const line = progressLine(entry.event)
          return line === null ? Effect.void : writeErr(`${line}\n`)
        }),
  delta: () => Effect.void
})

const present = (finished: FinishedRun, output: Output) => {
  switch (output) {
    case "text":
      return writeOut(resultText(finished))
    case "json":
      return writeOut(`${JSON.stringify(absolute(finished), null, 2)}\n`)
    case "jsonl":
      return writeOut(`${JSON.stringify({ type: "result", ...absolute(finished) })}\n`)
  }
}

/** What a run's end says and does to the process, in the region that ended it. */
export const ending = (task: Task, output: Output) => {
  const codeOf = ({ result }: FinishedRun) =>
    exitCodeOf(result.terminal_reason, task.verification.mode === "waived")
  return {
    // From here on a signal changes neither what is said of the run nor the exit code.
    announce: (finished: FinishedRun) =>
      Effect.tap(present(finished, output), () =>
        Effect.sync(() => {
          process.exitCode = codeOf(finished)
        })
      ),
    leave: (finished: FinishedRun) => {
      const code = codeOf(finished)
      return code === 0 ? Effect.void : Effect.fail(new CliExit({ code }))
    }
  }
}
