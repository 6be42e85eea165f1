/**
 * A fork takes in the history that it begins with. Afterwards it is a bundle like any other and needs its source no more.
 */
import { Effect } from "effect"
import type { Digest } from "../../domain/Ids.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { StoreError } from "../../services/RunStore.ts"
import { joinFiles, takeOver } from "./Copy.ts"
import type { Head } from "./Cursor.ts"
import { demandDirectory, directoryMode, type Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"
import { openHistory } from "./Reader.ts"

/** Object stores, which the journal's trees are kept in, and what set-up installed, which can be installed again. */
const directories = [
  { name: "git", synced: true },
  { name: "modules", synced: true },
  { name: "deps", synced: false }
] as const

/** The directory of a run's blobs. Through a link that somebody put there they would be written elsewhere. */
export const makeBlobs = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  const blobs = disk.path.join(directory, "blobs")
  if ((yield* disk.typeOf(blobs)) !== null) yield* demandDirectory(disk, blobs)
  else yield* disk.fs.makeDirectory(blobs, { mode: directoryMode }).pipe(failAt(blobs))
  return blobs
})

/**
 * Makes the journal of a fork begin with its first event. What it cites is copied before, and the journal changes last
 * and at once: whoever is stopped on the way starts over. The lock of the fork is held; its source may be written
 * meanwhile.
 */
export const adopt = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  head: Head | null
): Effect.fn.Return<void, StoreError> {
  const { path } = disk
  const blobs = yield* makeBlobs(disk, directory)
  const onBlob = Effect.fnUntraced(function* (hash: Digest, bytes: Uint8Array) {
    const file = path.join(blobs, hash)
    const found = yield* disk.read(file, bytes.length)
    // One of this name and length was durable before it got its name.
    if (found?.length !== bytes.length) yield* disk.replace(file, bytes, { synced: true })
  })
  const parts = yield* Effect.scoped(
    Effect.gen(function* () {
      const history = yield* openHistory(disk, directory, { head, onBlob })
      while ((yield* history.next) !== null);
      return history.parts()
    })
  )
  yield* disk.syncDirectory(blobs)
  const [root] = parts
  if (root !== undefined)
    for (const { name, synced } of directories) yield* takeOver(disk, name, root.directory, directory, synced)
  const sources = parts.map(({ directory, mark }) => ({
    file: path.join(directory, artifactNames.events),
    length: mark.offset
  }))
  yield* joinFiles(disk, sources, path.join(directory, artifactNames.events))
})
