/**
 * A person at a terminal decides. What needs no answer headless needs none here either; everything else is shown and
 * asked, one question at a time.
 */
import { Effect, Layer, Semaphore, Terminal } from "effect"
import type { ApprovalDecision } from "../../domain/Event.ts"
import { printable } from "../../domain/Text.ts"
import { Approval, type ApprovalRequest, ApprovalUnavailable } from "../../services/Approval.ts"
import { standingHeadless } from "./Headless.ts"

/** What a person may type, and what it means. Anything else is a no: silence and typing errors allow nothing. */
const answers: ReadonlyMap<string, ApprovalDecision> = new Map([
  ["y", "allow_once"],
  ["yes", "allow_once"],
  ["a", "allow_session"],
  ["always", "allow_session"],
  ["c", "cancel"],
  ["cancel", "cancel"]
])

/** Lines of an action that are shown before the question; the journal has all of it. */
const maxShownLines = 40

const shown = ({ effect, preview }: ApprovalRequest): string => {
  const lines = preview.split("\n")
  const more = lines.length > maxShownLines ? `… ${lines.length - maxShownLines} more lines\n` : ""
  return printable(
    `${lines.slice(0, maxShownLines).join("\n")}\n${more}Allow this (${effect})? [y]es once, [a]lways in this run, [N]o, [c]ancel the run: `
  )
}

export const layer: Layer.Layer<Approval, never, Terminal.Terminal> = Layer.effect(
  Approval,
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const one = yield* Semaphore.make(1)
    const granted = new Set<ApprovalRequest["effect"]>()
    const gone = new ApprovalUnavailable({
      message: "an answer was needed, and the terminal it was asked on is gone"
    })
    const ask = Effect.fn("Approval.ask")(function* (request: ApprovalRequest) {
      yield* terminal.display(shown(request)).pipe(Effect.mapError(() => gone))
      const line = yield* terminal.readLine.pipe(
        Effect.map((text): ApprovalDecision => answers.get(text.trim().toLowerCase()) ?? "deny"),
        // Ctrl-C at the question is an answer to it.
        Effect.catchTag("QuitError", () => Effect.succeed<ApprovalDecision>("cancel"))
      )
      if (line === "allow_session") granted.add(request.effect)
      return line
    })
    return Approval.of({
      standing: (request) =>
        standingHeadless(request) ?? (granted.has(request.effect) ? "allow_session" : null),
      ask: (request) => one.withPermits(1)(ask(request))
    })
  })
)
