// Writes one bundle that holds every type of event into test/fixtures/store-v<n>/. A fixture that has been released is
// never written again: it proves that bundles of that version still open.
import { NodeFileSystem, NodePath, NodeRuntime } from "@effect/platform-node"
import { Effect, FileSystem, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { fileURLToPath } from "node:url"
import { storeVersion, type RunEvent } from "../../../src/domain/Event.ts"
import { Digest, TreeId } from "../../../src/domain/Ids.ts"
import { toOctets } from "../../../src/domain/Octets.ts"
import { modelError } from "../../../src/domain/ModelError.ts"
import * as Store from "../../../src/layers/journal/Store.ts"
import { created, outcome, runId, story, task, wholeRun } from "./support.ts"

const error = modelError({
  provider: "scripted",
  model: "recorded",
  kind: "rate_limit",
  message: "slow down",
  status_code: 429,
  retry_after_ms: 1500
}).facts
const id = "every-event"
const tree = TreeId.make("3".repeat(40))
const approval = { request_id: "a1", action_id: "call_1", effect: "modify" } as const
const ids = story.flatMap((event) => (event.event_type === "tool.started" ? [event.data.tool_call_id] : []))
const calls = story.flatMap((event) =>
  event.event_type === "model.completed" ? event.data.turn.tool_calls : []
)

const { base_sha } = created
const successor = {
  provider: "scripted",
  model: "recorded",
  base_sha,
  resumed_step: 1,
  models: [{ provider: "scripted", model: "recorded", endpoint: "http://127.0.0.1:1/v1" }]
} as const

const others: ReadonlyArray<RunEvent> = [
  {
    event_type: "repository.read",
    data: { files: 1, overview: "add.js", instructions: [{ source: "AGENTS.md", content: "Be brief." }] }
  },
  {
    event_type: "model.exchanged",
    data: {
      step: 1,
      attempt: 1,
      provider: "scripted",
      model: "recorded",
      exchange: {
        sent: Digest.make("5".repeat(64)),
        answered_at_ms: 1_764_000_000_000,
        status: 200,
        headers: { "content-type": "text/event-stream" },
        body: toOctets(new Uint8Array([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a])),
        pieces: [4, 3],
        fault: { kind: "silent", code: "ETIMEDOUT", message: "nothing came for 60 seconds" }
      }
    }
  },
  { event_type: "model.retry", data: { step: 1, attempt: 2, delay_ms: 1500, error } },
  {
    event_type: "model.fallback",
    data: {
      step: 1,
      from_provider: "scripted",
      from_model: "recorded",
      to_provider: "scripted",
      to_model: "spare",
      error
    }
  },
  { event_type: "model.failed", data: { step: 1, error } },
  ...calls.map((call): RunEvent => ({ event_type: "tool.requested", data: { call, effect: "modify" } })),
  { event_type: "tool.batch_started", data: { tool_call_ids: ids } },
  { event_type: "tool.batch_completed", data: { tool_call_ids: ids } },
  {
    event_type: "approval.requested",
    data: { ...approval, reason: "model_tool", preview: "- a - b\n+ a + b" }
  },
  { event_type: "approval.resolved", data: { ...approval, decision: "allow_once" } },
  {
    event_type: "verification.started",
    data: { name: outcome.name, argv: outcome.argv, purpose: "final", tree }
  },
  { event_type: "loop.read_only_stall_nudge", data: { consecutive_read_only_steps: 8, steps_remaining: 12 } },
  { event_type: "loop.wind_down_started", data: { step: 59 } },
  { event_type: "loop.wind_down_completed", data: { content: "The edit is made, the check was not run." } },
  { event_type: "loop.wind_down_failed", data: { message: "no answer" } },
  {
    event_type: "conversation.appended",
    data: {
      item: { role: "context", source: "verification", content: "\ud83d\ude80 told once more: \ud800" }
    }
  },
  { event_type: "run.noted", data: { note: "left out: scratch.txt" } },
  { event_type: "run.interrupted", data: { reason: "SIGINT" } },
  { event_type: "session.resumed", data: { ...successor, active_ms: 1250, lost_events: 0 } },
  { event_type: "workspace.restored", data: { tree, found: null } },
  {
    event_type: "approval.abandoned",
    data: { ...approval, request_id: "a2", reason: "process_interrupted_before_decision" }
  },
  {
    event_type: "run.forked",
    data: {
      run_id: runId(id),
      source_run_id: runId("an-earlier-run"),
      fork_point_sequence: 30,
      fork_point_event_type: "approval.abandoned",
      base_sha
    }
  },
  { event_type: "workspace.scanned", data: { tree } },
  {
    event_type: "patch.collected",
    data: {
      tree,
      files: [{ path: "add.js", change: "modified" }],
      patch: toOctets(new TextEncoder().encode("diff --git a/add.js b/add.js\n")),
      unrecorded: ["an empty directory: empty"]
    }
  }
]
/** A run that ended and took a follow-up task ends again. */
const again: ReadonlyArray<RunEvent> = [
  ...story.slice(-1),
  { event_type: "session.continued", data: { ...successor, active_ms: 0, instruction: task.instruction } },
  ...story.slice(-1)
]

const runRoot = fileURLToPath(new URL(`../../fixtures/store-v${storeVersion}`, import.meta.url))
const platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)
Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  yield* wholeRun(id, [...story.slice(0, -1), ...others, ...again])
  yield* fs.remove(`${runRoot}/${id}/${Store.lockName}`)
}).pipe(Effect.provide(Layer.provideMerge(Store.layer({ run_root: runRoot }), platform)), NodeRuntime.runMain)
