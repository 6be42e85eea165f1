/**
 * What an end of a run left beside its journal, when that end is the run's no more.
 */
import { Effect } from "effect"
import { artifactNames } from "../../domain/Result.ts"
import type { Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"

const { patch, receipt, result, test_log, verification } = artifactNames

/** Removes it. The result first: a bundle without one is unfinished, so nothing of it can be taken for what comes. */
export const removeEvidence = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  for (const names of [[result], [receipt, patch, verification, test_log]]) {
    const files = names.map((name) => disk.path.join(directory, name))
    const types = yield* Effect.forEach(files, disk.typeOf)
    if (types.every((type) => type === null)) continue
    for (const file of files) yield* disk.fs.remove(file, { force: true }).pipe(failAt(file))
    yield* disk.syncDirectory(directory)
  }
})

/** `receipt.lost.json`, and `receipt.lost-2.json` for the second time. */
const asideName = (disk: Disk, name: string, time: number): string => {
  const { ext, name: stem } = disk.path.parse(name)
  return `${stem}.lost${time === 1 ? "" : `-${time}`}${ext}`
}

/**
 * Puts it aside under names that are free. Of what was begun to be put aside and not ended the rest gets the same number.
 * The receipt goes last: as long as it is there, everybody is told that events were lost.
 */
export const keepEvidence = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  const at = (name: string) => disk.path.join(directory, name)
  const isThere = (name: string) => Effect.map(disk.typeOf(at(name)), (type) => type !== null)
  const isTaken = (names: ReadonlyArray<string>, time: number) =>
    Effect.map(
      Effect.filter(names, (name) => isThere(asideName(disk, name, time))),
      (taken) => taken.length > 0
    )
  const all = [result, patch, verification, test_log, receipt]
  const found = yield* Effect.filter(all, isThere)
  let time = 1
  while (yield* isTaken(all, time + 1)) time++
  if (yield* isTaken(found, time)) time++
  for (const name of found) {
    yield* disk.fs.rename(at(name), at(asideName(disk, name, time))).pipe(failAt(at(name)))
    yield* disk.syncDirectory(directory)
  }
})
