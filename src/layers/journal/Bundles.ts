/**
 * What a run root holds, from its small files alone: no listing ever reads a journal.
 */
import { Effect, Option, Record, Schema, Stream } from "effect"
import { RunId } from "../../domain/Ids.ts"
import { artifactNames, type ArtifactKey } from "../../domain/Result.ts"
import type { RunSummary, StoreError } from "../../services/RunStore.ts"
import { demandDirectory, type Disk } from "./Disk.ts"
import { documents, valueOf, type Document } from "./Documents.ts"
import { failAt, whyOf } from "./Failure.ts"

const concurrency = 8

/** A run's directory. */
export interface Place {
  readonly run_id: RunId
  readonly directory: string
  readonly modified_ms: number
}

export const isRunId = Schema.is(RunId)

/** Names of directories that are named like a run, never through a symbolic link. */
export const namesIn = Effect.fnUntraced(function* (disk: Disk, root: string) {
  const type = yield* disk.typeOf(root)
  if (type === null) return []
  yield* demandDirectory(disk, root)
  const entries = yield* disk.fs.readDirectoryEntries(root).pipe(failAt(root))
  return entries
    .filter((entry) => entry.type === "Directory")
    .map((entry) => entry.name)
    .filter(isRunId)
})

export const placeAt = Effect.fnUntraced(function* (disk: Disk, directory: string, run_id: RunId) {
  const info = yield* disk.fs.lstat(directory).pipe(failAt(directory))
  const modified_ms = Option.match(info.mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
  return { run_id, directory, modified_ms } satisfies Place
})

/** Newest first, by the last change of a bundle's files. */
const placesIn = Effect.fnUntraced(function* (disk: Disk, root: string) {
  const names = yield* namesIn(disk, root)
  const places = yield* Effect.forEach(
    names,
    (name) => Effect.option(placeAt(disk, disk.path.join(root, name), name)),
    { concurrency: concurrency * 2 }
  )
  return places
    .flatMap(Option.toArray)
    .toSorted((a, b) => b.modified_ms - a.modified_ms || (a.run_id < b.run_id ? 1 : -1))
})

/** A file that cannot be read ends no listing. */
const tried = <A>(read: Effect.Effect<Document<A>, StoreError>): Effect.Effect<Document<A>> =>
  read.pipe(Effect.catch((error) => Effect.succeed<Document<A>>({ _tag: "Failed", error })))

const present = (disk: Disk, directory: string, key: ArtifactKey) =>
  tried(
    Effect.map(disk.typeOf(disk.path.join(directory, artifactNames[key])), (type): Document<null> =>
      type === "File" ? { _tag: "Read", value: null } : { _tag: "Unreadable" }
    )
  )

interface Summarised {
  readonly summary: RunSummary
  /** Why what the run is, or whether it has ended, is not known. */
  readonly failure: StoreError | null
}

/** Demanded of every bundle, whatever its result says. */
const essential: ReadonlySet<ArtifactKey> = new Set(["request", "session", "events", "result"])

const summaryOf = Effect.fnUntraced(function* (
  disk: Disk,
  { directory, modified_ms, run_id }: Place
): Effect.fn.Return<Summarised> {
  const found = yield* Effect.all({
    request: tried(documents.request(disk, directory)),
    session: tried(documents.session(disk, directory)),
    events: present(disk, directory, "events"),
    checkpoint: tried(documents.checkpoint(disk, directory)),
    verification: tried(documents.verification(disk, directory)),
    test_log: present(disk, directory, "test_log"),
    patch: present(disk, directory, "patch"),
    receipt: tried(documents.receipt(disk, directory)),
    result: tried(documents.result(disk, directory))
  } satisfies Record<ArtifactKey, unknown>)
  const result = valueOf(found.result)
  // What a bundle has to have is said by the version that wrote it.
  const demanded = (key: ArtifactKey): boolean =>
    result === null || essential.has(key) || Object.hasOwn(result.artifacts, key)
  const missing = Record.keys(artifactNames).flatMap((key) => {
    const file = found[key]
    if (file._tag === "Newer") return [`${artifactNames[key]} (written by a newer version: ${file.version})`]
    if (file._tag === "Failed" && demanded(key)) return [`${artifactNames[key]} (${whyOf(file.error)})`]
    return file._tag === "Unreadable" && demanded(key) ? [artifactNames[key]] : []
  })
  const failure = [found.request, found.session, found.result].find((file) => file._tag === "Failed")
  return {
    failure: failure?.error ?? null,
    summary: {
      run_id,
      directory,
      modified_ms,
      manifest: valueOf(found.session),
      request: valueOf(found.request),
      result,
      missing
    }
  }
})

/** What can be told of a run, whatever of it cannot be read. */
export const summarise = (disk: Disk, place: Place): Effect.Effect<RunSummary> =>
  Effect.map(summaryOf(disk, place), ({ summary }) => summary)

/** The same of the one run that is meant: what it is and whether it has ended must not stay unknown. */
export const summariseWhole = Effect.fnUntraced(function* (
  disk: Disk,
  place: Place
): Effect.fn.Return<RunSummary, StoreError> {
  const { failure, summary } = yield* summaryOf(disk, place)
  return failure === null ? summary : yield* failure
})

/** What a query is looked for in: the id, the task and where it ran, and how it ended. */
const matches = Effect.fnUntraced(function* (disk: Disk, { directory, run_id }: Place, query: string) {
  const wanted = query.toLowerCase()
  const holds = (text: string) => text.toLowerCase().includes(wanted)
  if (holds(run_id)) return true
  const request = valueOf(yield* tried(documents.request(disk, directory)))
  if (request !== null && (holds(request.task.instruction) || holds(request.task.repository))) return true
  const result = valueOf(yield* tried(documents.result(disk, directory)))
  return result !== null && (holds(result.terminal_reason) || holds(result.summary))
})

/** The newest places that pass, looked at only as far as they are needed. */
const newest = Effect.fnUntraced(function* (
  disk: Disk,
  root: string,
  limit: number,
  passes: (place: Place) => Effect.Effect<boolean>
) {
  return yield* Stream.fromIterable(yield* placesIn(disk, root)).pipe(
    Stream.rechunk(1),
    Stream.mapEffect(
      (place) => Effect.map(passes(place), (yes) => (yes ? Option.some(place) : Option.none())),
      {
        concurrency
      }
    ),
    Stream.filter(Option.isSome),
    Stream.map((some) => some.value),
    Stream.take(limit),
    Stream.runCollect
  )
})

export const list = Effect.fnUntraced(function* (
  disk: Disk,
  root: string,
  { limit, query }: { readonly limit: number; readonly query: string | null }
) {
  const places = yield* newest(disk, root, limit, (place) =>
    query === null ? Effect.succeed(true) : matches(disk, place, query)
  )
  return yield* Effect.forEach(places, (place) => summarise(disk, place), { concurrency })
})

/** The newest directory in which a run was begun. */
export const last = Effect.fnUntraced(function* (disk: Disk, root: string) {
  const [place] = yield* newest(disk, root, 1, ({ directory }) =>
    Effect.map(present(disk, directory, "request"), (file) => file._tag === "Read")
  )
  return place ?? null
})

/** The newest run that was begun and has no result. Whatever cannot be told apart from a finished one is none. */
export const unfinished = Effect.fnUntraced(function* (disk: Disk, root: string) {
  const [place] = yield* newest(disk, root, 1, ({ directory }) =>
    Effect.gen(function* () {
      if ((yield* tried(documents.result(disk, directory)))._tag !== "Unreadable") return false
      return (yield* tried(documents.request(disk, directory)))._tag === "Read"
    })
  )
  return place === undefined ? null : yield* summarise(disk, place)
})
