/**
 * Instruction files of a repository, read from the base commit so that the prompt is a function of it.
 */
import { Effect } from "effect"
import type { Task } from "../domain/Task.ts"
import { Git } from "../services/Git.ts"

/** Of one file, in bytes. A larger one is left out and said so. */
const maxBytes = 64 * 1024
const names = ["AGENTS.md", "LOOPLANE.md"]

/** The directories from the root down to where the user stood. */
const directoriesOf = (subdirectory: string): ReadonlyArray<string> => {
  const parts = subdirectory === "" ? [] : subdirectory.split("/")
  return ["", ...parts.map((_, i) => `${parts.slice(0, i + 1).join("/")}/`)]
}

/** Those among the paths of the base commit, outermost first: a file nearer to the work has the last word. */
export const instructionsOf = Effect.fn("Instructions.instructionsOf")(function* (
  task: Task,
  paths: ReadonlyArray<string>
) {
  const git = yield* Git
  const sources = directoriesOf(task.subdirectory).flatMap((directory) =>
    names.map((name) => directory + name)
  )
  const known = new Set(paths)
  const found = yield* Effect.forEach(
    sources.filter((source) => known.has(source)),
    (source) =>
      Effect.map(git.file(task.repository, task.base.commit, source, maxBytes), (bytes) => ({
        source,
        content:
          bytes === null
            ? `[left out: not a regular file of at most ${maxBytes} bytes]`
            : new TextDecoder().decode(bytes)
      })),
    { concurrency: 4 }
  )
  return found.filter(({ content }) => content.trim() !== "")
})
