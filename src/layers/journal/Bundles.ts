/**
 * What a run root holds, from its small files alone: no listing ever reads a journal.
 */
import { Effect, Option, Record, Result, Schema, Stream } from "effect"
import { RunId } from "../../domain/Ids.ts"
import { artifactNames, CheckOutcome, RunResult, type ArtifactKey } from "../../domain/Result.ts"
import { Checkpoint, SessionManifest } from "../../domain/Session.ts"
import { RunRequest } from "../../domain/Request.ts"
import { StoreError, type RunSummary } from "../../services/RunStore.ts"
import { demandDirectory, type Disk } from "./Disk.ts"
import { failAt, invalid } from "./Failure.ts"

/** Of one JSON file that a listing reads, in bytes: a longer one counts as unreadable. */
const maxJsonBytes = 16 * 1024 * 1024
const concurrency = 8

interface Candidate {
  readonly name: RunId
  readonly directory: string
  readonly modified_ms: number
}

const json = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownResult(Schema.fromJsonString(schema))
  return (bytes: Uint8Array): S["Type"] | null =>
    Result.getOrElse(decode(new TextDecoder().decode(bytes)), () => null)
}
const parse = {
  request: json(RunRequest),
  session: json(SessionManifest),
  checkpoint: json(Checkpoint),
  verification: json(Schema.Array(CheckOutcome)),
  result: json(RunResult)
}

const isRunId = Schema.is(RunId)

/** Directories that are named like a run, never through a symbolic link. */
const candidates = Effect.fnUntraced(function* (disk: Disk, root: string) {
  const type = yield* disk.typeOf(root)
  if (type === null) return []
  yield* demandDirectory(disk, root)
  const entries = yield* disk.fs.readDirectoryEntries(root).pipe(failAt(root))
  return entries
    .filter((entry) => entry.type === "Directory")
    .map((entry) => entry.name)
    .filter(isRunId)
})

const candidate = Effect.fnUntraced(function* (disk: Disk, root: string, name: RunId) {
  const directory = disk.path.join(root, name)
  const info = yield* disk.fs.lstat(directory).pipe(failAt(directory))
  const modified_ms = Option.match(info.mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
  return { name, directory, modified_ms } satisfies Candidate
})

/** A file that cannot be read says no more than one that is missing. */
const parsed = <A>(
  disk: Disk,
  directory: string,
  key: ArtifactKey,
  decode: (bytes: Uint8Array) => A | null
) =>
  disk.read(disk.path.join(directory, artifactNames[key]), maxJsonBytes).pipe(
    Effect.map((bytes) => (bytes === null ? null : decode(bytes))),
    Effect.catch(() => Effect.succeed(null))
  )
const present = (disk: Disk, directory: string, key: ArtifactKey) =>
  disk.typeOf(disk.path.join(directory, artifactNames[key])).pipe(
    Effect.map((type) => (type === "File" ? true : null)),
    Effect.catch(() => Effect.succeed(null))
  )

const summarise = Effect.fnUntraced(function* (disk: Disk, { directory, modified_ms, name }: Candidate) {
  const found = yield* Effect.all({
    request: parsed(disk, directory, "request", parse.request),
    session: parsed(disk, directory, "session", parse.session),
    events: present(disk, directory, "events"),
    checkpoint: parsed(disk, directory, "checkpoint", parse.checkpoint),
    verification: parsed(disk, directory, "verification", parse.verification),
    test_log: present(disk, directory, "test_log"),
    patch: present(disk, directory, "patch"),
    result: parsed(disk, directory, "result", parse.result)
  } satisfies Record<ArtifactKey, unknown>)
  const summary: RunSummary = {
    run_id: name,
    directory,
    modified_ms,
    manifest: found.session,
    request: found.request,
    result: found.result,
    missing: Record.keys(artifactNames)
      .filter((key) => found[key] === null)
      .map((key) => artifactNames[key])
  }
  return summary
})

/** What a query is looked for in: the id, the task and where it ran, and how it ended. */
const matches = Effect.fnUntraced(function* (disk: Disk, { directory, name }: Candidate, query: string) {
  const wanted = query.toLowerCase()
  const holds = (text: string) => text.toLowerCase().includes(wanted)
  if (holds(name)) return true
  const request = yield* parsed(disk, directory, "request", parse.request)
  const task = request === null ? null : request.task
  if (task !== null && (holds(task.instruction) || holds(task.repository))) return true
  const result = yield* parsed(disk, directory, "result", parse.result)
  return result !== null && (holds(result.terminal_reason) || holds(result.summary))
})

/** Newest first, by the last change of a bundle's files. */
export const list = Effect.fnUntraced(function* (
  disk: Disk,
  root: string,
  { limit, query }: { readonly limit: number; readonly query: string | null }
) {
  const names = yield* candidates(disk, root)
  const all = yield* Effect.forEach(names, (name) => candidate(disk, root, name).pipe(Effect.option), {
    concurrency: concurrency * 2
  })
  const newest = all
    .flatMap(Option.toArray)
    .toSorted((a, b) => b.modified_ms - a.modified_ms || (a.name < b.name ? 1 : -1))
  return yield* Stream.fromIterable(newest).pipe(
    Stream.rechunk(1),
    Stream.mapEffect(
      (one) =>
        query === null
          ? Effect.succeed(Option.some(one))
          : Effect.map(matches(disk, one, query), (yes) => (yes ? Option.some(one) : Option.none())),
      { concurrency }
    ),
    Stream.filter(Option.isSome),
    Stream.take(limit),
    Stream.mapEffect((one) => summarise(disk, one.value), { concurrency }),
    Stream.runCollect
  )
})

/** The run that an id or the beginning of one means. */
export const find = Effect.fnUntraced(function* (disk: Disk, root: string, idOrPrefix: string) {
  const exact = disk.path.join(root, idOrPrefix)
  if (isRunId(idOrPrefix) && (yield* disk.typeOf(exact)) !== null) {
    yield* demandDirectory(disk, root)
    yield* demandDirectory(disk, exact)
    return yield* Effect.flatMap(candidate(disk, root, idOrPrefix), (one) => summarise(disk, one))
  }
  const names = (yield* candidates(disk, root)).filter((name) => name.startsWith(idOrPrefix)).toSorted()
  const [name, second] = names
  if (name === undefined || idOrPrefix === "")
    return yield* new StoreError({
      reason: "not_found",
      path: root,
      message: `no run ${idOrPrefix} in ${root}`
    })
  if (second !== undefined)
    return yield* invalid(
      root,
      `${idOrPrefix} is the beginning of ${names.length} runs, among them ${name} and ${second}`
    )
  return yield* Effect.flatMap(candidate(disk, root, name), (one) => summarise(disk, one))
})
