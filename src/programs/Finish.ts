/**
 * The end of a run, on every path: patch, logs, checkpoint, terminal event, and `result.json` last.
 */
import { Effect, Result } from "effect"
import * as PathRule from "../domain/PathRule.ts"
import { artifactNames, statusOf, type ChangedFile, type RunResult } from "../domain/Result.ts"
import type { RunState } from "../domain/Run.ts"
import type { Task } from "../domain/Task.ts"
import { renderCommandLine } from "../domain/CommandLine.ts"
import { totalTokens } from "../domain/Usage.ts"
import type { TreeId } from "../domain/Ids.ts"
import type { Journal } from "../services/RunStore.ts"
import type { OpenWorkspace } from "../services/Workspace.ts"
import { ending, type Ending } from "./Ending.ts"

/** Reading the final state of a workspace takes at most this long. */
const patchTimeout = "60 seconds"

interface Patch {
  readonly bytes: Uint8Array
  readonly files: ReadonlyArray<ChangedFile>
  readonly tree: TreeId | null
  readonly notes: ReadonlyArray<string>
}

const noPatch: Patch = { bytes: new Uint8Array(), files: [], tree: null, notes: [] }

/** Why a patch may not be handed over; null when it may. */
export const auditPatch = (
  task: Task,
  bytes: Uint8Array,
  files: ReadonlyArray<ChangedFile>
): string | null => {
  const { max_changed_files, max_patch_bytes } = task.limits
  if (files.length > max_changed_files)
    return `it changes ${files.length} files, and ${max_changed_files} are allowed`
  if (bytes.length > max_patch_bytes)
    return `it has ${bytes.length} bytes, and ${max_patch_bytes} are allowed`
  const rule = PathRule.compile(task.allowed_paths)
  if (Result.isFailure(rule)) return `the allowed paths cannot be read: ${rule.failure}`
  const outside = files.find((file) => !PathRule.allows(rule.success, file.path))
  return outside === undefined ? null : `it changes ${outside.path}, which is outside the allowed paths`
}

const collect = (workspace: OpenWorkspace, verified: TreeId | null): Effect.Effect<Patch, string> =>
  Effect.gen(function* () {
    const tree = verified ?? (yield* workspace.scan)
    const { files, patch } = yield* workspace.diff(tree)
    return { bytes: patch, files, tree, notes: yield* workspace.unrecorded }
  }).pipe(
    Effect.mapError((error) => error.message),
    Effect.timeoutOrElse({
      duration: patchTimeout,
      orElse: () => Effect.fail(`reading the workspace took longer than ${patchTimeout}`)
    }),
    // Around the time-out, not within: who waits for a race can only be interrupted where it waits.
    Effect.interruptible
  )

const logOf = (state: RunState): string =>
  state.checks
    .map(
      ({ outcome, purpose }) =>
        `$ ${renderCommandLine(outcome.argv)}  [${purpose}]\n` +
        `exit=${outcome.exit_code ?? "none"} verdict=${outcome.verdict} duration=${outcome.duration_seconds.toFixed(3)}s\n` +
        `${outcome.reason === null ? "" : `${outcome.reason}\n`}${outcome.output}`
    )
    .join("\n\n")

/** Writes everything that a bundle holds, and returns what it says. `verified` is the tree that passed, if one did. */
export const finish = Effect.fn("Finish.finish")(function* (options: {
  readonly journal: Journal
  readonly task: Task
  readonly workspace: OpenWorkspace | null
  readonly verified: TreeId | null
  readonly ending: Ending
}) {
  const { journal, task, workspace } = options
  const collected =
    workspace === null
      ? { patch: noPatch, failure: null }
      : yield* collect(workspace, options.verified).pipe(
          Effect.match({
            onSuccess: (patch) => ({ patch, failure: auditPatch(task, patch.bytes, patch.files) }),
            onFailure: (failure) => ({ patch: noPatch, failure })
          })
        )
  const refusedPatch = collected.failure !== null
  const patch = refusedPatch ? { ...noPatch, notes: collected.patch.notes } : collected.patch
  const final = refusedPatch
    ? ending("patch_artifact_failed", `the patch cannot be handed over: ${collected.failure}`)
    : options.ending
  for (const note of patch.notes) yield* journal.append({ event_type: "run.noted", data: { note } })

  const changed_files = patch.files.map((file) => file.path)
  const status = statusOf(final.reason, task.verification.mode === "waived")
  const before = yield* journal.state
  yield* journal.writeFile(artifactNames.patch, patch.bytes)
  yield* journal.writeFile(artifactNames.test_log, logOf(before))
  const settled = final.reason === "no_changes" ? [] : before.verification
  yield* journal.writeFile(artifactNames.verification, `${JSON.stringify(settled, null, 2)}\n`)
  yield* journal.append({
    event_type: "run.ended",
    data: {
      status,
      terminal_reason: final.reason,
      error: final.error,
      changed_files,
      tree: patch.tree,
      usage: before.usage
    }
  })
  yield* journal.barrier
  const state = yield* journal.state
  yield* journal.checkpoint
  const result: RunResult = {
    schema_version: 1,
    run_id: journal.run_id,
    status,
    terminal_reason: final.reason,
    summary: state.summary,
    error: final.error,
    changed_files,
    verification: settled,
    usage: { ...state.usage, total_tokens: totalTokens(state.usage) },
    model_usage: state.model_usage,
    steps: state.step,
    base_sha: task.base.commit,
    tree: patch.tree,
    notes: state.notes,
    artifacts: artifactNames
  }
  yield* journal.writeFile(artifactNames.result, `${JSON.stringify(result, null, 2)}\n`)
  return result
})
