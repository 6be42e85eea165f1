/**
 * Runs declared checks and judges them by what happened, never by what anybody says.
 */
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { unrun, type CheckOutcome } from "../../domain/Result.ts"
import type { Check } from "../../domain/Task.ts"
import { foundNoTests, mustReport, testsRun } from "../../domain/TestReport.ts"
import { type CheckPlace, Checks } from "../../services/Checks.ts"
import { Sandbox, type SandboxError, type SandboxResult } from "../../services/Sandbox.ts"
import { removeTree } from "../workspace/RemoveTree.ts"
import { taskEnvironment } from "../workspace/Setup.ts"
import { refusedBySandbox } from "./Refused.ts"
import { missingPackage } from "./MissingPackage.ts"
import { redact } from "./Redact.ts"

interface Options {
  readonly remaining_ms: number
  readonly max_output_bytes: number
}

const remedy = "install it with --setup, or bring it along with --deps"

const seconds = (milliseconds: number): string => String(Math.round(milliseconds / 100) / 10)

/** Whether a text names a path, or something below it, and not one that only begins alike. */
const names = (text: string, path: string): boolean => {
  for (let at = text.indexOf(path); at >= 0; at = text.indexOf(path, at + 1)) {
    if (!/[A-Za-z0-9._-]/.test(text.charAt(at + path.length))) return true
  }
  return false
}

/** Why a check is not even started, or null. `elsewhere`: the path of the user's tree leads to the user's tree. */
const refusal = (check: Check, place: CheckPlace, elsewhere: boolean): string | null => {
  if (place.distrust !== null) return `${place.distrust}: use --setup to install in the workspace`
  if (elsewhere && check.argv.some((word) => names(word, place.source))) {
    return `the command names ${place.source}, so it would test the wrong files: use relative paths`
  }
  return null
}

const notStarted = (check: Check, error: SandboxError): CheckOutcome => {
  const command = JSON.stringify(check.argv[0])
  switch (error.reason) {
    case "not_found":
      return unrun(check, "could_not_verify", `command ${command} was not found: ${remedy}`, 127)
    case "not_executable":
      return unrun(check, "could_not_verify", `command ${command} is not executable`, 126)
    case "refused":
      return unrun(check, "could_not_verify", error.message, 126)
    case "failed":
      return unrun(check, "could_not_verify", error.message)
  }
}

type Judgement = Pick<CheckOutcome, "verdict" | "reason">

const could_not_verify = (reason: string): Judgement => ({ verdict: "could_not_verify", reason })

const judge = Effect.fnUntraced(function* (
  check: Check,
  place: CheckPlace,
  cwd: string,
  result: SandboxResult,
  timeout: { readonly ms: number; readonly own: boolean },
  tests: number | null,
  sandbox: Sandbox["Service"]
) {
  // The path of the user's tree leads there, and not to the clone.
  const elsewhere = !sandbox.overlays
  const judgement: Judgement = { verdict: "failed", reason: `exit ${result.exit_code}` }
  if (result.stopped !== null) return { ...judgement, reason: `stopped: ${result.stopped}` }
  if (result.timed_out) {
    return timeout.own
      ? { ...judgement, reason: `timed out after ${seconds(timeout.ms)} s` }
      : could_not_verify(`the run's time was up after ${seconds(timeout.ms)} s`)
  }
  if (result.exit_code === 0) {
    if (tests === 0) return could_not_verify("the command ran no tests")
    // A test that ends the runner's own process (exit, os._exit) ends it with success and without a word.
    if (tests === null && mustReport(check.argv))
      return could_not_verify("the test runner did not say how many tests it ran, so none may have")
    return elsewhere && names(result.output, place.source)
      ? could_not_verify(`the output names ${place.source}, so the wrong files may have been tested`)
      : { verdict: "passed" as const, reason: null }
  }
  if (result.exit_code === 127) return could_not_verify(`a command was not found (exit 127): ${remedy}`)
  if (result.exit_code === 126) return could_not_verify("a command is not executable (exit 126)")
  if (tests === 0 && foundNoTests(result.output)) return could_not_verify("the command ran no tests")
  const missing = yield* missingPackage(result.output, place.root, cwd)
  if (missing !== null)
    return could_not_verify(`package ${JSON.stringify(missing)} is not installed: ${remedy}`)
  const wanted = refusedBySandbox(result.output, sandbox.kind, check.network ?? "none")
  if (wanted === null) return judgement
  return wanted.decisive
    ? could_not_verify(`exit ${result.exit_code}: ${wanted.hint}`)
    : { ...judgement, reason: `exit ${result.exit_code}: ${wanted.hint}` }
})

const run = Effect.fn("Checks.run")(
  function* (check: Check, place: CheckPlace, options: Options) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const sandbox = yield* Sandbox
    const refused = refusal(check, place, !sandbox.overlays)
    if (refused !== null) return unrun(check, "could_not_verify", refused)
    const own = check.timeout_seconds * 1000
    const timeout = { ms: Math.min(own, options.remaining_ms), own: own <= options.remaining_ms }
    if (timeout.ms <= 0) return unrun(check, "not_run", "the run's time was up")
    const cwd = path.join(place.root, place.subdirectory)
    if (!(yield* fs.exists(cwd)))
      return unrun(check, "failed", `there is no directory ${place.subdirectory} to run in`)
    // Beside the place, not in it: what a command caches is nothing that it wrote.
    const home = yield* Effect.acquireRelease(
      fs.makeTempDirectory({ directory: path.dirname(place.root), prefix: "task-" }),
      removeTree
    )
    const env = yield* taskEnvironment(home)
    const result = yield* sandbox.run({
      argv: check.argv,
      place: { root: place.root, at: place.source, writable: [home], layers: place.layers },
      directory: place.subdirectory,
      env,
      network: check.network ?? "none",
      timeout_ms: timeout.ms,
      max_output_bytes: options.max_output_bytes
    })
    const tests = testsRun(result.output, check.argv)
    const outcome: CheckOutcome = {
      name: check.name,
      argv: check.argv,
      ...(yield* judge(check, place, cwd, result, timeout, tests, sandbox)),
      exit_code: result.exit_code,
      duration_seconds: result.duration_ms / 1000,
      tests,
      output: redact(result.output)
    }
    return outcome
  },
  Effect.scoped,
  (effect, check) =>
    effect.pipe(
      Effect.catchTags({
        SandboxError: (error) => Effect.succeed(notStarted(check, error)),
        PlatformError: (error) =>
          Effect.succeed(unrun(check, "could_not_verify", `no place for its files: ${error.message}`))
      })
    )
)

export const layer: Layer.Layer<Checks, never, FileSystem.FileSystem | Path.Path | Sandbox> = Layer.effect(
  Checks,
  Effect.gen(function* () {
    const services = yield* Effect.map(
      Effect.context<FileSystem.FileSystem | Path.Path | Sandbox>(),
      Context.pick(FileSystem.FileSystem, Path.Path, Sandbox)
    )
    return Checks.of({
      run: (check, place, options) => Effect.provideContext(run(check, place, options), services)
    })
  })
)
