/**
 * The end of a run, on every path: patch, logs, terminal event, receipt, and `result.json` last. Everything is made from
 * the folded state, so a run whose process died in here is finished by the next one as if nothing had happened.
 */
import { Effect, Result } from "effect"
import { renderCommandLine } from "../domain/CommandLine.ts"
import { ending, type Ending } from "../domain/Ending.ts"
import type { EventData } from "../domain/Event.ts"
import { fromOctets } from "../domain/Octets.ts"
import * as PathRule from "../domain/PathRule.ts"
import { handedOver } from "../domain/ReceiptFacts.ts"
import { artifactNames, statusOf, type ChangedFile, type RunResult } from "../domain/Result.ts"
import type { RunRequest } from "../domain/Request.ts"
import type { RunState } from "../domain/Run.ts"
import type { Task } from "../domain/Task.ts"
import { totalTokens } from "../domain/Usage.ts"
import { protectedViolation, warningsOf } from "../domain/Warnings.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import type { OpenWorkspace } from "../services/Workspace.ts"
import { collect } from "./Collect.ts"
import { writeReceipt } from "./MakeReceipt.ts"

/** Reading the final state of a workspace takes at most this long. */
const patchTimeout = "60 seconds"

/** Why a patch may not be handed over; null when it may. */
const auditPatch = (task: Task, bytes: Uint8Array, files: ReadonlyArray<ChangedFile>): string | null => {
  const { max_changed_files, max_patch_bytes } = task.limits
  if (files.length > max_changed_files)
    return `it changes ${files.length} files, and ${max_changed_files} are allowed`
  if (bytes.length > max_patch_bytes)
    return `it has ${bytes.length} bytes, and ${max_patch_bytes} are allowed`
  const violation = protectedViolation(task, files)
  if (violation !== null) return violation
  const rule = PathRule.compile(task.allowed_paths)
  if (Result.isFailure(rule)) return `the allowed paths cannot be read: ${rule.failure}`
  const outside = files.find((file) => !PathRule.allows(rule.success, file.path))
  return outside === undefined ? null : `it changes ${outside.path}, which is outside the allowed paths`
}

const logOf = (state: RunState): string =>
  state.checks
    .map(
      ({ outcome, purpose }) =>
        `$ ${renderCommandLine(outcome.argv)}  [${purpose}]\n` +
        `exit=${outcome.exit_code ?? "none"} verdict=${outcome.verdict} duration=${outcome.duration_seconds.toFixed(3)}s\n` +
        `${outcome.reason === null ? "" : `${outcome.reason}\n`}${outcome.output}`
    )
    .join("\n\n")

/** What is handed over: collected already, unless the run ended before it came to that. */
const collected = (
  journal: Journal,
  workspace: OpenWorkspace
): Effect.Effect<EventData<"patch.collected">, string | StoreError> =>
  Effect.gen(function* () {
    const known = yield* journal.state
    if (known.patch !== null) return known.patch
    const tree = yield* workspace.scan
    yield* journal.append({ event_type: "workspace.scanned", data: { tree } })
    return yield* collect(journal, workspace, tree)
  }).pipe(
    Effect.catchTag("WorkspaceError", (error) => Effect.fail(error.message)),
    Effect.timeoutOrElse({
      duration: patchTimeout,
      orElse: () => Effect.fail(`reading the workspace took longer than ${patchTimeout}`)
    }),
    // Around the time-out, not within: who waits for a race can only be interrupted where it waits.
    Effect.interruptible
  )

/** What the files of a bundle hold of a run that ended so, and hands over this patch. */
const evidenceOf = (state: RunState, reason: Ending["reason"], patch: Uint8Array) => {
  const outcomes = reason === "no_changes" ? [] : state.verification
  return {
    patch,
    test_log: logOf(state),
    outcomes,
    verification: `${JSON.stringify(outcomes, null, 2)}\n`
  }
}
type Evidence = ReturnType<typeof evidenceOf>

const writeEvidence = Effect.fnUntraced(function* (journal: Journal, evidence: Evidence) {
  yield* journal.writeFile(artifactNames.patch, evidence.patch)
  yield* journal.writeFile(artifactNames.test_log, evidence.test_log)
  yield* journal.writeFile(artifactNames.verification, evidence.verification)
})

/** The terminal event, after the evidence that it speaks of. */
const end = Effect.fnUntraced(function* (
  journal: Journal,
  task: Task,
  workspace: OpenWorkspace | null,
  wanted: Ending
) {
  const patch =
    workspace === null
      ? { data: null, failure: null }
      : yield* collected(journal, workspace).pipe(
          Effect.map((data) => ({ data, failure: auditPatch(task, fromOctets(data.patch), data.files) })),
          Effect.catchIf(
            (error): error is string => typeof error === "string",
            (failure) => Effect.succeed({ data: null, failure })
          )
        )
  const final =
    patch.failure === null
      ? wanted
      : ending("patch_artifact_failed", `the patch cannot be handed over: ${patch.failure}`)
  const handed = patch.failure === null ? patch.data : null
  const { checks, notes, sandbox } = yield* journal.state
  const warnings =
    handed === null ? [] : warningsOf({ patch: fromOctets(handed.patch), files: handed.files, task, checks })
  const found = [
    ...(sandbox === "host" && checks.length > 0
      ? ["checks ran on this machine with nothing around them (--unsafe-local-exec)"]
      : []),
    ...(patch.data?.unrecorded ?? []),
    ...warnings.map((warning) => `look twice: ${warning.message}`)
  ]
  for (const note of found)
    if (!notes.includes(note)) yield* journal.append({ event_type: "run.noted", data: { note } })
  const bytes = handed === null ? new Uint8Array() : fromOctets(handed.patch)
  yield* writeEvidence(journal, evidenceOf(yield* journal.state, final.reason, bytes))
  yield* journal.append({
    event_type: "run.ended",
    data: {
      status: statusOf(final.reason, task.verification.mode === "waived"),
      terminal_reason: final.reason,
      error: final.error,
      changed_files: handed?.files.map((file) => file.path) ?? [],
      tree: handed?.tree ?? null,
      usage: (yield* journal.state).usage
    }
  })
})

/** Writes everything that a bundle holds, and returns what it says. */
export const finish = Effect.fn("Finish.finish")(function* (options: {
  readonly journal: Journal
  readonly request: RunRequest
  readonly workspace: OpenWorkspace | null
  readonly ending: Ending
}) {
  const { journal, request, workspace } = options
  yield* end(journal, request.task, workspace, options.ending)
  return yield* seal(journal, request)
})

/** What is left to write of a run whose terminal event is in the journal. */
const seal = Effect.fnUntraced(function* (journal: Journal, request: RunRequest) {
  yield* journal.barrier
  const state = yield* journal.state
  const { ended } = state
  if (ended === null) return yield* Effect.die("sealed before its end")
  yield* journal.checkpoint
  const { outcomes, test_log, verification } = evidenceOf(
    state,
    ended.terminal_reason,
    handedOver(state).bytes
  )
  yield* writeReceipt({ journal, request, test_log, verification })
  const result: RunResult = {
    schema_version: 1,
    run_id: journal.run_id,
    status: ended.status,
    terminal_reason: ended.terminal_reason,
    summary: state.summary,
    error: ended.error,
    changed_files: ended.changed_files,
    verification: outcomes,
    usage: { ...state.usage, total_tokens: totalTokens(state.usage) },
    model_usage: state.model_usage,
    steps: state.step,
    base_sha: request.task.base.commit,
    tree: ended.tree,
    notes: state.notes,
    artifacts: artifactNames
  }
  yield* journal.writeFile(artifactNames.result, `${JSON.stringify(result, null, 2)}\n`)
  return result
})

/** Finishes the bundle of a run that had ended, and whose process died before it was written. */
export const finishAgain = Effect.fn("Finish.finishAgain")(function* (journal: Journal, request: RunRequest) {
  const state = yield* journal.state
  if (state.ended !== null)
    yield* writeEvidence(journal, evidenceOf(state, state.ended.terminal_reason, handedOver(state).bytes))
  return yield* seal(journal, request)
})
