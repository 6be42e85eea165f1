/**
 * When the same request is sent again.
 */
import { Duration, Effect, Schedule } from "effect"
import type { ModelError } from "../../domain/ModelError.ts"

/** Requests to one model for one turn, the first included (the reference's number). */
export const maxAttempts = 5
/** The backoff starts here and doubles. */
export const baseDelay = Duration.seconds(1)
/** No wait of our own is longer. */
export const maxDelay = Duration.seconds(30)
/**
 * A server's hint up to here is waited out exactly; a longer one is no hint but a closed door. One that is over already
 * says nothing: five requests within a blink would all meet the same limit.
 */
export const maxHint = Duration.minutes(5)

/** Whether waiting and asking the same model again makes sense. */
export const worthRetrying = (error: ModelError): boolean =>
  error.retryable && (error.retry_after_ms === null || error.retry_after_ms <= Duration.toMillis(maxHint))

/**
 * Five attempts, doubling from 1 s to 30 s, jittered by 20 %, the server's hint honoured instead of the curve.
 * `announce` runs before each wait: the wait is an event first.
 */
export const retrySchedule = <E, R>(
  announce: (wait: {
    readonly attempt: number
    readonly delay: Duration.Duration
    readonly error: ModelError
  }) => Effect.Effect<void, E, R>
) =>
  Schedule.min([Schedule.exponential(baseDelay), Schedule.spaced(maxDelay)]).pipe(
    Schedule.jittered,
    Schedule.upTo({ times: maxAttempts - 1 }),
    Schedule.setInputType<ModelError>(),
    Schedule.while(({ input }) => worthRetrying(input)),
    Schedule.modifyDelay(({ attempt, duration, input }) => {
      const delay =
        input.retry_after_ms === null || input.retry_after_ms <= 0
          ? Duration.min(duration, maxDelay)
          : Duration.millis(input.retry_after_ms)
      return announce({ attempt, delay, error: input }).pipe(Effect.as(delay))
    })
  )
