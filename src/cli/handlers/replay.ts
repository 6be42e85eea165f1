/**
 * `replay`: a recorded run once more, compared with itself.
 */
import { Effect, FileSystem, Option, Path, Ref } from "effect"
import { wordsOf } from "../../domain/Errno.ts"
import { differingPlaces, tooOldToPlay, type Difference, type Recording } from "../../domain/Recording.ts"
import { refuse } from "../../domain/Refusal.ts"
import { layerDigest, layerRead, layerReplayOf, layerStore } from "../../layers/Live.ts"
import { loadRecording, recordingOf } from "../../programs/Record.ts"
import { replay } from "../../programs/Replay.ts"
import { CliExit } from "../exit.ts"
import { endWith, refused, writeErr, writeOut } from "../io.ts"
import { clip } from "../render/clip.ts"
import { differenceText } from "../render/timeline.ts"
import type { ReplayInput } from "../replayFlags.ts"
import { runRootOf } from "../runRoot.ts"

/** Of a recording's file, in bytes. */
const maxFileBytes = 256 * 1024 * 1024
/** How often a long replay says how far it is. */
const tellEvery = "2 seconds"

/** A file is opened when it is a regular one only: anything else could wait for ever. */
const isFile = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const info = yield* Effect.option(fs.stat(file))
  return Option.isSome(info) && info.value.type === "File" ? Number(info.value.size) : null
})

const fromFile = Effect.fnUntraced(function* (file: string, size: number) {
  const fs = yield* FileSystem.FileSystem
  if (size > maxFileBytes) return yield* refuse(`${file} has ${size} bytes: no recording is that long`)
  const text = yield* fs
    .readFileString(file)
    .pipe(Effect.mapError((error) => refuse(`${file} cannot be read: ${wordsOf(error)}`)))
  return yield* loadRecording(text).pipe(
    Effect.provide(layerDigest),
    Effect.mapError((error) =>
      error.reason === "changed" ? error : refuse(clip(`${file}: ${error.message}`, 400))
    ),
    Effect.catchTag("RecordingError", (error) =>
      endWith(1, clip(`${file} was changed: ${error.message}`, 400))
    )
  )
})

const find = Effect.fnUntraced(function* (input: ReplayInput) {
  const path = yield* Path.Path
  const runRoot = yield* runRootOf(input)
  const file = path.resolve(input.recording)
  const size = input.recording === "last" ? null : yield* isFile(file)
  const recording =
    size === null
      ? yield* recordingOf(input.recording).pipe(Effect.provide(layerStore({ runRoot })))
      : yield* fromFile(file, size)
  const version = tooOldToPlay(recording)
  return version === null
    ? recording
    : yield* refuse(
        `run ${recording.run_id} cannot be repeated: runs of store version ${version} do not hold what a replay needs; looplane sessions --replay ${recording.run_id} shows its timeline`
      )
})

/** Plays a recording, and counts the events that agreed. */
const play = Effect.fnUntraced(function* (recording: Recording) {
  const agreed = yield* Ref.make(0)
  const tell = Effect.gen(function* () {
    while (true) {
      yield* Effect.sleep(tellEvery)
      yield* writeErr(`replaying: ${yield* Ref.get(agreed)} of ${recording.entries.length} events\n`)
    }
  })
  const difference = yield* replay.pipe(
    Effect.provide(layerReplayOf(recording, { onEvent: () => Ref.update(agreed, (count) => count + 1) })),
    Effect.raceFirst(tell)
  )
  return { difference, agreed: yield* Ref.get(agreed) }
})

const jsonOf = (recording: Recording, agreed: number, difference: Difference | null) => ({
  agrees: difference === null,
  run_id: recording.run_id,
  events: recording.entries.length,
  agreed_events: agreed,
  difference:
    difference === null
      ? null
      : {
          ...difference,
          paths: differingPlaces(difference.recorded, difference.played).map(({ path }) => path)
        }
})

const agreement = (recording: Recording, agreed: number): string => {
  const aside = recording.entries.length - agreed
  const passed = aside === 0 ? "" : `; passed over: ${aside} (of a fork, or of a later version)`
  return `replayed: ${agreed} events agree${passed}\n`
}

/** Ends with 0 when the run came out as it was recorded, 1 when it did not, 2 when there is nothing to play. */
export const replayRun = Effect.fn("cli.replayRun")(function* (input: ReplayInput) {
  const recording = yield* find(input).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({ Refusal: refused, StoreError: refused, SettingsError: refused })
  )
  const { agreed, difference } = yield* play(recording)
  yield* writeOut(
    input.output === "json"
      ? `${JSON.stringify(jsonOf(recording, agreed, difference), null, 2)}\n`
      : difference === null
        ? agreement(recording, agreed)
        : differenceText(difference, differingPlaces(difference.recorded, difference.played))
  )
  if (difference !== null) return yield* new CliExit({ code: 1 })
})
