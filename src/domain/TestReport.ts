/**
 * How many tests a runner says it ran, read from its output. A check that ran none has proved nothing.
 */

const ansi = /\u001b\[[0-9;?]*[ -/]*[@-~]/g

interface Runner {
  /** Whether a command starts this runner and no other. */
  readonly starts: (argv: ReadonlyArray<string>) => boolean
  /** An argument with which the runner may print no report, or another one than we read. */
  readonly otherwise: RegExp
  /** One number for each report in the output. */
  readonly reports: (lines: ReadonlyArray<string>) => ReadonlyArray<number>
  /** What the reports count that was no test. */
  readonly hollow?: (lines: ReadonlyArray<string>) => number
}

const baseName = (word: string): string => word.slice(word.lastIndexOf("/") + 1)

/** Whether the program, or what npx and the like start for it, has this name. */
const runs = (name: string) => (argv: ReadonlyArray<string>) =>
  argv.slice(0, 3).some((word) => baseName(word) === name)

/** Sums the counts with one of these words: "2 passed | 1 skipped (3)" has 2 for `passed`. */
const sumOf = (text: string, words: RegExp): number =>
  [...text.matchAll(/(\d+) ([a-z]+)/g)].reduce(
    (sum, [, count = "0", word = ""]) => (words.test(word) ? sum + Number(count) : sum),
    0
  )

/** A file without tests is itself reported as a passing test, under its own path. */
const fileAsTest = /^(?:✔ |ok \d+ - )\S+\.[cm]?[jt]sx?(?: \([\d.]+ms\))?$/

const nodeCount = (line: string): readonly [word: string, count: number] | null => {
  const match = /^(?:# |ℹ )(tests|skipped|todo) (\d+)$/.exec(line)
  return match === null ? null : [match[1] ?? "", Number(match[2])]
}

const node: Runner = {
  starts: (argv) => baseName(argv[0] ?? "") === "node" && argv.includes("--test"),
  otherwise: /^--test-reporter(?!=(?:spec|tap)$)|^--watch/,
  reports: (lines) => {
    const reports: Array<number> = []
    for (const line of lines) {
      const [word, count] = nodeCount(line) ?? ["", 0]
      if (word === "tests") reports.push(count)
      else if (word !== "" && reports.length > 0) reports.push(Math.max(0, (reports.pop() ?? 0) - count))
    }
    return reports
  },
  hollow: (lines) => lines.filter((line) => fileAsTest.test(line)).length
}

const vitest: Runner = {
  starts: runs("vitest"),
  otherwise: /^--(?:reporter|outputFile|silent)|^(?:bench|list|init)$/,
  reports: (lines) =>
    lines.flatMap((line) => {
      if (line.trim().startsWith("No test files found")) return [0]
      const match = /^\s*Tests {2}(no tests|\d+ (?:passed|failed|skipped|todo)\b.*)$/.exec(line)
      return match === null ? [] : [sumOf(match[1] ?? "", /^(?:passed|failed)$/)]
    })
}

const jest: Runner = {
  starts: runs("jest"),
  otherwise: /^--(?:reporters|json|silent|listTests|showConfig)/,
  reports: (lines) =>
    lines.flatMap((line) => {
      if (line.startsWith("No tests found")) return [0]
      const match = /^Tests: +(\d+ .*total)$/.exec(line)
      return match === null ? [] : [sumOf(match[1] ?? "", /^(?:passed|failed)$/)]
    })
}

const pytestSummary =
  /^(?:=+ )?((?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed|deselected|warnings?|rerun)(?:, )?)+) in [\d.]+s(?: \([^)]*\))?(?: =+)?$/

const pytest: Runner = {
  starts: (argv) => runs("pytest")(argv) || (argv[1] === "-m" && argv[2] === "pytest"),
  otherwise: /^-q|^--(?:quiet|no-summary|co$|collect-only)/,
  reports: (lines) => {
    const summaries = lines.flatMap((line) => {
      if (/^(?:=+ )?no tests ran\b/.test(line)) return [0]
      const match = pytestSummary.exec(line)
      return match === null ? [] : [sumOf(match[1] ?? "", /^(?:passed|failed|xfailed|xpassed)$/)]
    })
    return summaries.length === 0 && lines.some((line) => /^collected 0 items$/.test(line)) ? [0] : summaries
  }
}

const runners: ReadonlyArray<Runner> = [node, vitest, jest, pytest]

const linesOf = (output: string): ReadonlyArray<string> =>
  output
    .replace(ansi, "")
    .split(/\r?\n/)
    .map((line) => line.trimEnd())

const namedBy = (argv: ReadonlyArray<string>): ReadonlyArray<Runner> =>
  runners.filter((runner) => runner.starts(argv))

/**
 * The tests that ran; skipped ones did not. Null when no known runner reported. A command that names its runner has one
 * report of that runner: where the output holds several, something else printed the others, and the lowest counts. Any
 * other command may start several runners, whose reports are summed.
 */
export const testsRun = (output: string, argv: ReadonlyArray<string>): number | null => {
  const lines = linesOf(output)
  const named = namedBy(argv)
  const counts = (named.length > 0 ? named : runners).flatMap((runner) => {
    const reports = runner.reports(lines)
    if (reports.length === 0) return []
    const tests = named.length > 0 ? Math.min(...reports) : reports.reduce((a, b) => a + b, 0)
    return [Math.max(0, tests - (runner.hollow?.(lines) ?? 0))]
  })
  return counts.length === 0 ? null : counts.reduce((a, b) => a + b, 0)
}

/** Whether a command must end with a report that we can read: without one, its runner did not come to its end. */
export const mustReport = (argv: ReadonlyArray<string>): boolean => {
  const named = namedBy(argv)
  return named.length > 0 && !named.some((runner) => argv.some((word) => runner.otherwise.test(word)))
}

/** Whether a runner says that it found nothing to run, which some call a failure. */
export const foundNoTests = (output: string): boolean => {
  const lines = linesOf(output)
  return (
    lines.some((line) => /^\s*(?:No test files found|No tests found)\b|^(?:=+ )?no tests ran\b/.test(line)) &&
    !lines.some((line) => /\b[1-9]\d* (?:failed|errors?)\b/.test(line))
  )
}
