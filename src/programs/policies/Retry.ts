/**
 * When the same request is sent again.
 */
import { Context, Duration, Effect, Schedule } from "effect"
import type { ModelError } from "../../domain/ModelError.ts"

/** When and how often a request is sent again. */
export interface RetryNumbers {
  /** Requests to one model for one turn, the first included. */
  readonly maxAttempts: number
  /** The backoff starts here and doubles. */
  readonly baseDelay: Duration.Duration
  /** No wait of our own is longer. */
  readonly maxDelay: Duration.Duration
}

/** The reference's numbers; a host may lay others over them. */
export const RetryPolicy = Context.Reference<RetryNumbers>("looplane/programs/RetryPolicy", {
  defaultValue: () => ({ maxAttempts: 5, baseDelay: Duration.seconds(1), maxDelay: Duration.seconds(30) })
})

/**
 * A server's hint up to here is waited out exactly; a longer one is no hint but a closed door. One that is over already
 * says nothing: five requests within a blink would all meet the same limit.
 */
const maxHint = Duration.minutes(5)

/** Whether waiting and asking the same model again makes sense. */
const worthRetrying = (error: ModelError): boolean =>
  error.retryable && (error.retry_after_ms === null || error.retry_after_ms <= Duration.toMillis(maxHint))

/**
 * Five attempts, doubling from 1 s to 30 s, jittered by 20 %, the server's hint honoured instead of the curve.
 * `announce` runs before each wait: the wait is an event first.
 */
export const retrySchedule = <E, R>(
  { baseDelay, maxAttempts, maxDelay }: RetryNumbers,
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
