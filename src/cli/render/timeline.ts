/**
 * A run's story for people, and where a replay left it.
 */
import type { Difference, DifferingPlace } from "../../domain/Recording.ts"
import type { TimedMoment, Timeline } from "../../domain/Timeline.ts"
import type { RunSummary } from "../../services/RunStore.ts"
import { clip, printable } from "./clip.ts"
import { stateOf, unknownLines } from "./sessions.ts"

const head = (run: RunSummary): ReadonlyArray<string> => [
  `status:  ${stateOf(run)}`,
  ...(run.manifest === null ? [] : [`model:   ${run.manifest.provider}/${run.manifest.model}`]),
  ...(run.request === null ? [] : [`task:    ${clip(run.request.task.instruction, 100)}`]),
  ...(run.result === null || run.result.summary === "" ? [] : [`summary: ${clip(run.result.summary, 400)}`])
]

const elapsed = (start: number, moment: TimedMoment): string => {
  const ms = Date.parse(moment.created_at) - start
  return Number.isNaN(ms) ? "?" : `${ms < 0 ? "-" : "+"}${(Math.abs(ms) / 1000).toFixed(3)}s`
}

const momentLine = (start: number, moment: TimedMoment): string => {
  const said = [moment.detail, moment.text].filter((part) => part !== null).join(": ")
  const columns = [
    String(moment.sequence).padStart(5),
    elapsed(start, moment).padStart(12),
    `${moment.event_type.padEnd(24)} ${clip(said, 100)}`
  ]
  return columns.join("  ").trimEnd()
}

/** A run's facts, then `sequence  +elapsed  event  detail`, the user's turns marked. Of events unknown here, how many. */
export const timelineText = (run: RunSummary, timeline: Timeline): string => {
  const start = Date.parse(timeline.moments[0]?.created_at ?? "")
  const lines = timeline.moments.flatMap((moment) => [
    ...(moment.turn === "starts" ? ["", `${(moment.turn_id ?? "").replace("-", " ")}:`] : []),
    momentLine(start, moment)
  ])
  const unknown = timeline.unknown === 0 ? [] : ["", ...unknownLines(timeline.unknown)]
  return printable([...head(run), ...lines, ...unknown, ""].join("\n"))
}

/** Of a value that is shown beside another one, in characters. */
const maxShown = 160
/** What of two long texts comes before the place where they part. */
const lead = 24

/** The index of the first character that two texts do not share, a little before it, so that it can be found. */
const partOf = (left: string, right: string): number => {
  let index = 0
  while (index < left.length && left[index] === right[index]) index++
  return Math.max(0, index - lead)
}

const shown = (value: unknown, from: number): string => {
  if (value === undefined) return "nothing"
  const all = JSON.stringify(value) ?? "nothing"
  if (all.length <= maxShown) return all
  const text = typeof value === "string" ? value : all
  const piece = JSON.stringify(text.slice(from, from + maxShown - 40))
  return `${from > 0 ? "…" : ""}${piece}${from + maxShown - 40 < text.length ? "…" : ""}`
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

const placeLines = ({ path, played, recorded }: DifferingPlace): ReadonlyArray<string> => {
  const from = partOf(textOf(recorded), textOf(played))
  return [
    `  ${path === "" ? "event" : path}`,
    `    recorded: ${shown(recorded, from)}`,
    `    played:   ${shown(played, from)}`
  ]
}

const nothingPlayed = "the run had ended, or waited for something that never comes"
const nothingRecorded = "the recording ends before it"

/** The first event that is not the recorded one: which, and where it differs, as short as it can be told. */
export const differenceText = (
  { played, recorded, sequence }: Difference,
  places: ReadonlyArray<DifferingPlace>
): string => {
  const types = [recorded?.event_type, played?.event_type]
  const name = types[0] ?? types[1] ?? "nothing"
  const lines =
    recorded === null || played === null || types[0] !== types[1]
      ? [
          `  recorded: ${recorded === null ? nothingRecorded : `${recorded.event_type} ${shown(recorded.data, 0)}`}`,
          `  played:   ${played === null ? nothingPlayed : `${played.event_type} ${shown(played.data, 0)}`}`
        ]
      : [
          ...places.slice(0, 5).flatMap(placeLines),
          ...(places.length > 5 ? [`  and ${places.length - 5} more places`] : [])
        ]
  return printable([`the replay differs from event ${sequence} on (${name}):`, ...lines, ""].join("\n"))
}
