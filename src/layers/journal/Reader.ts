/**
 * A run's whole history. The journal of a fork that has not been worked on yet begins in the middle, and what came
 * before it is read from the run that it was forked from.
 */
import { Effect, Option, Result, Schema, Stream, type Scope } from "effect"
import { RunForked, type EventData } from "../../domain/Event.ts"
import { decodeLine, maxLineBytes } from "../../domain/JournalCodec.ts"
import { artifactNames } from "../../domain/Result.ts"
import { StoreError, type StoredEntry } from "../../services/RunStore.ts"
import { everything, openCursor, type Cursor, type Head, type Mark, type Wanted } from "./Cursor.ts"
import { demandDirectory, type Disk } from "./Disk.ts"
import { damaged, failAt } from "./Failure.ts"

/** Where a journal that begins in the middle hangs on to another one. */
export interface ForkPoint {
  /** Of its first line. */
  readonly sequence: number
  /** The last line that is the source's. */
  readonly after: Head
  readonly data: EventData<"run.forked">
  /** The source's directory. */
  readonly source: string
}

const decodeForked = Schema.decodeUnknownResult(RunForked)

/** Null for a journal that begins with its own first event, and for whatever is no journal. */
export const forkPointOf = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string
): Effect.fn.Return<ForkPoint | null, StoreError> {
  const file = disk.path.join(directory, artifactNames.events)
  if ((yield* disk.typeOf(file)) !== "File") return null
  const start = yield* Effect.scoped(
    Effect.flatMap(disk.open(file, "r"), (handle) => handle.readAlloc(64 * 1024).pipe(failAt(file)))
  )
  const bytes = Option.getOrElse(start, () => new Uint8Array())
  const end = bytes.indexOf(0x0a)
  if (end === -1 || end > maxLineBytes) return null
  const line = Result.getOrElse(decodeLine(bytes.subarray(0, end)), () => null)
  if (line === null || line.sequence < 1 || line.event_type !== "run.forked") return null
  const forked = decodeForked({ event_type: line.event_type, data: line.data })
  if (Result.isFailure(forked)) return null
  const { data } = forked.success
  return {
    sequence: line.sequence,
    after: { sequence: line.sequence - 1, hash: line.previous },
    data,
    source: disk.path.join(disk.path.dirname(directory), data.source_run_id)
  }
})

/** One file's part of a history, in order. */
export interface Segment {
  readonly directory: string
  readonly after: Head
  readonly until: number
}

const noSource = (point: ForkPoint): StoreError =>
  new StoreError({
    reason: "not_found",
    path: point.source,
    message: `run ${point.data.run_id} begins in the history of ${point.data.source_run_id}, which is gone: there is no ${point.source}`
  })

/** The files that a run's history lies in. The last one is its own. */
export const segmentsOf = Effect.fnUntraced(function* (disk: Disk, directory: string) {
  const segments: Array<Segment> = []
  let at = directory
  let until: number = everything.until
  for (;;) {
    const point = yield* forkPointOf(disk, at)
    if (point === null) return [{ directory: at, after: everything.after, until }, ...segments]
    // Sequences fall from source to source, so that even a circle of directories ends.
    if (point.sequence > until)
      return yield* damaged(point.source, `the history of ${directory} is not in ${at}, where it should be`)
    segments.unshift({ directory: at, after: point.after, until })
    if ((yield* disk.typeOf(point.source)) === null) return yield* noSource(point)
    yield* demandDirectory(disk, point.source)
    until = point.after.sequence
    at = point.source
  }
})

export interface HistoryCursor extends Cursor {
  /** The parts that were read to their end, and where that is. */
  readonly parts: () => ReadonlyArray<{ readonly directory: string; readonly mark: Mark }>
}

/** A run's history as one: the entries of its own file follow those of its sources. */
export const openHistory = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  options: Pick<Wanted, "head" | "onBlob">
): Effect.fn.Return<HistoryCursor, StoreError, Scope.Scope> {
  const segments = yield* segmentsOf(disk, directory)
  const cursors = yield* Effect.forEach(segments, (segment, index) =>
    Effect.map(
      openCursor(disk, segment.directory, {
        ...everything,
        ...segment,
        // Before its own file, a history must reach the line that the next one hangs on to.
        head: segments[index + 1]?.after ?? options.head,
        onBlob: options.onBlob
      }),
      (cursor) => ({ ...cursor, directory: segment.directory })
    )
  )
  let at = 0
  const next: Cursor["next"] = Effect.gen(function* () {
    for (; at < cursors.length; at++) {
      const entries = yield* cursors[at]?.next ?? Effect.succeed(null)
      if (entries !== null) return entries
    }
    return null
  })
  const last = cursors[cursors.length - 1] ?? (yield* Effect.die("a history has at least one file"))
  return {
    next,
    mark: () => (cursors[at] ?? last).mark(),
    parts: () => cursors.slice(0, at).map(({ directory, mark }) => ({ directory, mark: mark() }))
  }
})

/** The entries of a run in order, checked against their chain. */
export const entriesOf = (
  disk: Disk,
  directory: string,
  head: Head | null
): Stream.Stream<StoredEntry, StoreError> =>
  Stream.unwrap(
    Effect.map(openHistory(disk, directory, { head, onBlob: everything.onBlob }), (cursor) =>
      Stream.paginate(null, () =>
        Effect.map(cursor.next, (entries): readonly [ReadonlyArray<StoredEntry>, Option.Option<null>] =>
          entries === null ? [[], Option.none()] : [entries, Option.some(null)]
        )
      )
    )
  )
