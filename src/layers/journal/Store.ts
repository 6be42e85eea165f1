/**
 * Runs on a file system: one directory per run under a root that only this user can enter.
 */
import type { FileSystem, Path } from "effect"
import { DateTime, Effect, Exit, Layer, Schema, Stream } from "effect"
import { SecureRandom } from "effect/crypto"
import { isKnownType, storeVersion } from "../../domain/Event.ts"
import type { RunId } from "../../domain/Ids.ts"
import { noLine } from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import { RunRequest } from "../../domain/Request.ts"
import { RunStore, StoreError, type NewRun, type RunDetails } from "../../services/RunStore.ts"
import * as Bundles from "./Bundles.ts"
import { demandDirectory, directoryMode, makeDisk, type Disk } from "./Disk.ts"
import { failAt } from "./Failure.ts"
import { readJournal } from "./Reader.ts"
import * as WriterLock from "./WriterLock.ts"
import { manifestFile, openJournal, start } from "./Writer.ts"

export const lockName = ".writer.lock"

export interface StoreOptions {
  /** Made on first use. A relative one starts at the working directory. */
  readonly run_root: string
}

const claimDirectory = Effect.fnUntraced(function* (disk: Disk, root: string, run_id: RunId) {
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

const writeDurably = (disk: Disk, file: string, content: Uint8Array) =>
  Effect.scoped(
    Effect.flatMap(disk.open(file, "wx"), (handle) =>
      Effect.andThen(handle.writeAll(content), handle.sync).pipe(failAt(file))
    )
  )

/** The store, with the lock of the context. */
const layerWithLock = (
  options: StoreOptions
): Layer.Layer<
  RunStore,
  never,
  FileSystem.FileSystem | Path.Path | SecureRandom.SecureRandom | WriterLock.WriterLock
> =>
  Layer.effect(
    RunStore,
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const random = yield* SecureRandom.SecureRandom
      const lock = yield* WriterLock.WriterLock
      const { fs, path } = disk
      const root = path.resolve(options.run_root)

      const fill = Effect.fnUntraced(function* (directory: string, { created, request, run_id }: NewRun) {
        yield* lock.acquire(path.join(directory, lockName))
        const blobs = path.join(directory, "blobs")
        yield* fs.makeDirectory(blobs, { mode: directoryMode }).pipe(failAt(blobs))
        const { base_sha, model, prompt_version, provider } = created
        const manifest: SessionManifest = {
          schema_version: 1,
          run_id,
          provider,
          model,
          prompt_version,
          base_sha,
          created_at: DateTime.formatIso(yield* DateTime.now),
          writer_token: yield* random.uuidV4(),
          head: { sequence: -1, hash: noLine }
        }
        const requestFile = new TextEncoder().encode(
          `${JSON.stringify(Schema.encodeSync(RunRequest)(request), null, 2)}\n`
        )
        yield* Effect.all(
          [
            writeDurably(disk, path.join(directory, artifactNames.request), requestFile),
            writeDurably(disk, path.join(directory, artifactNames.session), manifestFile(manifest))
          ],
          { concurrency: 2, discard: true }
        )
        const journal = yield* openJournal({ disk, directory, manifest, from: start, flag: "ax" })
        yield* Effect.all([disk.syncDirectory(directory), disk.syncDirectory(root)], {
          concurrency: 2,
          discard: true
        })
        yield* journal.append({
          event_type: "run.created",
          data: { run_id, ...created, store_version: storeVersion }
        })
        return journal
      })

      const create = Effect.fn("RunStore.create")((run: NewRun) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(claimDirectory(disk, root, run.run_id), (directory) =>
            restore(fill(directory, run)).pipe(
              // Half a bundle is no run. Why it could not be filled matters more than whether it could be removed.
              Effect.onExit((exit) =>
                Exit.isSuccess(exit)
                  ? Effect.void
                  : Effect.ignore(fs.remove(directory, { recursive: true, force: true }))
              )
            )
          )
        )
      )

      const list = Effect.fn("RunStore.list")(
        (wanted: { readonly limit: number; readonly query: string | null }) =>
          Bundles.list(disk, root, wanted)
      )

      const show = Effect.fn("RunStore.show")(function* (idOrPrefix: string) {
        const summary = yield* Bundles.find(disk, root, idOrPrefix)
        const head = summary.manifest?.head ?? null
        const entries = yield* readJournal(disk, summary.directory, head).pipe(
          Stream.filter((item) => item._tag === "Entry"),
          Stream.map(({ created_at, event, sequence }) => ({ sequence, created_at, event })),
          Stream.runCollect
        )
        const unknown = entries.filter((entry) => !isKnownType(entry.event.event_type)).length
        return { ...summary, entries, unknown } satisfies RunDetails
      })

      return RunStore.of({ create, list, show })
    })
  )

/** The store, with a lock that the kernel frees. */
export const layer = (
  options: StoreOptions
): Layer.Layer<RunStore, never, FileSystem.FileSystem | Path.Path | SecureRandom.SecureRandom> =>
  Layer.provide(layerWithLock(options), WriterLock.layer)

/** The store on a file system that only this process sees. */
export const layerMemory = (
  options: StoreOptions
): Layer.Layer<RunStore, never, FileSystem.FileSystem | Path.Path | SecureRandom.SecureRandom> =>
  Layer.provide(layerWithLock(options), WriterLock.layerMemory)
