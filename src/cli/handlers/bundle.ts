/**
 * `bundle`: a run as one file that can be carried away.
 */
import { Effect, FileSystem, Option, Path, type PlatformError } from "effect"
import { SecureRandom } from "effect/crypto"
import { errnoOf, wordsOf } from "../../domain/Errno.ts"
import type { Recording } from "../../domain/Recording.ts"
import { refuse } from "../../domain/Refusal.ts"
import { artifactNames } from "../../domain/Result.ts"
import { shownName } from "../../domain/Text.ts"
import { layerDigest, layerRead, layerStore } from "../../layers/Live.ts"
import { recordingFile, recordingOf } from "../../programs/Record.ts"
import { endWith, refused, writeErr } from "../io.ts"
import type { BundleInput } from "../replayFlags.ts"
import { runRootOf } from "../runRoot.ts"

/** What no other place would mend; a file that was not refused for its place failed. */
const passing: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE"])

const cannotWrite = (file: string) => (error: PlatformError.PlatformError) =>
  endWith(
    passing.has(errnoOf(error) ?? "") ? 1 : 2,
    `${shownName(file)} cannot be written: ${wordsOf(error)}`
  )

const takenPlace = (file: string) => refuse(`${shownName(file)} is there already: --force replaces it`)

/** A file may be replaced. A device, a pipe or a directory never is, nor a link to one. What /dev/stdout leads to may be a
 * file just then, and is a link of the system's all the same. */
const demandReplaceable = Effect.fnUntraced(function* (file: string, force: boolean) {
  const fs = yield* FileSystem.FileSystem
  const there = yield* fs.lstat(file).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "NotFound",
      () => Effect.succeed(null)
    )
  )
  if (there === null) return
  const target = there.type === "SymbolicLink" ? yield* fs.readLink(file) : ""
  if (/^\/(?:dev|proc)\//.test(target))
    return yield* refuse(`${shownName(file)} leads to ${shownName(target)}: it is not replaced`)
  const led = yield* Effect.option(fs.stat(file))
  const type = Option.isSome(led) ? led.value.type : there.type
  if (type === "Directory") return yield* refuse(`${shownName(file)} is a directory: name a file in it`)
  // A link that leads nowhere is only a link.
  if (type !== "File" && type !== "SymbolicLink")
    return yield* refuse(`${shownName(file)} is no regular file: it is not replaced`)
  if (!force) return yield* takenPlace(file)
})

/** The files by which a directory is known as a run's, whatever it is called and wherever it lies: two of them are enough. */
const runFiles = [artifactNames.request, artifactNames.session, artifactNames.events]

/** A recording in a run would take the place of what the run is, or stand among its files, of which the list is closed. */
const demandOutside = Effect.fnUntraced(function* (file: string, runRoot: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const standing = (place: string) => fs.realPath(place).pipe(Effect.orElseSucceed(() => place))
  const root = yield* standing(runRoot)
  const parent = yield* standing(path.dirname(file))
  for (let at = parent; ; at = path.dirname(at)) {
    const found = yield* Effect.filter(runFiles, (name) =>
      fs.exists(path.join(at, name)).pipe(Effect.orElseSucceed(() => false))
    )
    if (found.length > 1)
      return yield* refuse(`${shownName(at)} is a run's own directory: name a file outside of it`)
    if (at === root)
      return yield* refuse(`${shownName(at)} is where runs are kept: name a file outside of it`)
    if (at === path.dirname(at)) return
  }
})

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
  const place = force
    ? Effect.andThen(demandReplaceable(file, force), fs.rename(temporary, file))
    : fs.link(temporary, file)
  yield* write.pipe(
    Effect.andThen(place),
    Effect.ensuring(Effect.ignore(fs.remove(temporary, { force: true }))),
    Effect.catchTag(
      "PlatformError",
      Effect.fnUntraced(function* (error) {
        return yield* errnoOf(error) === "EEXIST" ? takenPlace(file) : cannotWrite(file)(error)
      })
    )
  )
})

/** Places of this machine that somebody who gets the file may not expect in it. */
const namesPlaces = (recording: Recording): number => {
  const name = JSON.stringify(recording.request.task.repository).slice(1, -1)
  return recording.entries.filter((entry) => JSON.stringify(entry.event).includes(name)).length
}

const fileOf = (recording: Recording) =>
  Effect.orDie(recordingFile(recording)).pipe(Effect.provide(layerDigest))

export const bundleRun = Effect.fn("cli.bundleRun")(function* (input: BundleInput) {
  const path = yield* Path.Path
  if (!input.asFixture)
    return yield* endWith(2, "bundle needs --as-fixture: that file is the only form it makes")
  const file = path.resolve(input.file)
  yield* Effect.gen(function* () {
    const runRoot = yield* runRootOf(input)
    yield* demandOutside(file, runRoot)
    yield* demandReplaceable(file, input.force).pipe(Effect.catchTag("PlatformError", cannotWrite(file)))
    const recording = yield* recordingOf(input.run).pipe(Effect.provide(layerStore({ runRoot })))
    // Keys stay in their order: the bytes of a request follow the order in which schemas and arguments were kept.
    const content = JSON.stringify(yield* fileOf(recording), null, 2)
    yield* writeWhole(file, `${content}\n`, input.force)
    const { repository } = recording.request.task
    const naming = namesPlaces(recording)
    yield* writeErr(
      `${shownName(file)}: ${recording.entries.length} events of run ${recording.run_id}\n${
        naming === 0 ? "" : `note: ${naming} of them name ${shownName(repository)}, as it was said then\n`
      }`
    )
  }).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({ Refusal: refused, StoreError: refused, SettingsError: refused })
  )
})
