/**
 * `exec` and the default command: from flags to a finished run and its exit code.
 */
import { Effect, FileSystem, Layer, Option, Path } from "effect"
import { refuse } from "../../domain/Refusal.ts"
import { runsCommands } from "../../domain/Task.ts"
import { chooseModels } from "../../programs/ChooseModels.ts"
import { prepareTask } from "../../programs/Prepare.ts"
import { run } from "../../programs/Run.ts"
import { chooseSandbox, layerNoCommands, layerRead, layerRun, makeModels } from "../../layers/Live.ts"
import { Models } from "../../services/Model.ts"
import { Observer } from "../../services/Observer.ts"
import { Settings } from "../../services/Settings.ts"
import { homeOf } from "../home.ts"
import { newRunId } from "../runId.ts"
import { runRootOf } from "../runRoot.ts"
import type { RunInput } from "../flags.ts"
import { endWith, refused } from "../io.ts"
import { laterFlag } from "../later.ts"
import { sandboxRequest } from "../sandbox.ts"
import { readPrompt } from "../prompt.ts"
import { ending, observerOf, type Output } from "./present.ts"

interface RunMode {
  readonly checksRequired: boolean
  /** Headless: nothing is asked. */
  readonly print: boolean
  /** null: JSON in a pipe, text on a terminal. */
  readonly defaultOutput: "json" | null
  readonly command: string
}

const outputOf = (input: RunInput, mode: RunMode): Output =>
  Option.getOrElse(
    input.output,
    (): Output => mode.defaultOutput ?? (mode.print && !process.stdout.isTTY ? "json" : "text")
  )

const positive = (flag: string, value: number | null) =>
  value !== null && !(value > 0) ? Effect.fail(refuse(`${flag} must be greater than 0`)) : Effect.void

/** A home that is not there is no place to keep runs: nobody would look for them in one that was made for them. */
const demandHome = Effect.fnUntraced(function* (run_root: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = homeOf(process.env)
  if (
    home === null ||
    !run_root.startsWith(`${path.resolve(home)}${path.sep}`) ||
    (yield* Effect.orElseSucceed(fs.exists(home), () => true))
  )
    return
  return yield* refuse(
    `no run can be kept in ${run_root}: the home directory ${home} does not exist; choose another place with --run-root`
  )
})

/** Everything that can be refused is refused here, before anything exists. */
const prepare = Effect.fnUntraced(function* (input: RunInput, mode: RunMode, instruction: string) {
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const settings = yield* Settings
  const directory = path.resolve(input.directory)
  const info = yield* fs.stat(directory).pipe(Effect.option)
  if (Option.isNone(info) || info.value.type !== "Directory") {
    return yield* refuse(`${input.directory} is not a directory: name a repository with -C`)
  }
  const base = Option.getOrNull(input.base)
  if (base !== null && base !== "working-tree") {
    return yield* refuse(`--base ${base}: only working-tree is known; a commit goes into --base-sha`)
  }
  yield* positive("--max-steps", input.maxSteps)
  yield* positive("--wall-time", input.wallTime)
  yield* positive("--max-total-tokens", Option.getOrNull(input.maxTotalTokens))
  yield* positive("--check-timeout", Option.getOrNull(input.checkTimeout))
  const specs = yield* chooseModels({
    provider: Option.getOrNull(input.provider),
    model: Option.getOrNull(input.model),
    api_url: Option.getOrNull(input.apiUrl),
    fallback_models: input.fallbackModel
  })
  const candidates = yield* makeModels(specs, { allowCustomEndpoint: input.allowCustomEndpoint })
  const config = yield* settings.config.pipe(Effect.mapError((error) => refuse(error.message)))
  const run_root = yield* runRootOf(input)
  yield* demandHome(run_root)
  const task = yield* prepareTask({
    instruction,
    directory,
    run_root,
    checks: input.check,
    no_check: input.noCheck,
    checks_required: mode.checksRequired,
    allowed_paths: input.allowedPath.length > 0 ? input.allowedPath : ["**"],
    protected_paths: input.protect,
    base_revision: Option.getOrNull(input.baseSha),
    working_tree: base === "working-tree",
    max_steps: input.maxSteps,
    wall_time_seconds: input.wallTime,
    check_timeout_seconds: Option.getOrNull(input.checkTimeout),
    max_total_tokens: Option.getOrNull(input.maxTotalTokens),
    deps: input.deps,
    setup: input.setup.length > 0 ? input.setup : (config.setup ?? []),
    include: input.include,
    baseline: input.baseline,
    check_network: Option.getOrElse(input.checkNetwork, () => config.check_network ?? "none"),
    setup_network: Option.getOrElse(input.setupNetwork, () => config.setup_network ?? "none")
  })
  const sandbox = runsCommands(task)
    ? yield* chooseSandbox(sandboxRequest(input, run_root, task.repository))
    : layerNoCommands
  return { candidates, task, run_root, sandbox }
})

/** Runs the task that the flags describe, and ends the process with the run's exit code. */
export const runTask = Effect.fn("cli.runTask")(function* (input: RunInput, mode: RunMode) {
  const later = laterFlag(input)
  if (later !== null) return yield* endWith(2, later)
  const output = outputOf(input, mode)
  const prepared = yield* Effect.gen(function* () {
    const instruction = yield* readPrompt(input.prompt, Option.getOrNull(input.task), mode)
    return yield* prepare(input, mode, instruction)
  }).pipe(Effect.provide(layerRead), Effect.catchTags({ Refusal: refused, SettingsError: refused }))
  const { announce, leave } = ending(prepared.task, output)
  const finished = yield* run(prepared.task, {
    run_id: yield* newRunId,
    allow_custom_endpoint: input.allowCustomEndpoint,
    announce
  }).pipe(
    Effect.provideService(Observer, observerOf(output)),
    Effect.provide(
      layerRun({ runRoot: prepared.run_root, sandbox: prepared.sandbox }).pipe(
        Layer.provideMerge(Layer.succeed(Models, Models.of({ candidates: prepared.candidates })))
      )
    ),
    Effect.catchTags({
      Refusal: refused,
      StoreError: (error) => endWith(1, error.message)
    })
  )
  return yield* leave(finished)
})
