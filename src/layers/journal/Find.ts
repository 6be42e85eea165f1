/**
 * Which run somebody means.
 */
import { Effect } from "effect"
import { shownName } from "../../domain/Text.ts"
import { StoreError } from "../../services/RunStore.ts"
import { isRunId, last, list, namesIn, placeAt, type Place } from "./Bundles.ts"
import { demandDirectory, type Disk } from "./Disk.ts"
import { documents, valueOf } from "./Documents.ts"
import { invalid } from "./Failure.ts"
import { runIdIn } from "./Manifest.ts"

const missing = (path: string, message: string): StoreError =>
  new StoreError({ reason: "not_found", path, message })

/** The run in a directory of any name, anywhere. */
const atPath = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  yield* demandDirectory(disk, directory)
  const known = yield* runIdIn(disk, directory)
  if (known !== null) return yield* placeAt(disk, directory, known)
  // Its writer died before it had said whose run it is, and nobody has moved it since.
  const name = disk.path.basename(directory)
  const asked = valueOf(yield* documents.request(disk, directory)) !== null
  return asked && isRunId(name) ? yield* placeAt(disk, directory, name) : null
})

const named = Effect.fnUntraced(function* (disk: Disk, root: string, name: string) {
  const exact = disk.path.join(root, name)
  if (isRunId(name) && (yield* disk.typeOf(exact)) !== null) {
    yield* demandDirectory(disk, root)
    yield* demandDirectory(disk, exact)
    return yield* placeAt(disk, exact, name)
  }
  const names = (yield* namesIn(disk, root)).filter((each) => each.startsWith(name)).toSorted()
  const [first, second] = names
  if (first === undefined) return null
  if (second !== undefined)
    return yield* invalid(
      root,
      `${name} is the beginning of ${names.length} runs, among them ${first} and ${second}`
    )
  return yield* placeAt(disk, disk.path.join(root, first), first)
})

/** Directories in which no run was begun, or whose request is gone, are none to go on with, and are named. */
const noLast = Effect.fnUntraced(function* (disk: Disk, root: string) {
  const [newest] = yield* list(disk, root, { limit: 1, query: null })
  if (newest === undefined) return yield* missing(root, `there are no runs in ${shownName(root)}`)
  const { directory, missing: lacks, run_id } = newest
  return yield* missing(
    directory,
    `no run in ${shownName(root)} has its request: run ${run_id} lacks ${lacks.join(", ")} (${shownName(directory)})`
  )
})

/** The place of the run that an id, a unique beginning of one, "last" or a path means. */
export const findPlace = Effect.fnUntraced(function* (
  disk: Disk,
  root: string,
  run: string
): Effect.fn.Return<Place, StoreError> {
  if (run === "last") return (yield* last(disk, root)) ?? (yield* noLast(disk, root))
  const directory = disk.path.resolve(run)
  if (run.includes("/") || run.startsWith("."))
    return (
      (yield* atPath(disk, directory)) ??
      (yield* missing(directory, `there is no run in ${shownName(directory)}`))
    )
  const found = run === "" ? null : yield* named(disk, root, run)
  if (found !== null) return found
  const elsewhere = run !== "" && (yield* disk.typeOf(directory)) === "Directory"
  return (
    (elsewhere ? yield* atPath(disk, directory) : null) ??
    (yield* run.endsWith(".json")
      ? missing(directory, `there is no file ${shownName(directory)}`)
      : missing(root, `no run ${shownName(run)} in ${shownName(root)}`))
  )
})
