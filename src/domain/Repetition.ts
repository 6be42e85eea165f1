/**
 * Notices a model that goes round in circles.
 */
import { canonical } from "./Canonical.ts"

/** What was asked and what came back, compared as exact text. */
export interface Round {
  readonly call: string
  readonly observation: string
}

/** Two identical calls in a row may run; the third ends the run. */
const maxIdenticalCalls = 3
/** A cycle of two or three calls with the same answers ends the run when it would go round this often. */
export const maxCycles = 4

/** A call's identity: its name and arguments, whatever the order of their keys. */
export const callText = (name: string, args: unknown): string => canonical([name, args])

/** How many rounds a caller must keep. */
export const memory = 3 * maxCycles

/** Whether `next` would be the third identical call in a row, or close a cycle for the fourth time. */
export const repeats = (past: ReadonlyArray<Round>, next: string): boolean => {
  if (
    past.length >= maxIdenticalCalls - 1 &&
    past.slice(1 - maxIdenticalCalls).every((round) => round.call === next)
  ) {
    return true
  }
  return [2, 3].some((period) => {
    const needed = period * maxCycles - 1
    if (past.length < needed) return false
    const tail = past.slice(-needed)
    const closes = tail.at(-period)?.call === next
    return (
      closes &&
      tail.every((round, i) => {
        const before = tail[i - period]
        return (
          before === undefined || (before.call === round.call && before.observation === round.observation)
        )
      })
    )
  })
}

/** The past with one more round, no longer than `memory`. */
export const remember = (past: ReadonlyArray<Round>, round: Round): ReadonlyArray<Round> => [
  ...past.slice(1 - memory),
  round
]
