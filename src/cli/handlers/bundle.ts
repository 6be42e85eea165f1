/**
 * `bundle`: a run as one file that can be carried away.
 */
import { Effect, FileSystem, Path } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Recording } from "../../domain/Recording.ts"
import { refuse } from "../../domain/Refusal.ts"
import { layerRead, layerStore } from "../../layers/Live.ts"
import { recordingFile, recordingOf } from "../../programs/Record.ts"
import { endWith, refused, writeErr } from "../io.ts"
import type { BundleInput } from "../replayFlags.ts"
import { runRootOf } from "../runRoot.ts"

/** Puts a whole file in its place or none: under another name beside it first, for this user alone. */
const writeWhole = Effect.fnUntraced(function* (file: string, content: string, force: boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const temporary = path.join(path.dirname(file), `.${yield* random.uuidV4()}.tmp`)
  const write = Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* fs.open(temporary, { flag: "wx", mode: 0o600 })
      yield* handle.writeAll(new TextEncoder().encode(content))
      yield* handle.sync
    })
  )
  // A link fails where a name is taken, and a rename does not.
  const place = force ? fs.rename(temporary, file) : fs.link(temporary, file)
  yield* write.pipe(
    Effect.andThen(place),
    Effect.ensuring(Effect.ignore(fs.remove(temporary, { force: true }))),
    Effect.catchTag(
      "PlatformError",
      Effect.fnUntraced(function* (error) {
        if (error.reason._tag === "AlreadyExists")
          return yield* refuse(`${file} is there already: --force replaces it`)
        return yield* endWith(1, `${file} cannot be written: ${error.message}`)
      })
    )
  )
})

/** Places of this machine that somebody who gets the file may not expect in it. */
const namesPlaces = (recording: Recording): number => {
  const name = JSON.stringify(recording.request.task.repository).slice(1, -1)
  return recording.entries.filter((entry) => JSON.stringify(entry.event).includes(name)).length
}

export const bundleRun = Effect.fn("cli.bundleRun")(function* (input: BundleInput) {
  const path = yield* Path.Path
  if (!input.asFixture)
    return yield* endWith(2, "bundle needs --as-fixture: that file is the only form it makes")
  if (input.file === "") return yield* endWith(2, "-o needs the name of a file")
  const file = path.resolve(input.file)
  yield* Effect.gen(function* () {
    const runRoot = yield* runRootOf(input)
    const recording = yield* recordingOf(input.run).pipe(Effect.provide(layerStore({ runRoot })))
    // Keys stay in their order: the bytes of a request follow the order in which schemas and arguments were kept.
    const content = JSON.stringify(yield* Effect.orDie(recordingFile(recording)), null, 2)
    yield* writeWhole(file, `${content}\n`, input.force)
    const { repository } = recording.request.task
    const naming = namesPlaces(recording)
    yield* writeErr(
      `${file}: ${recording.entries.length} events of run ${recording.run_id}\n${
        naming === 0 ? "" : `note: ${naming} of them name ${repository}, as it was said then\n`
      }`
    )
  }).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({ Refusal: refused, StoreError: refused, SettingsError: refused })
  )
})
