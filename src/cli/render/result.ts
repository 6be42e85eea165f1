/**
 * A result as stdout carries it.
 */
import { artifactNames, type RunResult } from "../../domain/Result.ts"
import type { FinishedRun } from "../../programs/Run.ts"
import { printable } from "./clip.ts"

/** The result with absolute artifact paths: on disk they are relative, so that a bundle can be moved. */
export const absolute = (run: FinishedRun): RunResult => ({
  ...run.result,
  artifacts: Object.fromEntries(
    Object.entries(run.result.artifacts).map(([key, name]) => [key, `${run.directory}/${name}`])
  )
})

/** For people: what happened, what changed, where the patch is. */
export const resultText = (run: FinishedRun): string => {
  const { result } = run
  const checks = result.verification.map(
    (outcome) =>
      `  ${outcome.verdict.padEnd(16)} ${outcome.name}: ${outcome.argv.join(" ")}${outcome.reason === null ? "" : ` (${outcome.reason})`}`
  )
  const lines = [
    ...(result.summary === "" ? [] : [result.summary, ""]),
    `${result.status}: ${result.terminal_reason}${result.error === null ? "" : ` (${result.error})`}`,
    ...checks,
    ...(result.changed_files.length === 0
      ? []
      : [`changed: ${result.changed_files.join(", ")}`, `patch:   ${run.directory}/${artifactNames.patch}`]),
    ...result.notes.map((note) => `note:    ${note}`),
    `run:     ${result.run_id}`,
    ""
  ]
  return printable(lines.join("\n"))
}
