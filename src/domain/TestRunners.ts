/**
 * What the common test runners print about the number of tests that they ran. Skipped tests did not run.
 */
import type { StartedProgram } from "./TestCommand.ts"

export interface Runner {
  /** Whether a command starts this runner and no other. */
  readonly starts: (program: StartedProgram) => boolean
  /** Whether its last word is always a report that we read, so that none means that it was cut short. */
  readonly mustReport: boolean
  /** An argument with which it may print no report, or another one than we read. */
  readonly otherwise: RegExp
  /** One number for each report in the output; null for one that says that tests ran, and not how many. `args` are those
   * of the command that is known to start the runner; empty when it is not known. */
  readonly reports: (
    lines: ReadonlyArray<string>,
    args: ReadonlyArray<string>
  ) => ReadonlyArray<number | null>
  /** What the reports count that was no test. */
  readonly hollow?: (lines: ReadonlyArray<string>) => number
  /** It prints a report for each of its parts. Otherwise only one of several reports can be its own. */
  readonly several?: true
}

const named =
  (...names: ReadonlyArray<string>) =>
  ({ name }: StartedProgram): boolean =>
    names.includes(name)

/** Sums the counts with one of these words: "2 passed | 1 skipped (3)" has 2 for `passed`. */
const sumOf = (text: string, words: RegExp): number =>
  [...text.matchAll(/(\d+) ([a-z]+)/g)].reduce(
    (sum, [, count = "0", word = ""]) => (words.test(word) ? sum + Number(count) : sum),
    0
  )

/** A file without tests is itself reported as a passing test, under its own path. */
const fileAsTest = /^(?:✔ |ok \d+ - )\S+\.[cm]?[jt]sx?(?: \([\d.]+ms\))?$/

const nodeCount = (line: string): readonly [word: string, count: number] | null => {
  const match = /^(?:# |ℹ |\s*<!-- )(tests|skipped|todo) (\d+)(?: -->)?$/.exec(line)
  return match === null ? null : [match[1] ?? "", Number(match[2])]
}

const node: Runner = {
  starts: ({ args, name }) => name === "node" && args.includes("--test"),
  mustReport: true,
  otherwise: /^--test-reporter(?!=(?:spec|tap|junit)$)|^--watch/,
  reports: (lines, args) => {
    const reports: Array<number> = []
    for (const line of lines) {
      const [word, count] = nodeCount(line) ?? ["", 0]
      if (word === "tests") reports.push(count)
      else if (word !== "" && reports.length > 0) reports.push(Math.max(0, (reports.pop() ?? 0) - count))
    }
    // Its dots do not tell a test from a skipped one, but no dot is no test.
    const dots = args.some(
      (arg, at) => arg === "--test-reporter=dot" || (arg === "dot" && args[at - 1] === "--test-reporter")
    )
    return dots && lines.every((line) => line === "") ? [0] : reports
  },
  hollow: (lines) => lines.filter((line) => fileAsTest.test(line)).length
}

const vitest: Runner = {
  starts: named("vitest"),
  mustReport: true,
  otherwise: /^--(?:reporter|outputFile|silent)|^(?:bench|list|init)$/,
  reports: (lines) =>
    lines.flatMap((line) => {
      if (line.trim().startsWith("No test files found")) return [0]
      const match = /^\s*Tests {2}(no tests|\d+ (?:passed|failed|skipped|todo)\b.*)$/.exec(line)
      return match === null ? [] : [sumOf(match[1] ?? "", /^(?:passed|failed)$/)]
    })
}

const jest: Runner = {
  starts: named("jest"),
  mustReport: true,
  otherwise: /^--(?:reporters|json|silent|listTests|showConfig)/,
  reports: (lines) =>
    lines.flatMap((line) => {
      if (line.startsWith("No tests found")) return [0]
      const match = /^Tests: +(\d+ .*total)$/.exec(line)
      return match === null ? [] : [sumOf(match[1] ?? "", /^(?:passed|failed)$/)]
    })
}

const mocha: Runner = {
  starts: named("mocha", "_mocha"),
  mustReport: true,
  otherwise: /^(?:-R|--reporter)/,
  reports: (lines, args) => {
    const reports: Array<number> = []
    const tap: Array<number> = []
    for (const line of lines) {
      const match = /^ {2}(\d+) (passing|failing)\b/.exec(line)
      if (match?.[2] === "passing") reports.push(Number(match[1]))
      else if (match !== null && reports.length > 0) reports.push((reports.pop() ?? 0) + Number(match[1]))
      else if (line.startsWith("Error: No test files found")) reports.push(0)
      // Its TAP counts what passed and failed only.
      else if (args.length > 0 && /^# tests \d+$/.test(line)) tap.push(Number(line.slice("# tests ".length)))
    }
    const found = reports.length > 0 ? reports : tap
    return args.includes("--dry-run") ? found.map(() => 0) : found
  }
}

const pytestSummary =
  /^(?:=+ )?((?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed|deselected|warnings?|rerun)(?:, )?)+) in [\d.]+s(?: \([^)]*\))?(?: =+)?$/

const pytest: Runner = {
  starts: named("pytest", "py.test"),
  mustReport: true,
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

/** Its count includes what was skipped, unless a whole class was: then fewer seem to have run than did. */
const unittest: Runner = {
  starts: named("unittest"),
  mustReport: true,
  otherwise: /^(?:-h|--help)$/,
  reports: (lines) => {
    const reports: Array<number> = []
    let ran: number | null = null
    for (const line of lines) {
      const count = /^Ran (\d+) tests? in [\d.]+s$/.exec(line)
      if (count !== null) ran = Number(count[1])
      else if (ran !== null && /^(?:OK|FAILED|NO TESTS RAN)(?: \(|$)/.test(line)) {
        reports.push(Math.max(0, ran - Number(/\bskipped=(\d+)/.exec(line)?.[1] ?? 0)))
        ran = null
      }
    }
    return reports
  }
}

/** Says how many tests ran only with -v or -json, but always which packages had none. */
const go: Runner = {
  starts: ({ args, name }) => (name === "go" && args.includes("test")) || name === "gotestsum",
  mustReport: false,
  otherwise: /^-(?:c|list|exec)/,
  reports: (lines, args) => {
    const done = lines.flatMap((line) => {
      const match = /^DONE (\d+) tests?(?:, (\d+) skipped)?\b/.exec(line)
      return match === null ? [] : [Number(match[1]) - Number(match[2] ?? 0)]
    })
    if (done.length > 0) return done
    const packages = lines.filter((line) => /^(?:ok {2}|\? {3}|FAIL)\t\S/.test(line))
    const told = lines.filter(
      (line) =>
        /^--- (?:PASS|FAIL): /.test(line) || /^\{.*"Action":"(?:pass|fail)",.*"Test":"[^"/]+"/.test(line)
    ).length
    const verbose =
      args.some((arg) => /^--?(?:test\.)?(?:v|json)(?:=true)?$/.test(arg)) ||
      lines.some((line) => line.startsWith("=== RUN ") || /^\{"Time":.*"Action":/.test(line))
    if (verbose && (packages.length > 0 || told > 0)) return [told]
    if (packages.length === 0) return []
    return packages.every((line) => /\[no test(?: files|s to run)\]$/.test(line)) ? [0] : [null]
  }
}

/** A report for each of its programs. One that began and has no end was ended by its own test. */
const cargo: Runner = {
  starts: ({ args, name }) =>
    name === "cargo" && args.some((arg) => arg === "test" || arg === "t" || arg === "nextest"),
  mustReport: true,
  otherwise: /^--(?:message-format|format|list)/,
  several: true,
  reports: (lines) => {
    const next = lines.flatMap((line) => {
      const match = /^\s*Summary \[[^\]]*\] +(\d+)(?:\/\d+)? tests? run:/.exec(line)
      return match === null ? [] : [Number(match[1])]
    })
    if (next.length > 0) return next
    const ends = lines.flatMap((line) => {
      const match = /^test result: \S+ (\d+) passed; (\d+) failed; /.exec(line)
      return match === null ? [] : [Number(match[1]) + Number(match[2])]
    })
    const begun = lines.filter((line) => /^running \d+ tests?$/.test(line)).length
    return begun > ends.length ? [] : ends
  }
}

export const runners: ReadonlyArray<Runner> = [node, vitest, jest, mocha, pytest, unittest, go, cargo]
