// Writes one bundle that holds every type of event into test/fixtures/store-v<n>/. A fixture that has been released is
// never written again: it proves that bundles of that version still open.
import { NodeFileSystem, NodePath, NodeRuntime } from "@effect/platform-node"
import { Effect, FileSystem, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { fileURLToPath } from "node:url"
import { storeVersion, type RunEvent } from "../../../src/domain/Event.ts"
import { TreeId } from "../../../src/domain/Ids.ts"
import { modelError } from "../../../src/domain/ModelError.ts"
import * as Store from "../../../src/layers/journal/Store.ts"
import { outcome, story, wholeRun } from "./support.ts"

const error = modelError({
  provider: "scripted",
  model: "recorded",
  kind: "rate_limit",
  message: "slow down",
  status_code: 429,
  retry_after_ms: 1500
}).facts
const tree = TreeId.make("3".repeat(40))
const approval = { request_id: "a1", action_id: "call_1", effect: "modify" } as const
const ids = story.flatMap((event) => (event.event_type === "tool.started" ? [event.data.tool_call_id] : []))
const calls = story.flatMap((event) =>
  event.event_type === "model.completed" ? event.data.turn.tool_calls : []
)

const others: ReadonlyArray<RunEvent> = [
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
  { event_type: "run.interrupted", data: { reason: "SIGINT" } }
]

const runRoot = fileURLToPath(new URL(`../../fixtures/store-v${storeVersion}`, import.meta.url))
const platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)
const id = "every-event"
Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  yield* wholeRun(id, [...story.slice(0, -1), ...others, ...story.slice(-1)])
  yield* fs.remove(`${runRoot}/${id}/${Store.lockName}`)
}).pipe(Effect.provide(Layer.provideMerge(Store.layer({ run_root: runRoot }), platform)), NodeRuntime.runMain)
