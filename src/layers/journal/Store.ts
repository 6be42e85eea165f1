/**
 * Runs on a file system: one directory per run under a root that only this user can enter.
 */
import type { FileSystem, Path } from "effect"
import { DateTime, Effect, Layer, Stream } from "effect"
import { SecureRandom } from "effect/crypto"
import { isKnownType, storeVersion } from "../../domain/Event.ts"
import type { RunId } from "../../domain/Ids.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { SessionManifest } from "../../domain/Session.ts"
import { RunStore, StoreError, type NewRun, type RunDetails } from "../../services/RunStore.ts"
import { makeBlobs } from "./Adopt.ts"
import * as Bundles from "./Bundles.ts"
import { noHead } from "./Cursor.ts"
import { makeDisk } from "./Disk.ts"
import { inNewDirectory, requestFile, writeDurably } from "./Fill.ts"
import { findPlace } from "./Find.ts"
import * as Fork from "./Fork.ts"
import * as Open from "./Open.ts"
import { entriesOf } from "./Reader.ts"
import { headOf } from "./Witness.ts"
import * as WriterLock from "./WriterLock.ts"
import { manifestFile, openJournal, start } from "./Writer.ts"

export const lockName = ".writer.lock"

export interface StoreOptions {
  /** Made on first use. A relative one starts at the working directory. */
  readonly run_root: string
}

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
      const { path } = disk
      const root = path.resolve(options.run_root)

      const fill = Effect.fnUntraced(function* (directory: string, { created, request, run_id }: NewRun) {
        yield* lock.acquire(path.join(directory, lockName))
        yield* makeBlobs(disk, directory)
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
          head: noHead
        }
        yield* Effect.all(
          [
            writeDurably(disk, path.join(directory, artifactNames.request), requestFile(request)),
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
        inNewDirectory(disk, root, run.run_id, (directory) => fill(directory, run))
      )

      const open = Effect.fn("RunStore.open")(function* (
        run: string,
        wanted: { readonly accept_loss: boolean }
      ) {
        const place = yield* findPlace(disk, root, run)
        yield* lock.acquire(path.join(place.directory, lockName)).pipe(
          Effect.mapError((error) =>
            error.reason === "busy"
              ? new StoreError({
                  reason: "busy",
                  path: error.path,
                  message: `another process is working on run ${place.run_id} (${error.path}): wait for it or stop it`
                })
              : error
          )
        )
        return yield* Open.takeOver(disk, place, { ...wanted, writer_token: yield* random.uuidV4() })
      })

      const fork = Effect.fn("RunStore.fork")(function* (
        run: string,
        wanted: { readonly sequence: number; readonly run_id: RunId }
      ) {
        const source = yield* findPlace(disk, root, run)
        return yield* Fork.fork(disk, root, source, { ...wanted, writer_token: yield* random.uuidV4() })
      })

      const list = Effect.fn("RunStore.list")(
        (wanted: { readonly limit: number; readonly query: string | null }) =>
          Bundles.list(disk, root, wanted)
      )

      const find = Effect.fn("RunStore.find")((run: string) =>
        Effect.flatMap(findPlace(disk, root, run), (place) => Bundles.summariseWhole(disk, place))
      )

      const entries = (run: string) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const { directory, manifest, run_id } = yield* find(run)
            return entriesOf(disk, directory, yield* headOf(disk, directory, run_id, manifest))
          })
        )

      const show = Effect.fn("RunStore.show")(function* (run: string) {
        const summary = yield* find(run)
        const { directory, manifest, run_id } = summary
        const head = yield* headOf(disk, directory, run_id, manifest)
        const read = yield* Stream.runCollect(entriesOf(disk, directory, head))
        const unknown = read.filter((entry) => !isKnownType(entry.event.event_type)).length
        return { ...summary, entries: read, unknown } satisfies RunDetails
      })

      return RunStore.of({
        create,
        open,
        fork,
        entries,
        list,
        unfinished: Bundles.unfinished(disk, root).pipe(Effect.withSpan("RunStore.unfinished")),
        find,
        show
      })
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
