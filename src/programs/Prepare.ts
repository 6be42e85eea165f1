/**
 * From what a user typed to a task, or to one line that says what is wrong. Reads only; a refusal costs nothing.
 */
import { Effect, FileSystem, Path, Result } from "effect"
import { parseCommandLine, renderCommandLine } from "../domain/CommandLine.ts"
import * as PathRule from "../domain/PathRule.ts"
import { refuse, type Refusal } from "../domain/Refusal.ts"
import {
  defaultCheckTimeoutSeconds,
  defaultLimits,
  type Base,
  type Check,
  type Dependencies,
  type Task,
  type Verification,
  type Network
} from "../domain/Task.ts"
import { Git, type Source } from "../services/Git.ts"
import { Programs } from "../services/Programs.ts"
import { proposeChecks } from "./ProposeChecks.ts"

/** A run as it was asked for, nothing checked yet. */
export interface TaskRequest {
  readonly instruction: string
  /** Absolute. */
  readonly directory: string
  /** Absolute. */
  readonly run_root: string
  readonly checks: ReadonlyArray<string>
  readonly no_check: boolean
  /** Whether a run without any check is refused, with proposals. */
  readonly checks_required: boolean
  readonly allowed_paths: ReadonlyArray<string>
  readonly protected_paths: ReadonlyArray<string>
  /** A revision, or null for HEAD. */
  readonly base_revision: string | null
  readonly working_tree: boolean
  readonly max_steps: number
  readonly wall_time_seconds: number
  readonly check_timeout_seconds: number | null
  readonly check_network: Network
  readonly setup_network: Network
  readonly max_total_tokens: number | null
  readonly deps: string
  readonly setup: ReadonlyArray<string>
  readonly include: ReadonlyArray<string>
  readonly baseline: boolean
}

export const argvOf = (flag: string, line: string) =>
  Result.match(parseCommandLine(line), {
    onSuccess: (argv) => Effect.succeed(argv),
    onFailure: (why) => Effect.fail(refuse(`${flag} ${JSON.stringify(line)}: ${why}`))
  })

const namedChecks = Effect.fnUntraced(function* (
  lines: ReadonlyArray<string>,
  { check_network, check_timeout_seconds }: TaskRequest
) {
  const facts = {
    timeout_seconds: check_timeout_seconds ?? defaultCheckTimeoutSeconds,
    ...(check_network === "none" ? {} : { network: check_network })
  }
  const checks = yield* Effect.forEach(lines, (line, i) =>
    Effect.map(argvOf("--check", line), (argv): Check => ({ name: `check-${i + 1}`, argv, ...facts }))
  )
  const seen = new Set<string>()
  for (const check of checks) {
    const text = renderCommandLine(check.argv)
    if (seen.has(text)) return yield* refuse(`--check ${JSON.stringify(text)} is given twice: give it once`)
    seen.add(text)
  }
  return checks
})

const verificationOf = Effect.fnUntraced(function* (request: TaskRequest, source: Source, base: Base) {
  const declared = request.checks.filter((line) => line.trim() !== "auto")
  const wantsProposals = declared.length < request.checks.length
  if (request.no_check) {
    if (request.checks.length > 0) return yield* refuse("--check and --no-check exclude each other: keep one")
    return { mode: "waived" } satisfies Verification
  }
  const proposals =
    wantsProposals || (declared.length === 0 && request.checks_required)
      ? yield* proposeChecks(source.root, base.commit, source.subdirectory)
      : []
  if (wantsProposals && proposals.length === 0) {
    return yield* refuse('--check auto found nothing to run here: name a command, as in --check "npm test"')
  }
  const lines = wantsProposals ? [...new Set([...declared, ...proposals])] : declared
  const [first, ...rest] = yield* namedChecks(lines, request)
  if (first !== undefined) return { mode: "checks", checks: [first, ...rest] } satisfies Verification
  if (!request.checks_required) return { mode: "undeclared" } satisfies Verification
  const advice =
    proposals.length === 0
      ? 'name one, as in --check "npm test"'
      : `this repository seems to use ${proposals.map((line) => `--check ${JSON.stringify(line)}`).join(" ")} (--check auto takes that)`
  return yield* refuse(`no check was declared: ${advice}, or give --no-check for an unverified patch`)
})

export const dependenciesOf: (
  deps: string
) => Effect.Effect<Dependencies, Refusal, FileSystem.FileSystem | Path.Path> = Effect.fnUntraced(
  function* (deps) {
    if (deps === "auto" || deps === "copy" || deps === "none") return { mode: deps }
    const path = yield* Path.Path
    const fs = yield* FileSystem.FileSystem
    const directory = path.resolve(deps)
    const info = yield* Effect.option(fs.stat(directory))
    if (deps === "" || info._tag === "None" || info.value.type !== "Directory")
      return yield* refuse(`--deps ${JSON.stringify(deps)}: give auto, copy, none or a directory`)
    return { mode: "path", path: directory }
  }
)

/** Whether `inner` is `outer` or lies below it. */
const within = (path: Path.Path, outer: string, inner: string): boolean => {
  const relative = path.relative(outer, inner)
  return relative === "" || (!relative.startsWith("..") && !path.isAbsolute(relative))
}

/** A path with the symlinks of whatever of it exists followed. */
const realPath: (at: string) => Effect.Effect<string, never, FileSystem.FileSystem | Path.Path> =
  Effect.fnUntraced(function* (at) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const parent = path.dirname(at)
    return yield* fs
      .realPath(at)
      .pipe(
        Effect.catch(() =>
          parent === at
            ? Effect.succeed(at)
            : Effect.map(realPath(parent), (real) => path.join(real, path.basename(at)))
        )
      )
  })

/**
 * Refuses a check whose program is not on this machine. One that a path names may still come to be: through set-up, or
 * from an ignored directory that the clone does not have yet; the preflight sees those.
 */
const demandPrograms = Effect.fnUntraced(function* (verification: Verification, directory: string) {
  const programs = yield* Programs
  if (verification.mode !== "checks") return
  for (const { argv } of verification.checks) {
    const [program] = argv
    if (!program.includes("/") && !(yield* programs.has(program, directory))) {
      return yield* refuse(
        `--check ${JSON.stringify(renderCommandLine(argv))}: its program ${JSON.stringify(program)} is not on PATH: install it, or name it by its path`
      )
    }
  }
})

/** The task that a request means. */
export const prepareTask = Effect.fn("Prepare.prepareTask")(function* (
  request: TaskRequest
): Effect.fn.Return<Task, Refusal, Git | Programs | FileSystem.FileSystem | Path.Path> {
  const git = yield* Git
  const path = yield* Path.Path
  if (request.instruction.trim() === "") return yield* refuse("the prompt is empty: say what should be done")
  if (request.instruction.includes("\0"))
    return yield* refuse("the prompt holds a NUL character: give it as text")
  const gitRefusal = Effect.mapError((error: { readonly message: string }) => refuse(error.message))
  const source = yield* git.source(request.directory).pipe(gitRefusal)
  if (within(path, source.root, yield* realPath(request.run_root))) {
    return yield* refuse(
      `the run root ${request.run_root} lies inside the repository: choose a place outside it with --run-root`
    )
  }
  const commit =
    request.base_revision === null
      ? source.head
      : yield* git.resolve(source.root, request.base_revision).pipe(gitRefusal)
  if (request.working_tree && request.base_revision !== null && commit !== source.head) {
    return yield* refuse("--base working-tree starts from HEAD: leave out --base-sha")
  }
  const base: Base = { kind: request.working_tree ? "working_tree" : "commit", commit }
  const rule = PathRule.compile(request.allowed_paths)
  if (Result.isFailure(rule)) return yield* refuse(`--allowed-path: ${rule.failure}`)
  for (const glob of request.protected_paths) {
    const guarded = PathRule.compile([glob])
    if (Result.isFailure(guarded)) return yield* refuse(`--protect: ${guarded.failure}`)
  }
  const verification = yield* verificationOf(request, source, base).pipe(
    Effect.catchTag("GitError", (error) => Effect.fail(refuse(error.message)))
  )
  const setup = yield* Effect.forEach(request.setup, (line) => argvOf("--setup", line))
  yield* demandPrograms(verification, request.directory)
  const [firstPath = "**", ...otherPaths] = request.allowed_paths
  return {
    instruction: request.instruction.trim(),
    repository: source.root,
    subdirectory: source.subdirectory,
    base,
    allowed_paths: [firstPath, ...otherPaths],
    ...(request.protected_paths.length === 0 ? {} : { protected_paths: request.protected_paths }),
    verification,
    limits: {
      ...defaultLimits,
      max_steps: request.max_steps,
      wall_time_seconds: request.wall_time_seconds,
      max_total_tokens: request.max_total_tokens
    },
    dependencies: yield* dependenciesOf(request.deps),
    setup,
    ...(request.setup_network === "none" ? {} : { setup_network: request.setup_network }),
    include: request.include,
    baseline: request.baseline
  }
})
