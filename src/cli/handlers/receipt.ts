/**
 * `receipt check`: whether a patch and its evidence are what the receipt says, here and now.
 */
import { Effect, FileSystem, Option, Path, Result } from "effect"
import type { Finding } from "../../domain/Finding.ts"
import { refuse } from "../../domain/Refusal.ts"
import type { Warning } from "../../domain/Warnings.ts"
import { chooseSandbox, layerNoCommands, layerRead, layerReceipt } from "../../layers/Live.ts"
import { checkReceipt, locateReceipt } from "../../programs/CheckReceipt.ts"
import { reproducePatch } from "../../programs/ReproducePatch.ts"
import { CliExit } from "../exit.ts"
import { refused, showOut, writeOut } from "../io.ts"
import type { ReceiptCheckInput } from "../receiptFlags.ts"
import { runRootOf } from "../runRoot.ts"
import { sandboxRequest, sandboxWords } from "../sandbox.ts"
import { printable } from "../render/clip.ts"

const words: Readonly<Record<Finding["status"], string>> = { ok: "ok  ", failed: "FAIL", skipped: "skip" }
const lineOf = ({ message, status, subject }: Finding): string =>
  printable(`${words[status]} ${subject}: ${message}\n`)

const warningLines = (warnings: ReadonlyArray<Warning>): string =>
  warnings.map((warning) => printable(`warn ${warning.kind}: ${warning.message}\n`)).join("")

/** What would be passed over in silence is refused, before anything else happens. */
const refuseIdle = Effect.fnUntraced(function* (input: ReceiptCheckInput) {
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const forRun = [
    ...(Option.isSome(input.deps) ? ["--deps"] : []),
    ...(input.setup.length > 0 ? ["--setup"] : [])
  ]
  const [idle] = [...forRun, ...sandboxWords(input), ...(input.run ? [] : ["--no-run"])]
  if (Option.isNone(input.directory)) {
    if (idle === undefined) return
    return yield* refuse(
      `${idle}: without -C nothing is run anyway; name the repository that the patch is for`
    )
  }
  const [prepares] = forRun
  if (prepares !== undefined && !input.run)
    return yield* refuse(`${prepares} and --no-run exclude each other: nothing is run`)
  const directory = input.directory.value
  const info = yield* Effect.option(fs.stat(path.resolve(directory)))
  if (Option.isNone(info) || info.value.type !== "Directory")
    return yield* refuse(`${directory} is not a directory: name a repository with -C`)
})

/** What is around the receipt's commands, and why they are not run; what was asked for in words is not passed over. */
const surroundings = Effect.fnUntraced(function* (input: ReceiptCheckInput, runRoot: string) {
  const path = yield* Path.Path
  if (Option.isNone(input.directory)) return { sandbox: layerNoCommands, unrun: "" }
  if (!input.run) return { sandbox: layerNoCommands, unrun: "--no-run" }
  const choice = yield* Effect.result(
    chooseSandbox(sandboxRequest(input, runRoot, path.resolve(input.directory.value)))
  )
  if (Result.isSuccess(choice)) return { sandbox: choice.success, unrun: null }
  if (Option.isSome(input.sandboxChecks)) return yield* choice.failure
  return { sandbox: layerNoCommands, unrun: choice.failure.message }
})

const check = Effect.fnUntraced(function* (
  input: ReceiptCheckInput,
  unrun: string | null,
  tell: (finding: Finding) => Effect.Effect<void>
) {
  const path = yield* Path.Path
  const patchFile = Option.getOrNull(input.patch)
  const source = yield* locateReceipt(input.receipt, patchFile)
  const checked = yield* checkReceipt(source, tell)
  const { patch, receipt } = checked
  if (Option.isNone(input.directory) || receipt === null) return checked
  if (patch === null) {
    yield* tell({
      status: "failed",
      subject: "tree",
      message: "without the receipt's own patch there is nothing to put on the base"
    })
    return checked
  }
  yield* reproducePatch(
    {
      receipt,
      patch,
      directory: path.resolve(input.directory.value),
      unrun,
      deps: Option.getOrNull(input.deps),
      setup: input.setup,
      check_network: Option.getOrElse(input.checkNetwork, () => "none" as const),
      setup_network: Option.getOrElse(input.setupNetwork, () => "none" as const)
    },
    tell
  )
  return checked
})

/** Ends with 0 when nothing failed, 1 when something did, 2 when the question cannot be answered as it was put. */
export const checkReceiptOf = Effect.fn("cli.checkReceipt")(function* (input: ReceiptCheckInput) {
  const findings: Array<Finding> = []
  const json = input.output === "json"
  const tell = (finding: Finding) =>
    Effect.andThen(
      Effect.sync(() => findings.push(finding)),
      json ? Effect.void : showOut(lineOf(finding))
    )
  const { receipt, warnings } = yield* Effect.gen(function* () {
    yield* refuseIdle(input)
    const runRoot = yield* runRootOf(input)
    const { sandbox, unrun } = yield* surroundings(input, runRoot)
    return yield* check(input, unrun, tell).pipe(Effect.provide(layerReceipt({ runRoot, sandbox })))
  }).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({ Refusal: refused, StoreError: refused, SettingsError: refused })
  )
  const failures = findings.filter((finding) => finding.status === "failed").length
  yield* writeOut(
    json
      ? `${JSON.stringify({ ok: failures === 0, run_id: receipt?.run_id ?? null, verdict: receipt?.verdict ?? null, findings, warnings }, null, 2)}\n`
      : warningLines(warnings)
  )
  if (failures > 0) return yield* new CliExit({ code: 1 })
})
