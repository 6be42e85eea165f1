/**
 * Past runs for people: a table, and one run's events.
 */
import type { RunDetails, RunSummary } from "../../services/RunStore.ts"
import { record } from "../../domain/Json.ts"
import { totalTokens } from "../../domain/Usage.ts"
import { clip, printable } from "./clip.ts"

/** How a run ended, or why that is not known. */
export const stateOf = (run: RunSummary): string => {
  if (run.result !== null) return run.result.terminal_reason
  return run.manifest === null ? "unreadable" : "incomplete"
}

const row = (cells: ReadonlyArray<readonly [string, number]>): string =>
  cells
    .map(([text, width]) => clip(text, width).padEnd(width))
    .join("  ")
    .trimEnd()

/** One line a run: id, when, how it ended, model, tokens, task. */
export const listText = (runs: ReadonlyArray<RunSummary>): string =>
  [
    row([
      ["RUN", 36],
      ["TIME (UTC)", 16],
      ["STATUS", 20],
      ["MODEL", 24],
      ["TOKENS", 8],
      ["TASK", 40]
    ]),
    ...runs.flatMap((run) => [
      row([
        [run.run_id, 36],
        [new Date(run.modified_ms).toISOString().slice(0, 16).replace("T", " "), 16],
        [stateOf(run), 20],
        [run.manifest === null ? "" : `${run.manifest.provider}/${run.manifest.model}`, 24],
        [run.result === null ? "" : String(totalTokens(run.result.usage)), 8],
        [run.request?.task.instruction ?? "", 40]
      ]),
      ...(run.missing.length === 0
        ? []
        : [
            `  lacks: ${run.missing.join(", ")}${run.result === null && run.request !== null ? `; looplane resume ${run.run_id} goes on with it` : ""}`
          ])
    ]),
    ""
  ].join("\n")

/** What tells an event apart from others of its type: at most three of its fields. */
const detailOf = (data: unknown): string => {
  const fields = record(data)
  const wanted = [
    "terminal_reason",
    "note",
    "reason",
    "name",
    "decision",
    "delay_ms",
    "model",
    "base_sha",
    "step"
  ]
  return wanted
    .filter((key) => Object.hasOwn(fields, key))
    .slice(0, 3)
    .map((key) => `${key}=${String(fields[key])}`)
    .join(" ")
}

/** Of events that cannot be shown, how many there are. */
export const unknownLines = (count: number): ReadonlyArray<string> =>
  count === 0
    ? []
    : [
        `${count === 1 ? "1 event is of a type" : `${count} events are of types`} that this version does not know`
      ]

/** A run's facts, then `sequence  time  event  detail`. */
export const showText = (run: RunDetails): string => printable(showLines(run).join("\n"))

const showLines = (run: RunDetails): ReadonlyArray<string> => [
  `run:     ${run.run_id}`,
  `status:  ${stateOf(run)}`,
  ...(run.manifest === null ? [] : [`model:   ${run.manifest.provider}/${run.manifest.model}`]),
  ...(run.request === null
    ? []
    : [`task:    ${clip(run.request.task.instruction, 100)}`, `repo:    ${run.request.task.repository}`]),
  ...(run.result === null || run.result.summary === "" ? [] : [`summary: ${clip(run.result.summary, 400)}`]),
  ...(run.missing.length === 0 ? [] : [`lacks:   ${run.missing.join(", ")}`]),
  ...unknownLines(run.unknown),
  `where:   ${run.directory}`,
  "",
  ...run.entries.map(({ created_at, event, sequence }) =>
    `${String(sequence).padStart(4)}  ${created_at}  ${event.event_type.padEnd(24)} ${detailOf(event.data)}`.trimEnd()
  ),
  ""
]
