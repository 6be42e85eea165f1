/**
 * How a run's story ends: a value that whatever ends it hands to whoever writes the result.
 */
import type { ModelError } from "./ModelError.ts"
import type { TerminalReason } from "./Result.ts"

export interface Ending {
  readonly reason: TerminalReason
  /** What a person needs to know beyond the reason, at most a few lines; null when the reason says it all. */
  readonly error: string | null
}

export const ending = (reason: TerminalReason, error: string | null = null): Ending => ({ reason, error })

/** A provider that could not be won over ends the run with its kind. */
export const providerEnding = (error: ModelError): Ending => {
  const status = error.status_code === null ? "" : ` (status ${error.status_code})`
  const back = error.resets_at === null ? "" : `; it says it is back at ${error.resets_at}`
  return ending(
    `provider_${error.kind}`,
    `${error.provider}/${error.model}: ${error.message}${status}${back}`
  )
}
