/**
 * Another Effect app runs looplane's loop. Two layers are its own: who approves an action, and which model answers (here
 * a recorded one, so that the example runs anywhere). Everything else is the product's.
 *
 *   node examples/embed/main.ts REPOSITORY RUN_ROOT
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer, Schema } from "effect"
import { Approval, Ids, Model, Observer, prepareTask, run } from "looplane"
import { chooseSandbox, layerRead, layerRun } from "looplane/layers"
import { recordedModel } from "looplane/testing"
import { readFileSync } from "node:fs"

/** This app lets edits happen under src only, and writes down what it was asked. */
const layerApproval = Layer.sync(Approval.Approval, () => {
  const underSrc = / src\//
  return Approval.Approval.of({
    standing: (request) =>
      request.effect === "read" || request.reason !== "model_tool" ? "allow_once" : null,
    ask: (request) =>
      Console.log(`asked: ${request.effect} ${request.action_id}`).pipe(
        Effect.as(underSrc.test(request.preview) || request.effect === "execute" ? "allow_once" : "deny")
      )
  })
})

const layerModels = Layer.effect(
  Model.Models,
  Effect.map(
    recordedModel(JSON.parse(readFileSync(new URL("./turns.json", import.meta.url), "utf8"))),
    (model) => Model.Models.of({ candidates: [model] })
  )
)

const program = Effect.gen(function* () {
  const [repository = ".", runRoot = "runs"] = process.argv.slice(2)
  const task = yield* prepareTask({
    instruction: "Fix add().",
    directory: repository,
    run_root: runRoot,
    checks: ["node --test"],
    no_check: false,
    checks_required: true,
    allowed_paths: ["**"],
    protected_paths: [],
    base_revision: null,
    working_tree: false,
    max_steps: 20,
    wall_time_seconds: 600,
    check_timeout_seconds: null,
    check_network: "none",
    setup_network: "none",
    max_total_tokens: null,
    deps: "auto",
    setup: [],
    include: [],
    baseline: true
  }).pipe(Effect.provide(layerRead))
  // In a sandbox where one holds, and on this machine where none does.
  const sandbox = yield* chooseSandbox({
    sandbox_checks: null,
    unsafe_local_exec: true,
    backend: null,
    runRoot,
    ownPrograms: []
  }).pipe(Effect.provide(layerRead))
  const run_id = yield* Schema.decodeEffect(Ids.RunId)("embedded-1")
  const { directory, result } = yield* run(task, { run_id }).pipe(
    Effect.provideService(Observer.Observer, {
      entry: (entry) => Console.log(`${entry.sequence} ${entry.event.event_type}`),
      delta: () => Effect.void
    }),
    Effect.provide(layerRun({ runRoot, sandbox }).pipe(Layer.merge(layerApproval), Layer.merge(layerModels)))
  )
  yield* Console.log(
    `${result.terminal_reason}: ${result.changed_files.join(", ")} (${directory}/changes.patch)`
  )
})

program.pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain())
