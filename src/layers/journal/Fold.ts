/**
 * A journal's events made into a state, as far as they go.
 */
import { Effect, Result } from "effect"
import { isKnownType, storeVersion, type RunEvent, type UnknownEvent } from "../../domain/Event.ts"
import { artifactNames } from "../../domain/Result.ts"
import type { RunState } from "../../domain/Run.ts"
import type { StoreError } from "../../services/RunStore.ts"
import { countTime, noTime, type ActiveTime } from "./ActiveTime.ts"
import { makeCollector } from "./Collect.ts"
import { everything, openCursor, type Head, type Mark } from "./Cursor.ts"
import type { Disk } from "./Disk.ts"
import { refuseNewer } from "./Documents.ts"
import { identityAfter, type Identity } from "./Manifest.ts"

export interface Folded {
  readonly mark: Mark
  readonly state: RunState
  readonly time: ActiveTime
  /** Null when the journal does not begin with a run's first event. */
  readonly identity: Identity | null
  /** What ended the fold before the journal's end. */
  readonly failure: StoreError | null
}

/** No state is made of what crossed the wire, and most of a journal's bytes are that. */
const aside: ReadonlySet<string> = new Set<RunEvent["event_type"]>(["model.exchanged"])

const isFolded = (event: RunEvent | UnknownEvent): event is RunEvent =>
  isKnownType(event.event_type) && !aside.has(event.event_type)

/** Folds a journal that begins with its first event. Damage is part of the answer; what a later version wrote is not. */
export const foldJournal = Effect.fnUntraced(function* (
  disk: Disk,
  directory: string,
  head: Head | null
): Effect.fn.Return<Folded, StoreError> {
  const file = disk.path.join(directory, artifactNames.events)
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const cursor = yield* openCursor(disk, directory, { ...everything, head, aside })
      const collector = makeCollector()
      let time = noTime
      let identity: Identity | null = null
      for (;;) {
        const read = yield* Effect.result(cursor.next)
        if (Result.isFailure(read) || read.success === null) {
          const failure = Result.isFailure(read) ? read.failure : null
          if (failure !== null && failure.reason !== "damaged") return yield* failure
          return { mark: cursor.mark(), state: collector.state(), time, identity, failure }
        }
        for (const entry of read.success) {
          const { event } = entry
          time = countTime(time, entry)
          identity = identityAfter(identity, entry)
          if (!isFolded(event)) continue
          if (event.event_type === "run.created" && event.data.store_version > storeVersion)
            return yield* refuseNewer(
              `line ${entry.sequence + 1} of ${file}`,
              file,
              "store",
              event.data.store_version,
              storeVersion
            )
          collector.add(event)
        }
      }
    })
  )
})
