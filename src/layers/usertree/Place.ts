/**
 * Where a repository keeps the records of what was applied to it: in the git directory of its work tree, so that they
 * move with it, are on its disk, and are found whatever run root is in use. Only this user can read them.
 */
import { Effect, Path, Result, Schema } from "effect"
import { ApplyRecord } from "../../domain/ApplyRecord.ts"
import type { GitLocation } from "../git/GitDirectory.ts"
import { directoryMode, type Disk, makeDisk } from "../journal/Disk.ts"
import { explained, failed, refused } from "./Fault.ts"

const recordName = "record.json"
const maxRecordBytes = 64 * 1024 * 1024

export interface Place {
  readonly root: string
  readonly location: GitLocation
  readonly disk: Disk
  /** Holds the records, one directory each. */
  readonly records: string
  readonly lock: string
}

export const placeOf = Effect.fnUntraced(function* (root: string, location: GitLocation) {
  const path = yield* Path.Path
  const home = path.join(location.git_dir, "looplane")
  const place: Place = {
    root,
    location,
    disk: yield* makeDisk,
    records: path.join(home, "applied"),
    lock: path.join(home, "apply.lock")
  }
  return place
})

/** Whether there are records. A place that leads elsewhere is refused: what was planted there is no record of ours. */
export const hasRecords = Effect.fnUntraced(function* ({ disk, records }: Place) {
  for (const directory of [disk.path.dirname(records), records]) {
    const type = yield* disk.typeOf(directory)
    if (type === null) return false
    if (type !== "Directory") return yield* refused(`refused: ${directory} is no directory`)
  }
  return true
})

/** Makes the place, durably. */
export const makePlace = Effect.fnUntraced(function* ({ disk, records }: Place) {
  yield* disk.makeDirectories(records)
})

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(ApplyRecord))

export const directoryOf = ({ disk, records }: Place, id: string): string => disk.path.join(records, id)
export const beforeFile = (place: Place, id: string, at: number): string =>
  place.disk.path.join(directoryOf(place, id), `${at}.before`)
export const afterFile = (place: Place, id: string, at: number): string =>
  place.disk.path.join(directoryOf(place, id), `${at}.after`)

/** Makes the record durable as a whole. */
export const writeRecord = Effect.fnUntraced(function* (place: Place, record: ApplyRecord) {
  const { disk } = place
  const directory = directoryOf(place, record.id)
  const text = `${JSON.stringify(Schema.encodeSync(ApplyRecord)(record), null, 2)}\n`
  yield* disk.replace(disk.path.join(directory, recordName), new TextEncoder().encode(text), {
    synced: true
  })
  yield* disk.syncDirectory(directory)
  yield* disk.syncDirectory(place.records)
})

export const makeRecordDirectory = Effect.fnUntraced(function* (place: Place, id: string) {
  yield* place.disk.fs.makeDirectory(directoryOf(place, id), { mode: directoryMode })
})

/** Removes a record for good: first what makes it one. */
export const removeRecord = Effect.fnUntraced(function* (place: Place, id: string) {
  const { disk } = place
  const directory = directoryOf(place, id)
  yield* disk.fs.remove(disk.path.join(directory, recordName), { force: true })
  yield* disk.fs.remove(directory, { recursive: true, force: true })
})

/** A record that cannot be read is not guessed about: the tree may stand between the old and the new. */
const readRecord = Effect.fnUntraced(function* (place: Place, id: string) {
  const { disk } = place
  const file = disk.path.join(directoryOf(place, id), recordName)
  if ((yield* disk.typeOf(file)) === null) return null
  const bytes = yield* disk.read(file, maxRecordBytes)
  const decoded = bytes === null ? null : decode(new TextDecoder().decode(bytes))
  if (decoded === null || Result.isFailure(decoded) || decoded.success.id !== id) {
    return yield* failed(
      `${file} cannot be read, so an apply that may have been cut off cannot be put right: compare your files with *.before there, then remove ${directoryOf(place, id)}`
    )
  }
  return decoded.success
})

/** Every record, oldest first; the remains of one that never came to be are removed. */
export const readRecords = Effect.fnUntraced(function* (place: Place) {
  const entries = yield* place.disk.fs.readDirectoryEntries(place.records)
  const ids = entries.filter((entry) => entry.type === "Directory").map((entry) => entry.name)
  const records: Array<ApplyRecord> = []
  for (const id of ids.toSorted()) {
    const record = yield* readRecord(place, id)
    if (record === null) yield* removeRecord(place, id)
    else records.push(record)
  }
  return records
})

/** Whole applies that can still be undone. */
const maxKept = 10

/** Forgets the oldest of the whole ones. */
export const prune = Effect.fnUntraced(function* (place: Place) {
  const whole = (yield* readRecords(place)).filter((record) => record.phase === "done")
  yield* Effect.forEach(whole.slice(0, Math.max(0, whole.length - maxKept)), (record) =>
    removeRecord(place, record.id)
  )
})

export const inPlace = (place: Place) => explained("failed", `the records in ${place.records} cannot be used`)
