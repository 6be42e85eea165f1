/**
 * How many tests a runner says it ran, read from its output. A check that ran none has proved nothing.
 */

const ansi = /\u001b\[[0-9;?]*[ -/]*[@-~]/g

interface Runner {
  /** Whether a command starts this runner and no other. */
  readonly starts: (argv: ReadonlyArray<string>) => boolean
  /** One number for each report in the output. */
  readonly reports: (lines: ReadonlyArray<string>) => ReadonlyArray<number>
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

const node: Runner = {
  starts: (argv) => baseName(argv[0] ?? "") === "node" && argv.includes("--test"),
  reports: (lines) => {
    const counts = (word: string) =>
      lines.flatMap((line) => {
        const match = new RegExp(`^(?:# |ℹ )${word} (\\d+)$`).exec(line)
        return match === null ? [] : [Number(match[1])]
      })
    const tests = counts("tests")
    if (tests.length === 0) return []
    const not = [...counts("skipped"), ...counts("todo")].reduce((a, b) => a + b, 0)
    const files = lines.filter((line) => fileAsTest.test(line)).length
    return [Math.max(0, tests.reduce((a, b) => a + b, 0) - not - files)]
  }
}

const vitest: Runner = {
  starts: runs("vitest"),
  reports: (lines) =>
    lines.flatMap((line) => {
      if (line.trim().startsWith("No test files found")) return [0]
      const match = /^\s*Tests {2}(no tests|\d+ (?:passed|failed|skipped|todo)\b.*)$/.exec(line)
      return match === null ? [] : [sumOf(match[1] ?? "", /^(?:passed|failed)$/)]
    })
}

const jest: Runner = {
  starts: runs("jest"),
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

/**
 * The tests that ran, over every report in the output; skipped ones did not. Null when no known runner reported. A
 * command that names its runner is read as that runner's output only.
 */
export const testsRun = (output: string, argv: ReadonlyArray<string>): number | null => {
  const lines = linesOf(output)
  const named = runners.filter((runner) => runner.starts(argv))
  const reports = (named.length > 0 ? named : runners).flatMap((runner) => runner.reports(lines))
  return reports.length === 0 ? null : reports.reduce((a, b) => a + b, 0)
}

/** Whether a runner says that it found nothing to run, which some call a failure. */
export const foundNoTests = (output: string): boolean => {
  const lines = linesOf(output)
  return (
    lines.some((line) => /^\s*(?:No test files found|No tests found)\b|^(?:=+ )?no tests ran\b/.test(line)) &&
    !lines.some((line) => /\b[1-9]\d* (?:failed|errors?)\b/.test(line))
  )
}
