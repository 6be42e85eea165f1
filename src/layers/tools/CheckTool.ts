/**
 * run_check: a declared check, on the workspace as it stands.
 */
import { Effect, Schema } from "effect"
import type { CheckOutcome } from "../../domain/Result.ts"
import { defineTool, refuse } from "./Define.ts"

const verdictLine = (outcome: CheckOutcome): string => {
  const facts = [
    ...(outcome.exit_code === null ? [] : [`exit ${outcome.exit_code}`]),
    `${outcome.duration_seconds.toFixed(1)} s`,
    ...(outcome.tests === null ? [] : [`${outcome.tests} tests`])
  ]
  const reason = outcome.reason === null ? "" : `: ${outcome.reason}`
  return `check ${JSON.stringify(outcome.name)} ${outcome.verdict} (${facts.join(", ")})${reason}`
}

/** The tool of a run that declares checks. */
export const makeRunCheck = (names: readonly [string, ...ReadonlyArray<string>]) =>
  defineTool({
    name: "run_check",
    description:
      "Run a declared check on your changes as they are now, in a fresh copy, and see its verdict and output. Files that" +
      " it writes there are thrown away.",
    schema: Schema.Struct({ name: Schema.Literals(names).annotate({ description: "Which check." }) }),
    effect: "execute",
    concurrent: false,
    handler: Effect.fnUntraced(function* ({ name }, context) {
      const outcome = yield* context.run_check(name)
      if (outcome === null) return yield* refuse(`there is no check named ${JSON.stringify(name)}`)
      const output = outcome.output.trimEnd()
      return {
        ok: outcome.verdict === "passed",
        content: output === "" ? verdictLine(outcome) : `${verdictLine(outcome)}\n${output}`
      }
    }),
    preview: ({ name }) => `run check ${name}`
  })
