/**
 * How signals end the command: the first one interrupts the run, which then says that it can be resumed.
 */
import { Cause, Exit, Runtime } from "effect"

const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
type EndingSignal = keyof typeof exitCodes
const endingSignals: ReadonlyArray<EndingSignal> = ["SIGHUP", "SIGINT", "SIGTERM"]

/** One Ctrl-C may arrive twice, from the terminal and from a parent such as npm. What comes this soon is the same one. */
const echoMs = 500
/** No finalizer of ours takes longer. One that hangs must not keep a process that was told to end. */
const patienceMs = 5000

// oxlint-disable-next-line unicorn/no-process-exit -- the one place where a finished command ends the process
const leave = (code: number | string) => process.exit(code)

/**
 * Runs the main program. A signal ends it with 128 plus the signal's number, unless the program has settled its exit
 * code already (`process.exitCode`). A second signal, or patience that ran out, ends the process on the spot.
 */
export const runMain = Runtime.makeRunMain(({ fiber, teardown }) => {
  let first: EndingSignal | null = null
  let echo = true
  const leaveBy = (signal: EndingSignal) => leave(process.exitCode ?? exitCodes[signal])
  const listeners = endingSignals.map((signal) => {
    const listener = () => {
      if (first !== null) return echo ? undefined : leaveBy(first)
      first = signal
      setTimeout(() => {
        echo = false
      }, echoMs).unref()
      setTimeout(leaveBy, patienceMs, signal).unref()
      fiber.interruptUnsafe(fiber.id)
    }
    process.on(signal, listener)
    return [signal, listener] as const
  })
  fiber.addObserver((exit) => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
    if (first !== null && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return leaveBy(first)
    teardown(exit, (code) => {
      if (first !== null || code !== 0) leave(code)
    })
  })
})
