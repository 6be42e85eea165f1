/**
 * `exec` and the default command: from flags to a finished run and its exit code.
 */
import { Effect, FileSystem, Layer, Option, Path, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { JournalEntry } from "../../domain/Event.ts"
import { RunId } from "../../domain/Ids.ts"
import { toLine } from "../../domain/JournalCodec.ts"
import { refuse } from "../../domain/Refusal.ts"
import { exitCodeOf } from "../../domain/Result.ts"
import { chooseModels } from "../../programs/ChooseModels.ts"
import { prepareTask } from "../../programs/Prepare.ts"
import { run, type FinishedRun } from "../../programs/Run.ts"
import { layerRead, layerRun, makeModels } from "../../layers/Live.ts"
import { Models } from "../../services/Model.ts"
import { Observer } from "../../services/Observer.ts"
import { Settings } from "../../services/Settings.ts"
import type { RunInput } from "../flags.ts"
import { CliExit } from "../exit.ts"
import { endWith, showOut, writeErr, writeOut } from "../io.ts"
import { laterFlag } from "../later.ts"
import { readPrompt } from "../prompt.ts"
import { progressLine } from "../render/progress.ts"
import { absolute, resultText } from "../render/result.ts"

export interface RunMode {
  readonly checksRequired: boolean
  /** Headless: nothing is asked. */
  readonly print: boolean
  /** null: JSON in a pipe, text on a terminal. */
  readonly defaultOutput: "json" | null
  readonly command: string
}

type Output = "text" | "json" | "jsonl"

const outputOf = (input: RunInput, mode: RunMode): Output =>
  Option.getOrElse(
    input.output,
    (): Output => mode.defaultOutput ?? (mode.print && !process.stdout.isTTY ? "json" : "text")
  )

const positive = (flag: string, value: number | null) =>
  value !== null && !(value > 0) ? Effect.fail(refuse(`${flag} must be greater than 0`)) : Effect.void

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
  const run_root = path.resolve(Option.getOrElse(input.runRoot, () => settings.run_root))
  const task = yield* prepareTask({
    instruction,
    directory,
    run_root,
    checks: input.check,
    no_check: input.noCheck,
    checks_required: mode.checksRequired,
    allowed_paths: input.allowedPath.length > 0 ? input.allowedPath : ["**"],
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
    unsafe_local_exec: input.unsafeLocalExec
  })
  return { candidates, task, run_root }
})

/** Sortable by time, unique by chance: the store refuses a second run of the same name. */
const newRunId = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  return yield* Schema.decodeEffect(RunId)(yield* random.uuidV7()).pipe(Effect.orDie)
})

const observerOf = (output: Output) => ({
  entry: (entry: JournalEntry) =>
    output === "jsonl"
      ? showOut(`${JSON.stringify(toLine(entry))}\n`)
      : Effect.suspend(() => {
          const line = progressLine(entry.event)
          return line === null ? Effect.void : writeErr(`${line}\n`)
        }),
  delta: () => Effect.void
})

const present = (finished: FinishedRun, output: Output) => {
  switch (output) {
    case "text":
      return writeOut(resultText(finished))
    case "json":
      return writeOut(`${JSON.stringify(absolute(finished), null, 2)}\n`)
    case "jsonl":
      return writeOut(`${JSON.stringify({ type: "result", ...absolute(finished) })}\n`)
  }
}

/** Runs the task that the flags describe, and ends the process with the run's exit code. */
export const runTask = Effect.fn("cli.runTask")(function* (input: RunInput, mode: RunMode) {
  const later = laterFlag({ ...input, sandboxChecks: Option.getOrUndefined(input.sandboxChecks) })
  if (later !== null) return yield* endWith(2, later)
  const output = outputOf(input, mode)
  const prepared = yield* Effect.gen(function* () {
    const instruction = yield* readPrompt(input.prompt, Option.getOrNull(input.task), mode)
    return yield* prepare(input, mode, instruction)
  }).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({
      Refusal: (error) => endWith(2, error.message),
      SettingsError: (error) => endWith(2, error.message)
    })
  )
  const waived = prepared.task.verification.mode === "waived"
  const codeOf = ({ result }: FinishedRun) => exitCodeOf(result.terminal_reason, waived)
  const finished = yield* run(prepared.task, {
    run_id: yield* newRunId,
    // From here on a signal changes neither what is said of the run nor the exit code.
    announce: (ended) =>
      Effect.tap(present(ended, output), () =>
        Effect.sync(() => {
          process.exitCode = codeOf(ended)
        })
      )
  }).pipe(
    Effect.provideService(Observer, observerOf(output)),
    Effect.provide(
      layerRun({ runRoot: prepared.run_root, unsafeLocalExec: input.unsafeLocalExec }).pipe(
        Layer.provideMerge(Layer.succeed(Models, Models.of({ candidates: prepared.candidates })))
      )
    ),
    Effect.catchTags({
      Refusal: (error) => endWith(2, error.message),
      StoreError: (error) => endWith(1, error.message)
    })
  )
  const code = codeOf(finished)
  if (code !== 0) return yield* new CliExit({ code })
})
