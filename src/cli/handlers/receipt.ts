/**
 * `receipt check`: whether a patch and its evidence are what the receipt says, here and now.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import type { Finding } from "../../domain/Finding.ts"
import { refuse } from "../../domain/Refusal.ts"
import type { Warning } from "../../domain/Warnings.ts"
import { layerRead, layerReceipt } from "../../layers/Live.ts"
import { checkReceipt, locateReceipt } from "../../programs/CheckReceipt.ts"
import { reproducePatch } from "../../programs/ReproducePatch.ts"
import { CliExit } from "../exit.ts"
import { refused, showOut, writeOut } from "../io.ts"
import type { ReceiptCheckInput } from "../receiptFlags.ts"
import { runRootOf } from "../runRoot.ts"
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
  const [idle] = [
    ...forRun,
    ...(input.unsafeLocalExec ? ["--unsafe-local-exec"] : []),
    ...(input.run ? [] : ["--no-run"])
  ]
  if (Option.isNone(input.directory)) {
    if (idle === undefined) return
    return yield* refuse(
      `${idle}: without -C nothing is run anyway; name the repository that the patch is for`
    )
  }
  const [prepares] = forRun
  if (prepares !== undefined && !input.run)
    return yield* refuse(`${prepares} and --no-run exclude each other: nothing is run`)
  if (prepares !== undefined && !input.unsafeLocalExec)
    return yield* refuse(`${prepares} is for what --unsafe-local-exec runs: add that, or leave it out`)
  const directory = input.directory.value
  const info = yield* Effect.option(fs.stat(path.resolve(directory)))
  if (Option.isNone(info) || info.value.type !== "Directory")
    return yield* refuse(`${directory} is not a directory: name a repository with -C`)
})

const check = Effect.fnUntraced(function* (
  input: ReceiptCheckInput,
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
      run_checks: input.run && input.unsafeLocalExec,
      deps: Option.getOrNull(input.deps),
      setup: input.setup
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
    return yield* check(input, tell).pipe(
      Effect.provide(layerReceipt({ runRoot, unsafeLocalExec: input.unsafeLocalExec }))
    )
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
