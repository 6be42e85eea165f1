/**
 * The time of a recording: it stands still between events, and a sleeper wakes when the recording has come so far.
 */
import { type Clock, Duration, Effect } from "effect"
import type { Reel } from "./Reel.ts"

export interface ReelClock {
  readonly clock: Clock.Clock
  /** Moves on to the next sleeper's time, or to `until` when none is due before. Whether anything changed. */
  readonly advance: (until: number) => boolean
}

/** Of recorded times, in milliseconds. */
const resolution = 1

const nanos = (ms: number): bigint => BigInt(Math.round(ms * 1000)) * 1000n

export const makeReelClock = (reel: Reel): ReelClock => {
  let sleepers: Array<{ readonly due: number; readonly wake: () => void }> = []
  const now = reel.time_ms
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: () => nanos(now()),
    currentTimeNanos: Effect.sync(() => nanos(now())),
    monotonicTimeNanosUnsafe: () => nanos(now()),
    monotonicTimeNanos: Effect.sync(() => nanos(now())),
    sleep: (duration) =>
      Effect.callback<void>((resume) => {
        const due = now() + Duration.toMillis(duration)
        const sleeper = { due, wake: () => resume(Effect.void) }
        sleepers.push(sleeper)
        return Effect.sync(() => {
          sleepers = sleepers.filter((each) => each !== sleeper)
        })
      })
  }
  return {
    clock,
    advance: (until) => {
      const first = sleepers.toSorted((a, b) => a.due - b.due)[0]
      if (first !== undefined && first.due < Math.max(until, now()) + resolution) {
        reel.setTime(first.due)
        sleepers = sleepers.filter((each) => each !== first)
        first.wake()
        return true
      }
      if (until <= now()) return false
      reel.setTime(until)
      return true
    }
  }
}
