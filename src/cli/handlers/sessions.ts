/**
 * `sessions`: past runs as a table, or one run's events.
 */
import { Effect, Option, Stream } from "effect"
import { canonical } from "../../domain/Canonical.ts"
import { layerRead, layerStore } from "../../layers/Live.ts"
import { RunStore, type RunDetails, type RunSummary } from "../../services/RunStore.ts"
import { momentOf, replayState, timelineOf } from "../../domain/Timeline.ts"
import { shownName } from "../../domain/Text.ts"
import { totalTokens } from "../../domain/Usage.ts"
import { newRunId } from "../runId.ts"
import { runRootOf } from "../runRoot.ts"
import type { SessionsInput } from "../flags.ts"
import { endWith, refused, writeErr, writeOut } from "../io.ts"
import { clip } from "../render/clip.ts"
import { listText, showText } from "../render/sessions.ts"
import { timelineText } from "../render/timeline.ts"

const summaryJson = (run: RunSummary) => ({
  run_id: run.run_id,
  status: run.result?.status ?? null,
  terminal_reason: run.result?.terminal_reason ?? null,
  provider: run.manifest?.provider ?? null,
  model: run.manifest?.model ?? null,
  total_tokens: run.result === null ? null : totalTokens(run.result.usage),
  instruction: run.request?.task.instruction ?? null,
  repository: run.request?.task.repository ?? null,
  changed_files: run.result?.changed_files ?? [],
  missing: run.missing,
  directory: run.directory
})

const detailsJson = (run: RunDetails) => ({
  ...summaryJson(run),
  unknown_events: run.unknown,
  events: run.entries.map(({ created_at, event, sequence }) => ({ sequence, created_at, ...event }))
})

/** The options that each ask for something of their own. */
const exclusive = (input: SessionsInput): ReadonlyArray<string> =>
  [
    ["--show", input.show] as const,
    ["--replay", input.replay] as const,
    ["--replay-json", input.replayJson] as const,
    ["--fork-from-event", input.forkFromEvent] as const
  ].flatMap(([flag, value]) => (Option.isSome(value) ? [flag] : []))

/** A run's story, from its small files and one pass over its journal. */
const story = Effect.fnUntraced(function* (run: string, json: boolean) {
  const store = yield* RunStore
  const summary = yield* store.find(run)
  const moments = yield* store.entries(summary.directory).pipe(Stream.map(momentOf), Stream.runCollect)
  const timeline = yield* Effect.fromResult(timelineOf(moments))
  return json ? canonical(replayState(timeline)) : timelineText(summary, timeline)
})

export const showSessions = Effect.fn("cli.showSessions")(
  function* (input: SessionsInput) {
    if (input.limit < 1) return yield* endWith(2, "--limit must be greater than 0")
    const [first, second] = exclusive(input)
    if (second !== undefined)
      return yield* endWith(2, `${first} and ${second} exclude each other: give one of them`)
    const runRoot = yield* runRootOf(input)
    yield* Effect.gen(function* () {
      const store = yield* RunStore
      if (Option.isSome(input.forkFromEvent)) {
        const sequence = Option.getOrNull(input.sequence)
        if (sequence === null || sequence < 0)
          return yield* endWith(
            2,
            "--fork-from-event needs --sequence N: the event to fork from (see --show)"
          )
        const fork = yield* store.fork(input.forkFromEvent.value, { sequence, run_id: yield* newRunId })
        return yield* writeOut(
          input.output === "json"
            ? `${JSON.stringify(fork, null, 2)}\n`
            : `${fork.run_id}\ngo on with it: looplane resume ${fork.run_id}\n`
        )
      }
      if (Option.isSome(input.sequence))
        return yield* endWith(2, "--sequence goes with --fork-from-event RUN")
      const replay = Option.orElse(input.replay, () => input.replayJson)
      if (Option.isSome(replay))
        return yield* writeOut(
          yield* story(replay.value, Option.isSome(input.replayJson) || input.output === "json")
        )
      if (Option.isSome(input.show)) {
        const run = yield* store.show(input.show.value)
        return yield* writeOut(
          input.output === "json" ? `${JSON.stringify(detailsJson(run), null, 2)}\n` : showText(run)
        )
      }
      const query = Option.getOrNull(input.query)
      const runs = yield* store.list({ limit: input.limit, query })
      if (input.output === "json")
        return yield* writeOut(`${JSON.stringify(runs.map(summaryJson), null, 2)}\n`)
      if (runs.length > 0) return yield* writeOut(listText(runs))
      const which = query === null ? "no runs" : `no runs that mention ${clip(query, 60)}`
      return yield* writeErr(`${which} under ${shownName(runRoot)}\n`)
    }).pipe(Effect.provide(layerStore({ runRoot })))
  },
  Effect.provide(layerRead),
  Effect.catchTags({ Refusal: refused, StoreError: refused, SettingsError: refused })
)
