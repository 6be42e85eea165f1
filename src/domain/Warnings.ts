/**
 * What somebody who takes a verified patch should look at before trusting the word: a patch that passed its checks may
 * have changed them. Warnings never change a verdict; `--protect` makes a touched path a refusal.
 */
import { Result, Schema } from "effect"
import type { EventData } from "./Event.ts"
import { decodeLossy } from "./patch/ByteString.ts"
import type { DiffFile } from "./patch/Diff.ts"
import { parseDiff } from "./patch/UnifiedDiff.ts"
import * as PathRule from "./PathRule.ts"
import type { ChangedFile, CheckOutcome } from "./Result.ts"
import { checksOf, type Check, type Task } from "./Task.ts"
import { declaresTest, isConfigurationPath, isTestPath, skipsTests } from "./TestConventions.ts"
import { quotePath } from "./WorkspacePath.ts"

export const Warning = Schema.Struct({
  kind: Schema.Literals([
    /** It touches a test. */
    "test_changed",
    /** It takes a test's file away, or declares fewer tests in one. */
    "test_deleted",
    /** It adds a line that keeps tests from running. */
    "test_skipped",
    /** It touches a file that a check's command names. */
    "check_changed",
    /** It touches what decides which checks run, or how. */
    "configuration_changed",
    /** A check ran fewer tests than on the untouched base. */
    "fewer_tests",
    /** Its lines could not be read for this. */
    "unreadable_patch"
  ]),
  /** Relative to the root; null where no one file is meant. */
  path: Schema.NullOr(Schema.String),
  /** One line, whole without the other two. */
  message: Schema.String
})
export type Warning = typeof Warning.Type

/** More would be read by nobody. */
const maxWarnings = 50

const verbs: Readonly<Record<ChangedFile["change"], string>> = {
  added: "adds",
  modified: "changes",
  deleted: "deletes",
  type_changed: "replaces"
}

/** The paths that a check's command names, relative to the root. Words of a nested command line count as well. */
const namedBy = (check: Check, subdirectory: string): ReadonlySet<string> => {
  const prefix = subdirectory === "" ? [] : subdirectory.split("/")
  const normal = (word: string): string => {
    const parts: Array<string> = word.startsWith("/") ? [] : [...prefix]
    for (const part of word.split("/")) {
      if (part === "..") parts.pop()
      else if (part !== "" && part !== ".") parts.push(part)
    }
    return parts.join("/")
  }
  return new Set(
    check.argv
      .flatMap((word) => word.split(/[\s;&|"'()<>=]+/))
      .flatMap((word) => (word === "" ? [] : [normal(word)]))
  )
}

const aboutPath = (file: ChangedFile, task: Task): Warning | null => {
  const shown = quotePath(file.path)
  const verb = verbs[file.change]
  const check = checksOf(task).find((one) => namedBy(one, task.subdirectory).has(file.path))
  const warning = (kind: Warning["kind"], what: string): Warning => ({
    kind,
    path: file.path,
    message: `the patch ${verb} ${what}`
  })
  if (check !== undefined)
    return warning("check_changed", `${shown}, which check ${JSON.stringify(check.name)} runs`)
  if (isTestPath(file.path))
    return warning(file.change === "deleted" ? "test_deleted" : "test_changed", `the test ${shown}`)
  return isConfigurationPath(file.path)
    ? warning("configuration_changed", `${shown}, which can decide what checks do`)
    : null
}

const aboutLines = (file: DiffFile): ReadonlyArray<Warning> => {
  if (file.newPath === undefined) return []
  const path = decodeLossy(file.newPath)
  const inTest = isTestPath(path) || isConfigurationPath(path)
  const lines = file.hunks.flatMap((hunk) => hunk.lines)
  const textsOf = (kind: "add" | "remove") =>
    lines.filter((line) => line.kind === kind).map((line) => decodeLossy(line.text).trimEnd())
  const [added, removed] = [textsOf("add"), textsOf("remove")]
  const skip = added.find((line) => skipsTests(line, inTest))
  const lost = removed.filter(declaresTest).length - added.filter(declaresTest).length
  return [
    ...(skip === undefined
      ? []
      : [
          {
            kind: "test_skipped" as const,
            path,
            message: `the patch adds a line to ${quotePath(path)} that can keep tests from running: ${skip.trim().slice(0, 80)}`
          }
        ]),
    ...(lost > 0
      ? [
          {
            kind: "test_deleted" as const,
            path,
            message: `the patch leaves ${lost} test${lost === 1 ? "" : "s"} fewer in ${quotePath(path)}`
          }
        ]
      : [])
  ]
}

const lastOf = (checks: ReadonlyArray<EventData<"verification.completed">>, purpose: "preflight" | "final") =>
  new Map<string, CheckOutcome>(
    checks.flatMap((check) => (check.purpose === purpose ? [[check.outcome.name, check.outcome]] : []))
  )

const aboutCounts = (checks: ReadonlyArray<EventData<"verification.completed">>): ReadonlyArray<Warning> => {
  const before = lastOf(checks, "preflight")
  return [...lastOf(checks, "final")].flatMap(([name, { tests }]) => {
    const base = before.get(name)?.tests ?? null
    return tests === null || base === null || tests >= base
      ? []
      : [
          {
            kind: "fewer_tests" as const,
            path: null,
            message: `check ${JSON.stringify(name)} ran ${tests} tests, and ${base} on the untouched base`
          }
        ]
  })
}

/** What is to be said of a patch. `checks` are all that ran, in order. */
export const warningsOf = (given: {
  readonly patch: Uint8Array
  readonly files: ReadonlyArray<ChangedFile>
  readonly task: Task
  readonly checks: ReadonlyArray<EventData<"verification.completed">>
}): ReadonlyArray<Warning> => {
  const diff = parseDiff(given.patch)
  const warnings = [
    ...given.files.flatMap((file) => aboutPath(file, given.task) ?? []),
    ...(Result.isSuccess(diff)
      ? diff.success.flatMap(aboutLines)
      : [
          {
            kind: "unreadable_patch" as const,
            path: null,
            message: `nothing is known of the patch's lines: ${diff.failure.message}`
          }
        ]),
    // Without a change the counts of an earlier attempt say nothing.
    ...(given.files.length === 0 ? [] : aboutCounts(given.checks))
  ]
  return warnings.slice(0, maxWarnings)
}

/** The first of some globs that protects one of the paths, and that path; null when none does. */
export const protectedAmong = (
  globs: ReadonlyArray<string>,
  paths: ReadonlyArray<string>
): { readonly glob: string; readonly path: string } | null => {
  for (const glob of globs) {
    const rule = PathRule.compile([glob])
    // A glob that cannot be read protects everything: it was refused before the run, so it came from elsewhere.
    const path = paths.find((each) => Result.isFailure(rule) || PathRule.allows(rule.success, each))
    if (path !== undefined) return { glob, path }
  }
  return null
}

/** Why a patch may not be handed over: the first path that is protected, and the glob that says so. Null: none is. */
export const protectedViolation = (task: Task, files: ReadonlyArray<ChangedFile>): string | null => {
  const found = protectedAmong(
    task.protected_paths ?? [],
    files.map((file) => file.path)
  )
  const touched = files.find((file) => file.path === found?.path)
  return found === null || touched === undefined
    ? null
    : `it ${verbs[touched.change]} ${quotePath(found.path)}, which --protect ${JSON.stringify(found.glob)} forbids`
}
