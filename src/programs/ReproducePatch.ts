/**
 * A receipt put to the test in a repository: the patch on its base in a fresh clone, and the checks run there again.
 * Nothing of the repository or of the run is written, and no model is asked.
 */
import { Effect, Result } from "effect"
import { failed, ok, skipped, type Finding } from "../domain/Finding.ts"
import type { TreeId } from "../domain/Ids.ts"
import type { Receipt, ReceiptCheck } from "../domain/Receipt.ts"
import { refuse } from "../domain/Refusal.ts"
import { defaultLimits, type Network, type Task } from "../domain/Task.ts"
import type { Checks } from "../services/Checks.ts"
import { Git } from "../services/Git.ts"
import { Reproduction } from "../services/Reproduction.ts"
import { type OpenWorkspace, Workspaces } from "../services/Workspace.ts"
import { argvOf, dependenciesOf } from "./Prepare.ts"
import { runAlone } from "./Verify.ts"

export interface ReproduceRequest {
  readonly receipt: Receipt
  readonly patch: Uint8Array
  /** Absolute. */
  readonly directory: string
  /** Why its commands are not run: set-up and checks are somebody's; null: they are. */
  readonly unrun: string | null
  /** In place of what the receipt says; null keeps it. */
  readonly deps: string | null
  /** In place of what the receipt says, unless empty. */
  readonly setup: ReadonlyArray<string>
  /** The caller's own word: a receipt opens no network. */
  readonly check_network: Network
  readonly setup_network: Network
}

/** The task that makes the run's workspace again. */
const taskOf = Effect.fnUntraced(function* (request: ReproduceRequest, repository: string) {
  const { receipt } = request
  const run_checks = request.unrun === null
  const requested = receipt.dependencies?.requested ?? "auto"
  if (run_checks && requested === "path" && request.deps === null) {
    return yield* refuse(
      "the run's dependencies came from a directory that a receipt does not name: give one with --deps, or --no-run"
    )
  }
  const setup =
    request.setup.length > 0
      ? yield* Effect.forEach(request.setup, (line) => argvOf("--setup", line))
      : (receipt.dependencies?.setup ?? [])
  const task: Task = {
    instruction: "receipt check",
    repository,
    subdirectory: receipt.subdirectory,
    base: { kind: receipt.base.kind, commit: receipt.base.commit },
    allowed_paths: ["**"],
    verification: { mode: "undeclared" },
    limits: defaultLimits,
    dependencies: run_checks
      ? yield* dependenciesOf(request.deps ?? (requested === "path" ? "none" : requested))
      : { mode: "none" },
    setup: run_checks ? setup : [],
    setup_network: request.setup_network,
    include: run_checks ? (receipt.dependencies?.include ?? []) : [],
    baseline: false
  }
  return task
})

const seconds = (value: number): string => `${value.toFixed(1)} s`

/** One check in a place of its own, as the run's final verification made it. */
const rerun = Effect.fnUntraced(function* (
  workspace: OpenWorkspace,
  tree: TreeId,
  task: Task,
  network: Network,
  { argv, exit_code, name, tests, timeout_seconds, verdict }: ReceiptCheck
): Effect.fn.Return<Finding, never, Checks> {
  const subject = `check ${JSON.stringify(name)}`
  const ran = yield* Effect.result(
    runAlone(
      workspace,
      task,
      tree,
      { name, argv, timeout_seconds, network },
      { purpose: "final", remaining_ms: Effect.succeed(timeout_seconds * 1000) }
    )
  )
  if (Result.isFailure(ran)) return failed(subject, `no place to run it in: ${ran.failure.message}`)
  const { outcome } = ran.success
  const why = outcome.reason === null ? "" : `: ${outcome.reason}`
  if (outcome.verdict !== verdict)
    return failed(subject, `${verdict} in the receipt, ${outcome.verdict} here${why}`)
  const count = outcome.tests === null ? "" : `${outcome.tests} tests, `
  if (outcome.tests !== null && tests !== null && outcome.tests < tests)
    return failed(subject, `${verdict} again, but of ${outcome.tests} tests; the receipt counts ${tests}`)
  const exit = outcome.exit_code === exit_code ? "" : `, exit ${outcome.exit_code} and not ${exit_code}`
  return ok(subject, `${verdict} again (${count}${seconds(outcome.duration_seconds)}${exit})${why}`)
})

type Tell = (finding: Finding) => Effect.Effect<void>

const inWorkspace = Effect.fnUntraced(function* (request: ReproduceRequest, task: Task, tell: Tell) {
  const workspaces = yield* Workspaces
  const reproduction = yield* Reproduction
  const { patch, receipt, unrun } = request
  const place = yield* reproduction.place
  const workspace = yield* workspaces.open({ task, directory: place })
  const base = workspace.prepared.tree
  if (base !== receipt.base.tree) {
    const why =
      receipt.base.kind === "working_tree"
        ? "the run began with uncommitted files, which are not in the repository as they were"
        : "the commit holds another tree"
    return yield* tell(failed("base", `tree ${base}, and the receipt says ${receipt.base.tree}: ${why}`))
  }
  yield* tell(ok("base", `commit ${receipt.base.commit}, tree ${base}`))
  const patched = yield* reproduction.patched({ place, workspace, patch })
  if (patched !== receipt.tree) {
    return yield* tell(failed("tree", `base and patch give ${patched}, and the receipt says ${receipt.tree}`))
  }
  yield* tell(ok("tree", `base and patch give ${patched}`))
  const checks = receipt.checks.filter((check) => check.verdict !== "not_run")
  if (checks.length === 0) return yield* tell(skipped("checks", "the receipt names none that ran"))
  if (unrun !== null) return yield* tell(skipped("checks", `not run again: ${unrun}`))
  for (const check of checks)
    yield* tell(yield* rerun(workspace, patched, task, request.check_network, check))
})

/** Puts the patch on its base in a clone of the repository and runs the checks. `tell` hears of each finding. */
export const reproducePatch = Effect.fn("ReproducePatch.reproducePatch")(function* (
  request: ReproduceRequest,
  tell: Tell
) {
  const git = yield* Git
  const { receipt } = request
  const source = yield* git.source(request.directory).pipe(Effect.mapError((error) => refuse(error.message)))
  const task = yield* taskOf(request, source.root)
  if (receipt.tree === null || receipt.base.tree === null)
    return yield* tell(skipped("tree", "the run handed nothing over"))
  const known = yield* git.resolve(source.root, receipt.base.commit).pipe(Effect.result)
  if (known._tag === "Failure")
    return yield* tell(
      failed("base", `commit ${receipt.base.commit} is not in ${source.root}: ${known.failure.message}`)
    )
  yield* Effect.scoped(inWorkspace(request, task, tell)).pipe(
    Effect.catchTag("WorkspaceError", (error) => tell(failed("tree", error.message)))
  )
})
