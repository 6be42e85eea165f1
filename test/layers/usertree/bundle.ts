import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import type { RunEvent } from "../../../src/domain/Event.ts"
import { RunId, TreeId } from "../../../src/domain/Ids.ts"
import { toOctets } from "../../../src/domain/Octets.ts"
import type { RunRequest } from "../../../src/domain/Request.ts"
import { statusOf, type TerminalReason } from "../../../src/domain/Result.ts"
import { zero } from "../../../src/domain/Usage.ts"
import * as Store from "../../../src/layers/journal/Store.ts"
import { finishAgain } from "../../../src/programs/Finish.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import type { PatchSource } from "../../../src/services/UserTree.ts"
import { exampleTask } from "../../support/tasks.ts"

export interface BundleSpec {
  readonly run_root: string
  readonly run_id: string
  readonly repository: string
  readonly source: PatchSource
  readonly reason?: TerminalReason
  readonly instruction?: string
  /** The tree of the work tree that the run began on; absent: it began on the commit. */
  readonly working_tree?: TreeId
}

/** A run that ended, as its journal would have it, without any model. Returns its directory. */
export const makeBundle = (spec: BundleSpec): Promise<string> => {
  const { repository, run_id, source } = spec
  const { base_commit } = source
  const reason = spec.reason ?? "verified"
  const tree = source.tree ?? TreeId.make(base_commit)
  const request: RunRequest = {
    schema_version: 1,
    task: {
      ...exampleTask,
      instruction: spec.instruction ?? "Fix add.\n\nIt subtracts.",
      repository,
      base: { kind: spec.working_tree === undefined ? "commit" : "working_tree", commit: base_commit }
    },
    models: [{ provider: "openai-compatible", model: "m", endpoint: null }],
    prompt_version: "test",
    sandbox: "host"
  }
  const outcome = {
    name: "check-1",
    argv: ["node", "--test"],
    verdict: "passed",
    exit_code: 0,
    duration_seconds: 0.1,
    tests: 1,
    reason: null,
    output: "ok\n"
  } as const
  const events: ReadonlyArray<RunEvent> = [
    {
      event_type: "workspace.prepared",
      data: {
        base_sha: base_commit,
        tree: spec.working_tree ?? tree,
        left_out: [],
        dependencies: { requested: { mode: "auto" }, copied: [], lock_digest: null, reason: null },
        setup: []
      }
    },
    { event_type: "workspace.scanned", data: { tree } },
    {
      event_type: "patch.collected",
      data: { tree, files: [], patch: toOctets(source.patch), unrecorded: [] }
    },
    { event_type: "verification.settled", data: { tree, outcomes: reason === "verified" ? [outcome] : [] } },
    {
      event_type: "run.ended",
      data: {
        status: statusOf(reason, false),
        terminal_reason: reason,
        error: null,
        changed_files: [],
        tree,
        usage: zero
      }
    }
  ]
  return Effect.gen(function* () {
    const store = yield* RunStore
    const journal = yield* store.create({
      run_id: RunId.make(run_id),
      request,
      created: { provider: "openai-compatible", model: "m", prompt_version: "test", base_sha: base_commit }
    })
    for (const event of events) yield* journal.append(event)
    yield* finishAgain(journal, request)
    return journal.directory
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.mergeAll(
        Store.layer({ run_root: spec.run_root }).pipe(
          Layer.provide(Layer.mergeAll(NodeServices.layer, NodeCrypto.layerSecureRandom))
        ),
        NodeCrypto.layerDigest
      )
    ),
    Effect.runPromise
  )
}
