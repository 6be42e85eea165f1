/**
 * The writing side of a run: lines are collected, their blobs come first, and a barrier makes everything durable.
 */
import { DateTime, Effect, type FileSystem, Schema, Semaphore, type Scope } from "effect"
import type { JournalEntry, RunEvent } from "../../domain/Event.ts"
import type { Digest } from "../../domain/Ids.ts"
import { encodeLine, noLine, type Blob } from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import { initial, reduce, type RunState } from "../../domain/Run.ts"
import { Checkpoint, SessionManifest } from "../../domain/Session.ts"
import { Observer } from "../../services/Observer.ts"
import { StoreError, type Journal } from "../../services/RunStore.ts"
import { demandDirectory, type Disk } from "./Disk.ts"
import { documents, valueOf } from "./Documents.ts"
import { damaged, failAt, invalid } from "./Failure.ts"
import { sha256 } from "./Hash.ts"
import { chainEnd } from "./Sound.ts"

/** Lines and blobs that wait for the next barrier take at most about this much memory. */
const maxBuffered = 64 * 1024

const encoder = new TextEncoder()
const jsonFile = (value: unknown): Uint8Array => encoder.encode(`${JSON.stringify(value, null, 2)}\n`)
export const manifestFile = (manifest: SessionManifest): Uint8Array =>
  jsonFile(Schema.encodeSync(SessionManifest)(manifest))

/** Files that a program may write; the store keeps the others itself. */
const writable: ReadonlySet<string> = new Set([
  artifactNames.verification,
  artifactNames.test_log,
  artifactNames.patch,
  artifactNames.receipt,
  artifactNames.result
])

/** Where a journal stands: the last line, and the state that all of them make. */
export interface Position {
  readonly sequence: number
  readonly hash: Digest
  readonly state: RunState
}
export const start: Position = { sequence: -1, hash: noLine, state: initial }

/** Watching never changes a run, so a watcher's bug ends with the watcher. */
const unharmed = Effect.catchDefect((defect) => Effect.logWarning("an observer of the run broke", defect))

/**
 * Opens the journal of a run whose lock is held, behind `from`. The first failure to write is final: what a disk kept of
 * a failed write is not known, so every later call fails with the same error.
 */
export const openJournal = Effect.fnUntraced(function* (options: {
  readonly disk: Disk
  readonly directory: string
  readonly manifest: SessionManifest
  readonly from: Position
  readonly flag: FileSystem.OpenFlag
}): Effect.fn.Return<Journal, StoreError, Scope.Scope> {
  const { directory, disk, manifest } = options
  const { path } = disk
  const observer = yield* Observer
  const manifestPath = path.join(directory, artifactNames.session)
  const logPath = path.join(directory, artifactNames.events)
  const blobPath = path.join(directory, "blobs")
  const log = yield* disk.open(logPath, options.flag)
  const turn = yield* Semaphore.make(1)
  const fileTurn = yield* Semaphore.make(1)

  let at = options.from
  let synced = options.from
  let lines: Array<Uint8Array> = []
  let blobs = new Map<Digest, Uint8Array>()
  let buffered = 0
  /** What this writer put into blobs, by hash: their lengths. */
  const stored = new Map<Digest, number>()
  let broken: StoreError | null = null

  const writing = <A>(write: Effect.Effect<A, StoreError>) =>
    Effect.suspend(() => (broken === null ? write : Effect.fail(broken))).pipe(
      Effect.tapError((error) =>
        Effect.sync(() => {
          broken ??= error
        })
      )
    )

  const fenced = Effect.gen(function* () {
    const found = valueOf(yield* documents.session(disk, directory))
    if (found?.writer_token === manifest.writer_token) return
    return yield* new StoreError({
      reason: "busy",
      path: manifestPath,
      message: `another process has taken over this run, or its files are gone (${manifestPath})`
    })
  })

  const storeBlobs = Effect.gen(function* () {
    if (blobs.size === 0) return
    yield* demandDirectory(disk, blobPath)
    yield* Effect.forEach(
      blobs,
      ([hash, bytes]) =>
        Effect.gen(function* () {
          const file = path.join(blobPath, hash)
          // A blob of this name and length was synced before it got its name.
          const found = yield* disk.fs.lstat(file).pipe(Effect.option)
          if (
            found._tag === "Some" &&
            found.value.type === "File" &&
            Number(found.value.size) === bytes.length
          )
            return
          yield* disk.replace(file, bytes, { synced: true })
        }),
      { concurrency: 4, discard: true }
    )
    yield* disk.syncDirectory(blobPath)
    for (const [hash, bytes] of blobs) stored.set(hash, bytes.length)
    blobs = new Map()
  })

  const flush = Effect.gen(function* () {
    if (lines.length === 0) return
    yield* fenced
    yield* storeBlobs
    yield* log.writeAll(Buffer.concat(lines)).pipe(failAt(logPath))
    lines = []
    buffered = 0
  })

  const sync = Effect.gen(function* () {
    if (synced.sequence === at.sequence) return
    yield* flush
    yield* log.sync.pipe(failAt(logPath))
    const head = { sequence: at.sequence, hash: at.hash }
    yield* disk.replace(manifestPath, manifestFile({ ...manifest, head }), { synced: false })
    synced = at
  })

  const keepBlobs = (found: ReadonlyArray<Blob>) => {
    for (const { bytes, hash } of found) {
      if (stored.has(hash) || blobs.has(hash)) continue
      blobs.set(hash, bytes)
      buffered += bytes.length
    }
  }

  const add = Effect.fnUntraced(function* (event: RunEvent) {
    const created_at = DateTime.formatIso(yield* DateTime.now)
    const header = { sequence: at.sequence + 1, previous: at.hash, created_at }
    const { blobs: found, line } = yield* Effect.fromResult(encodeLine(sha256, header, event)).pipe(
      Effect.mapError(
        (cause) =>
          new StoreError({
            reason: "invalid",
            path: logPath,
            message: `not an event of a journal: ${event.event_type}`,
            cause
          })
      )
    )
    lines.push(line)
    buffered += line.length
    keepBlobs(found)
    at = { sequence: header.sequence, hash: sha256(line), state: reduce(at.state, event) }
    if (buffered > maxBuffered) yield* flush
    return { version: 1, ...header, event } satisfies JournalEntry
  })

  const append = Effect.fn("Journal.append")((event: RunEvent) =>
    Effect.uninterruptibleMask((restore) =>
      turn.withPermit(
        // A watcher that hangs may be interrupted: the line that it hears of is whole by then.
        Effect.tap(writing(add(event)), (entry) => restore(observer.entry(entry)).pipe(unharmed))
      )
    )
  )
  const barrier = Effect.uninterruptible(turn.withPermit(writing(sync))).pipe(
    Effect.withSpan("Journal.barrier")
  )

  const replaceDurably = (file: string, content: Uint8Array) =>
    Effect.uninterruptible(
      fileTurn.withPermit(
        Effect.andThen(disk.replace(file, content, { synced: true }), disk.syncDirectory(directory))
      )
    )
  const checkpoint = Effect.suspend(() => {
    const { hash, sequence, state } = synced
    const { step, tree, usage } = state
    const content = Schema.encodeSync(Checkpoint)({ sequence, head: hash, step, tree, usage })
    return Effect.andThen(
      fenced,
      replaceDurably(path.join(directory, artifactNames.checkpoint), jsonFile(content))
    )
  }).pipe(Effect.withSpan("Journal.checkpoint"))
  const written = new Map<string, { readonly hash: Digest; readonly size: number }>()
  const changed = (file: string) =>
    damaged(
      file,
      `something else changed ${file} while the run was working: its evidence cannot be handed over`
    )

  /**
   * A result vouches for the bundle around it. Where nothing contains commands, a check can write here as well: the
   * result is announced only beside a journal and files that still are what this writer made them. Lines of before are
   * held by the chain; the blobs that they need were read when the run was opened.
   */
  const sound = Effect.gen(function* () {
    yield* barrier
    if ((yield* chainEnd(disk, directory)) !== synced.hash) return yield* changed(logPath)
    const files = [
      ...[...stored].map(([hash, size]) => ({ file: path.join(blobPath, hash), hash, size })),
      ...[...written].map(([file, { hash, size }]) => ({ file, hash, size }))
    ]
    for (const { file, hash, size } of files) {
      const bytes = yield* disk.read(file, size)
      if (bytes === null || sha256(bytes) !== hash) return yield* changed(file)
    }
  })

  const writeFile = Effect.fn("Journal.writeFile")(function* (name: string, content: string | Uint8Array) {
    const file = path.join(directory, name)
    if (!writable.has(name))
      return yield* invalid(file, `not a file that a run leaves in its bundle: ${name}`)
    const bytes = typeof content === "string" ? encoder.encode(content) : content
    yield* fenced
    if (name === artifactNames.result) yield* sound
    yield* replaceDurably(file, bytes)
    written.set(file, { hash: sha256(bytes), size: bytes.length })
  })

  // A program ends with a barrier. When it was interrupted before one, what it said is still worth keeping.
  yield* Effect.addFinalizer(() =>
    broken === null
      ? barrier.pipe(Effect.catch((error) => Effect.logWarning("the journal's last lines are lost", error)))
      : Effect.void
  )

  return {
    run_id: manifest.run_id,
    directory,
    append,
    barrier,
    rendezvous: barrier,
    state: Effect.sync(() => at.state),
    checkpoint,
    head: Effect.sync(() => ({ sequence: synced.sequence, hash: synced.hash })),
    writeFile
  }
})
