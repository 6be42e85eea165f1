/**
 * The contract of a run: what is asked, of which repository, within which limits, proved by which checks.
 */
import { Schema } from "effect"
import { CommitId } from "./Ids.ts"

const PositiveInt = Schema.Int.check(Schema.isGreaterThan(0))
const PositiveSeconds = Schema.Finite.check(Schema.isGreaterThan(0))
const withoutNul = Schema.isPattern(/^[^\0]*$/, { expected: "text without NUL" })
const Text = Schema.String.check(Schema.isPattern(/\S/, { expected: "text that is not blank" }), withoutNul)

/** What a command reaches of the network. Only the user says more than nothing. */
export const Network = Schema.Literals(["none", "host"])
export type Network = typeof Network.Type

/** A command that proves something. An argv, never a shell line. */
export const Check = Schema.Struct({
  name: Text,
  argv: Schema.NonEmptyArray(Schema.String.check(withoutNul)),
  timeout_seconds: PositiveSeconds,
  /** Absent: none. */
  network: Schema.optionalKey(Network)
})
export type Check = typeof Check.Type

export const defaultCheckTimeoutSeconds = 300

export const Limits = Schema.Struct({
  max_steps: PositiveInt,
  /** Active seconds: waiting for a human and setting up do not count. */
  wall_time_seconds: PositiveSeconds,
  max_total_tokens: Schema.NullOr(PositiveInt),
  /** Of one observation, in UTF-8 bytes. */
  max_tool_output_bytes: PositiveInt,
  /** Of one read, and of a file that may be edited. */
  max_read_bytes: PositiveInt,
  max_patch_bytes: PositiveInt,
  max_patch_lines: PositiveInt,
  max_changed_files: PositiveInt,
  max_list_files: PositiveInt,
  max_search_results: PositiveInt
})
export type Limits = typeof Limits.Type

export const defaultLimits: Limits = {
  max_steps: 60,
  wall_time_seconds: 1800,
  max_total_tokens: null,
  max_tool_output_bytes: 200_000,
  max_read_bytes: 1_000_000,
  max_patch_bytes: 1_000_000,
  max_patch_lines: 20_000,
  max_changed_files: 200,
  max_list_files: 500,
  max_search_results: 100
}

/** Whether and how the run may say `verified`. */
export const Verification = Schema.Union([
  /** Every check must pass. */
  Schema.Struct({ mode: Schema.Literal("checks"), checks: Schema.NonEmptyArray(Check) }),
  /** The user said `--no-check`: an edit ends `unverified` and counts as completed. */
  Schema.Struct({ mode: Schema.Literal("waived") }),
  /** No check was declared: an edit ends `unverified` and does not count as completed. */
  Schema.Struct({ mode: Schema.Literal("undeclared") })
])
export type Verification = typeof Verification.Type

/** Where a run starts from: a commit, or the source's working tree as it stands. */
export const Base = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("commit"), commit: CommitId }),
  Schema.Struct({ kind: Schema.Literal("working_tree"), commit: CommitId })
])
export type Base = typeof Base.Type

/** Where a check's dependencies come from. */
export const Dependencies = Schema.Union([
  Schema.Struct({ mode: Schema.Literals(["auto", "copy", "none"]) }),
  Schema.Struct({ mode: Schema.Literal("path"), path: Schema.String })
])
export type Dependencies = typeof Dependencies.Type

export const Task = Schema.Struct({
  instruction: Text,
  /** The source repository's root, absolute. */
  repository: Text,
  /** Where checks run, relative to the root; "" is the root. */
  subdirectory: Schema.String,
  base: Base,
  allowed_paths: Schema.NonEmptyArray(Schema.String),
  /** Globs of paths that no patch may touch: tests, check commands, their configuration. */
  protected_paths: Schema.optionalKey(Schema.Array(Schema.String)),
  verification: Verification,
  limits: Limits,
  dependencies: Dependencies,
  /** Argvs that run once in the workspace before anything else. */
  setup: Schema.Array(Schema.NonEmptyArray(Schema.String)),
  /** Absent: none. */
  setup_network: Schema.optionalKey(Network),
  /** Globs of ignored files that are brought along. */
  include: Schema.Array(Schema.String),
  /** Whether every check also runs once on the untouched base. */
  baseline: Schema.Boolean
})
export type Task = typeof Task.Type

/** Whether a check looks at the form of a change only: it may fail a patch, and cannot verify one. */
export const isFormOnly = (argv: ReadonlyArray<string>): boolean =>
  argv[0] === "git" && argv.includes("diff") && argv.includes("--check")

/** Whether the task names any command. */
export const runsCommands = ({ setup, verification }: Task): boolean =>
  verification.mode === "checks" || setup.length > 0

/** The checks that the task declares, if any. */
export const checksOf = (task: Task): ReadonlyArray<Check> =>
  task.verification.mode === "checks" ? task.verification.checks : []
