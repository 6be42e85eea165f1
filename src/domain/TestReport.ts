/**
 * How many tests a runner says it ran, read from its output. A check that ran none has proved nothing.
 */
import { startedBy } from "./TestCommand.ts"
import { runners, type Runner } from "./TestRunners.ts"

const ansi = /\u001b\[[0-9;?]*[ -/]*[@-~]/g

const linesOf = (output: string): ReadonlyArray<string> =>
  output
    .replace(ansi, "")
    .split(/\r?\n/)
    .map((line) => line.trimEnd())

/** The runner that a command starts, when its words tell. */
const startedRunner = (
  argv: ReadonlyArray<string>
): { readonly runner: Runner; readonly args: ReadonlyArray<string> } | null => {
  const program = startedBy(argv)
  const runner = program === null ? undefined : runners.find((one) => one.starts(program))
  return program === null || runner === undefined ? null : { runner, args: program.args }
}

const sum = (counts: ReadonlyArray<number | null>): number | null =>
  counts.reduce((total, count) => (total === null || count === null ? null : total + count), 0)

const lowest = (counts: ReadonlyArray<number | null>): number | null =>
  counts.reduce((least, count) => (least === null || count === null ? null : Math.min(least, count)))

const countOf = (
  runner: Runner,
  lines: ReadonlyArray<string>,
  args: ReadonlyArray<string> | null
): ReadonlyArray<number | null> => {
  const reports = runner.reports(lines, args ?? [])
  if (reports.length === 0) return []
  const tests = args === null || runner.several === true ? sum(reports) : lowest(reports)
  return [tests === null ? null : Math.max(0, tests - (runner.hollow?.(lines) ?? 0))]
}

/**
 * The tests that ran; skipped ones did not. Null when no known runner reported, or one ran tests and did not say how many.
 * A command that names its runner is read as that runner's: where the output holds several reports of one that prints one,
 * something else printed the others, and the lowest counts. Any other command may start several runners, whose reports are
 * summed.
 */
export const testsRun = (output: string, argv: ReadonlyArray<string>): number | null => {
  const lines = linesOf(output)
  const started = startedRunner(argv)
  const counts =
    started === null
      ? runners.flatMap((runner) => countOf(runner, lines, null))
      : countOf(started.runner, lines, started.args)
  return counts.length === 0 ? null : sum(counts)
}

/** Whether a command must end with a report that we can read: without one, its runner did not come to its end. */
export const mustReport = (argv: ReadonlyArray<string>): boolean => {
  const started = startedRunner(argv)
  return (
    started !== null &&
    started.runner.mustReport &&
    !started.args.some((word) => started.runner.otherwise.test(word))
  )
}

const nothingFound =
  /^\s*(?:Error: )?(?:No test files found|No tests found)\b|^(?:=+ )?no tests ran\b|^NO TESTS RAN\b|^error: no tests to run$/

/** Whether a runner says that it found nothing to run, which some call a failure. */
export const foundNoTests = (output: string): boolean => {
  const lines = linesOf(output)
  return (
    lines.some((line) => nothingFound.test(line)) &&
    !lines.some((line) => /\b[1-9]\d* (?:failed|failing|errors?)\b/.test(line))
  )
}
