/**
 * A run from its first event to its last: the journal is opened, the clone is made beside the first request, moves
 * follow each other, and everything is left behind as a bundle.
 */
import { Cause, Effect, Exit, Fiber, Ref } from "effect"
import { ending } from "../domain/Ending.ts"
import type { RunId } from "../domain/Ids.ts"
import { refuse } from "../domain/Refusal.ts"
import type { RunRequest } from "../domain/Request.ts"
import type { RunResult } from "../domain/Result.ts"
import { promptVersion } from "../domain/SystemPrompt.ts"
import { checksOf, type Task } from "../domain/Task.ts"
import { Checks } from "../services/Checks.ts"
import { Models, type Model } from "../services/Model.ts"
import { RunStore, type Journal, type StoreError } from "../services/RunStore.ts"
import { Sandbox } from "../services/Sandbox.ts"
import { Tools, type EditedFiles, type ToolContext } from "../services/Tools.ts"
import { Workspaces, type OpenWorkspace, type WorkspaceError } from "../services/Workspace.ts"
import { finish } from "./Finish.ts"
import { loop } from "./Loop.ts"
import { makeStopwatch, type Stopwatch } from "./Stopwatch.ts"
import { preflight, runCheck, type Verifying } from "./Verify.ts"

/** What became of a run that ended: the result as it is on disk, and where the bundle is. */
export interface FinishedRun {
  readonly result: RunResult
  readonly directory: string
}

export interface Announcing<E> {
  /** Hears of the result in the region that ended the run, so that no interruption comes between the two. */
  readonly announce?: (finished: FinishedRun) => Effect.Effect<void, E>
}

const recorded = ({ endpoint, model, provider }: Model) => ({ provider, model, endpoint })

/** Models as request and journal name them. */
export const modelsOf = ([first, ...rest]: Models["Service"]["candidates"]): RunRequest["models"] => [
  recorded(first),
  ...rest.map(recorded)
]

/** How long the last words of an interrupted run may take: Ctrl-C must be answered within two seconds. */
const interruptTimeout = "1 second"

/** A workspace that is made, and what came along. Its time is set-up time, which the run's clock does not count. */
const prepareWorkspace = Effect.fnUntraced(function* (journal: Journal, task: Task) {
  const workspaces = yield* Workspaces
  const workspace = yield* workspaces.open({ task, directory: journal.directory })
  yield* journal.append({ event_type: "workspace.prepared", data: workspace.prepared })
  return workspace
})

/** Sizes that nobody knows: every edit is then measured by a diff of the whole patch. */
const unmeasured: EditedFiles = new Map([
  ["", { before: { bytes: Infinity, lines: Infinity }, after: { bytes: Infinity, lines: Infinity } }]
])

/** Everything that happens between the first event of this process and the ending. */
const story = Effect.fnUntraced(function* (
  journal: Journal,
  task: Task,
  stopwatch: Stopwatch,
  opened: Ref.Ref<OpenWorkspace | null>,
  restored: OpenWorkspace | null
) {
  const { candidates } = yield* Models
  const checks = yield* Checks
  const known = yield* journal.state
  yield* Effect.forkScoped(candidates[0].warm)
  const opening = yield* (
    restored === null ? prepareWorkspace(journal, task) : Effect.succeed(restored)
  ).pipe(
    Effect.tap((workspace) => Ref.set(opened, workspace)),
    Effect.forkScoped({ startImmediately: true })
  )
  const workspace: Effect.Effect<OpenWorkspace, WorkspaceError | StoreError> = stopwatch.pause(
    Fiber.join(opening)
  )
  const verifying = (open: OpenWorkspace): Verifying => ({ journal, task, workspace: open, stopwatch })
  const edited = yield* Ref.make<EditedFiles>(known.tree === known.base_tree ? new Map() : unmeasured)
  const context = Effect.map(workspace, (open): ToolContext => ({
    edited,
    workspace: open,
    limits: task.limits,
    allowed_paths: task.allowed_paths,
    protected_paths: task.protected_paths ?? [],
    run_check: (name) =>
      Effect.gen(function* () {
        const check = checksOf(task).find((declared) => declared.name === name)
        if (check === undefined) return null
        return yield* runCheck(verifying(open), check, yield* open.tree, "model").pipe(
          Effect.provideService(Checks, checks)
        )
      })
  }))
  const tools = yield* Tools
  const standing = candidates.findIndex(
    ({ model, provider }) => provider === known.provider && model === known.model
  )
  const turns = loop({
    journal,
    task,
    stopwatch,
    tools: tools.toolset({ check_names: checksOf(task).map((check) => check.name) }),
    candidates,
    position: yield* Ref.make(Math.max(0, standing)),
    context,
    workspace
  })
  const baseline = yield* Fiber.join(opening).pipe(
    Effect.flatMap((open) => (task.baseline ? preflight(verifying(open)) : Effect.succeed(null))),
    Effect.forkScoped
  )
  // Nothing that a turn could bring would help when the clone cannot be made, or a check can never run here.
  const inVain = Fiber.join(baseline).pipe(
    Effect.flatMap((why) => (why === null ? Effect.never : Effect.succeed(ending("could_not_verify", why))))
  )
  const ended = yield* Effect.raceFirst(turns, inVain)
  // What was red before is evidence: a model that was faster than the checks waits for it.
  if (ended.reason === "verified" || ended.reason === "checks_failed") yield* Fiber.await(baseline)
  yield* journal.rendezvous
  return ended
})

/** An interrupted run is not over: it says so, and `resume` takes it from there. */
const recordInterruption = (journal: Journal) =>
  journal
    .append({ event_type: "run.interrupted", data: { reason: "interrupted" } })
    .pipe(
      Effect.andThen(journal.barrier),
      Effect.andThen(journal.checkpoint),
      Effect.interruptible,
      Effect.timeoutOption(interruptTimeout),
      Effect.ignore
    )

/**
 * Plays a run whose journal is open to its end, in the workspace that it had, if it had one. Interrupting it leaves the
 * run without a terminal event, and its bundle says so.
 */
export const play = Effect.fnUntraced(function* <E = never>(
  journal: Journal,
  request: RunRequest,
  used_ms: number,
  restored: OpenWorkspace | null,
  { announce }: Announcing<E>
) {
  const { task } = request
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const stopwatch = yield* makeStopwatch(task.limits.wall_time_seconds * 1000, used_ms)
      const opened = yield* Ref.make<OpenWorkspace | null>(restored)
      const exit = yield* restore(
        Effect.scoped(story(journal, task, stopwatch, opened, restored)).pipe(
          Effect.catchTags({
            GitError: (error) => Effect.succeed(ending("workspace_failed", error.message)),
            WorkspaceError: (error) => Effect.succeed(ending("workspace_failed", error.message)),
            ApprovalUnavailable: (error) => Effect.succeed(ending("approval_unavailable", error.message))
          })
        )
      ).pipe(Effect.exit)
      if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) {
        yield* recordInterruption(journal)
        return yield* Effect.failCause(exit.cause)
      }
      if (Exit.isFailure(exit) && Cause.hasFails(exit.cause)) return yield* Effect.failCause(exit.cause)
      if (Exit.isFailure(exit)) yield* Effect.logError("the run died of a defect", exit.cause)
      const result = yield* finish({
        journal,
        request,
        workspace: yield* Ref.get(opened),
        ending: Exit.isSuccess(exit)
          ? exit.value
          : ending("error", "looplane itself failed; the log file of the run has the details")
      }).pipe(Effect.onInterrupt(() => recordInterruption(journal)))
      const finished: FinishedRun = { result, directory: journal.directory }
      if (announce !== undefined) yield* announce(finished)
      return finished
    })
  )
})

/** The run's bundle, with its first event. A place that cannot keep one is a refusal: nothing has happened yet. */
const openJournal = Effect.fnUntraced(function* (run_id: RunId, request: RunRequest) {
  const store = yield* RunStore
  const [{ model, provider }] = request.models
  const creating = store.create({
    run_id,
    request,
    created: {
      provider,
      model,
      prompt_version: request.prompt_version,
      base_sha: request.task.base.commit,
      sandbox: request.sandbox
    }
  })
  return yield* Effect.mapError(creating, ({ message }) =>
    refuse(`no run can be kept there: ${message}; choose another place with --run-root`)
  )
})

export interface RunOptions {
  readonly run_id: RunId
  /** Recorded, so that resuming the run needs no flag again. */
  readonly allow_custom_endpoint?: boolean
}

/**
 * Runs a task to its end. Fails only with a `Refusal` before anything ran and when the store does; everything else is a
 * result.
 */
export const run = Effect.fn("Run.run")(function* <E = never>(
  task: Task,
  options: RunOptions & Announcing<E>
) {
  const { allow_custom_endpoint, run_id } = options
  const request: RunRequest = {
    schema_version: 1,
    task,
    models: modelsOf((yield* Models).candidates),
    ...(allow_custom_endpoint === true ? { allow_custom_endpoint } : {}),
    prompt_version: promptVersion,
    sandbox: (yield* Sandbox).kind
  }
  const journal = yield* openJournal(run_id, request)
  return yield* play(journal, request, 0, null, options)
}, Effect.scoped)
