/**
 * The way back: of an apply that failed, of one that was cut off, and of one that the user undoes. Every step may be
 * taken again, so that being cut off here is no harm either.
 */
import { Effect } from "effect"
import { type ApplyRecord, remedyOf } from "../../domain/ApplyRecord.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import type { Recovery } from "../../services/UserTree.ts"
import { makeDirectoryOnce, removeIfEmpty } from "../fs/Files.ts"
import { explained, reached } from "./Fault.ts"
import { land, landingOf, unland } from "./Land.ts"
import { beforeFile, directoryOf, type Place, readRecords, removeRecord, writeRecord } from "./Place.ts"
import { findAll, put, standingAt, sweep, syncDirectories } from "./Standing.ts"

/** Takes one path from `after` to `before`, unless it is there. */
const putPathBack = Effect.fnUntraced(function* (place: Place, record: ApplyRecord, at: number) {
  const file = record.files[at]
  if (file === undefined) return
  const { disk, root } = place
  const target = disk.path.join(root, file.path)
  if (file.before.kind === "absent") {
    const standing = yield* standingAt(place, file.path)
    if (standing !== null && standing.kind !== "absent") yield* disk.fs.remove(target)
    return
  }
  const source = beforeFile(place, record.id, at)
  // Gone from the record: it is back where it belongs.
  if ((yield* disk.typeOf(source)) === null) return
  const modes = new Map(record.emptied.map(({ mode, path }) => [path, mode]))
  for (const parent of parentsOf(file.path)) {
    const directory = disk.path.join(root, parent)
    const made = yield* makeDirectoryOnce(directory)
    const mode = modes.get(parent)
    // Whatever the umask would have made of it.
    if (made && mode !== undefined) yield* disk.fs.chmod(directory, mode)
  }
  yield* put(place, source, file.path, record.id, at)
})

/** Puts back what is at `after`, and keeps the record only where something foreign stays. */
const putAllBack = Effect.fnUntraced(function* (
  place: Place,
  record: ApplyRecord,
  foreign: ReadonlyArray<string>
) {
  const found = yield* findAll(place, record)
  const all = record.files.map((file, at) => ({ file, at }))
  const mine = all.filter(({ file }) => found(file.path) === "after")
  const step = Effect.fnUntraced(function* ({ at, file }: (typeof all)[number]) {
    yield* reached(`put back ${at}`)
    yield* putPathBack(place, record, at).pipe(
      Effect.mapError(
        explained(
          "failed",
          `${file.path} cannot be put back (what it was is kept in ${directoryOf(place, record.id)}; the next looplane apply here tries again)`
        )
      )
    )
  })
  // What the apply added goes first: a directory of it may stand where a file was.
  yield* Effect.forEach(mine.filter(({ file }) => file.before.kind === "absent").toReversed(), step)
  for (const directory of record.made.toReversed())
    yield* removeIfEmpty(place.disk.path.join(place.root, directory))
  yield* Effect.forEach(
    mine.filter(({ file }) => file.before.kind !== "absent"),
    step
  )
  yield* sweep(place, record)
  yield* reached("put back all")
  yield* syncDirectories(place, record)
  if (foreign.length > 0) yield* writeRecord(place, { ...record, phase: "left" })
  else yield* removeRecord(place, record.id)
})

/** The way back of an apply that failed here and now, once it had written the paths of these numbers. */
export const goBack = Effect.fnUntraced(function* (
  place: Place,
  record: ApplyRecord,
  written: ReadonlySet<number>
) {
  const found = yield* findAll(place, record)
  // What was never written is the user's own work in progress, and no copy of it is needed.
  const foreign = record.files
    .filter(({ path }, at) => written.has(at) && found(path) === "foreign")
    .map(({ path }) => path)
  yield* putAllBack(place, record, foreign)
})

/** What an apply that was cut off calls for, its commit included. */
const remedyFor = Effect.fnUntraced(function* (place: Place, record: ApplyRecord) {
  const { onto } = record
  const remedy = remedyOf(record, yield* findAll(place, record))
  if (onto === undefined || record.phase !== "prepared") return { remedy, landing: null }
  const landing = yield* landingOf(place, onto)
  // On its branch it is the user's own history, and what stands at its paths is the user's again.
  if (landing === "landed" || landing === "taken") return { remedy: { _tag: "Finish" } as const, landing }
  const foreign = remedy._tag === "GoBack" ? remedy.foreign : []
  return landing === "ready" ? { remedy, landing } : { remedy: { _tag: "GoBack", foreign } as const, landing }
})

/** Puts an apply that is not whole right: everything as it was, or everything as it should have become. */
export const putRight = Effect.fnUntraced(
  function* (place: Place, record: ApplyRecord) {
    const { onto, run_id } = record
    const { landing, remedy } = yield* remedyFor(place, record)
    switch (remedy._tag) {
      case "Finish": {
        yield* syncDirectories(place, record)
        if (onto !== undefined && landing === "ready") yield* land(place, run_id, onto)
        const commit = onto === undefined || landing === "taken" ? null : onto.commit
        yield* writeRecord(place, { ...record, phase: "done", commit })
        const outcome = commit === null ? "finished" : "committed"
        const recovery: Recovery = { run_id, outcome, foreign: [], saved: null }
        return recovery
      }
      case "GoBack": {
        const { foreign } = remedy
        if (onto !== undefined) yield* unland(place, run_id, onto)
        yield* putAllBack(place, record, foreign)
        const recovery: Recovery = {
          run_id: record.run_id,
          outcome: "put_back",
          foreign,
          saved: foreign.length > 0 ? directoryOf(place, record.id) : null
        }
        return recovery
      }
    }
  },
  (effect, place) =>
    Effect.mapError(
      effect,
      explained("failed", `an apply that was cut off in ${place.root} cannot be put right`)
    )
)

/** Puts right whatever was cut off here. */
export const recover = Effect.fnUntraced(function* (place: Place) {
  const open = (yield* readRecords(place)).filter(({ phase }) => phase === "prepared" || phase === "undoing")
  return yield* Effect.uninterruptible(
    // The newest first: an older one began from before it.
    Effect.forEach(open.toReversed(), (record) => putRight(place, record))
  )
})

/** Puts a whole apply back. Returns the paths that are no longer what it left; then nothing was written. */
export const undo = Effect.fnUntraced(function* (place: Place, record: ApplyRecord) {
  const found = yield* findAll(place, record)
  const changed = record.files.map((file) => file.path).filter((path) => found(path) !== "after")
  if (changed.length > 0) return changed
  const undoing: ApplyRecord = { ...record, phase: "undoing" }
  yield* Effect.uninterruptible(
    Effect.gen(function* () {
      yield* reached("undo")
      yield* writeRecord(place, undoing)
      yield* putAllBack(place, undoing, [])
    })
  )
  return []
})
