/**
 * A directory for a run that is to begin, and its first files.
 */
import { Effect, Exit, Schema } from "effect"
import type { RunId } from "../../domain/Ids.ts"
import { RunRequest } from "../../domain/Request.ts"
import { StoreError } from "../../services/RunStore.ts"
import { demandDirectory, directoryMode, type Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"

const claim = Effect.fnUntraced(function* (disk: Disk, root: string, run_id: RunId) {
  yield* disk.makeDirectories(root)
  yield* demandDirectory(disk, root)
  const directory = disk.path.join(root, run_id)
  yield* disk.fs.makeDirectory(directory, { mode: directoryMode }).pipe(
    failAt(directory),
    Effect.mapError((error) =>
      error.reason === "exists"
        ? new StoreError({
            reason: "exists",
            path: error.path,
            message: `there is already a run ${run_id} in ${root}`
          })
        : error
    )
  )
  return directory
})

/** Makes a run's directory and lets it be filled. Half a bundle is no run: one that cannot be filled is removed again. */
export const inNewDirectory = <A, R>(
  disk: Disk,
  root: string,
  run_id: RunId,
  fill: (directory: string) => Effect.Effect<A, StoreError, R>
): Effect.Effect<A, StoreError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(claim(disk, root, run_id), (directory) =>
      restore(fill(directory)).pipe(
        // Why it could not be filled matters more than whether it could be removed.
        Effect.onExit((exit) =>
          Exit.isSuccess(exit)
            ? Effect.void
            : Effect.ignore(disk.fs.remove(directory, { recursive: true, force: true }))
        )
      )
    )
  )

/** Writes a file that is not there yet; its name is durable with the directory. */
export const writeDurably = (disk: Disk, file: string, content: Uint8Array) =>
  Effect.scoped(
    Effect.flatMap(disk.open(file, "wx"), (handle) =>
      Effect.andThen(handle.writeAll(content), handle.sync).pipe(failAt(file))
    )
  )

export const requestFile = (request: RunRequest): Uint8Array =>
  new TextEncoder().encode(`${JSON.stringify(Schema.encodeSync(RunRequest)(request), null, 2)}\n`)
