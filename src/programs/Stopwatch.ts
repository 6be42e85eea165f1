/**
 * The run's active time: what waiting for a human or for set-up takes does not count.
 */
import { Clock, Effect, Ref } from "effect"

export interface Stopwatch {
  readonly elapsed_ms: Effect.Effect<number>
  /** Never negative. */
  readonly remaining_ms: Effect.Effect<number>
  /** Runs an effect whose time is not counted. Pauses may overlap: their union is left out. */
  readonly pause: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Starts a stopwatch that has `used_ms` on it. */
export const makeStopwatch = (limit_ms: number, used_ms: number): Effect.Effect<Stopwatch> =>
  Effect.gen(function* () {
    const started = (yield* Clock.currentTimeMillis) - used_ms
    const paused = yield* Ref.make({ total: 0, open: 0, since: 0 })
    const elapsed_ms = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const { open, since, total } = yield* Ref.get(paused)
      return now - started - total - (open > 0 ? now - since : 0)
    })
    const enter = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Ref.update(paused, (p) => ({ ...p, open: p.open + 1, since: p.open === 0 ? now : p.since }))
    )
    const leave = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Ref.update(paused, (p) => ({
        ...p,
        open: p.open - 1,
        total: p.open === 1 ? p.total + now - p.since : p.total
      }))
    )
    return {
      elapsed_ms,
      remaining_ms: Effect.map(elapsed_ms, (elapsed) => Math.max(0, limit_ms - elapsed)),
      pause: (effect) =>
        Effect.acquireUseRelease(
          enter,
          () => effect,
          () => leave
        )
    }
  })
