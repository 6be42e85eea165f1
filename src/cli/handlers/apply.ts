/**
 * `apply`: a run's patch into the user's tree, and back.
 */
import { Effect, Option, Path } from "effect"
import { refuse, type Refusal } from "../../domain/Refusal.ts"
import { layerApply, layerRead, layerUserTree, watching } from "../../layers/Live.ts"
import { applyRun, type ApplyOutcome, type ApplyTarget, putRight, undoApply } from "../../programs/Apply.ts"
import type { ApplyInput } from "../applyFlags.ts"
import { CliExit } from "../exit.ts"
import { endWith, refused, showOut, writeErr, writeOut } from "../io.ts"
import { applyJson, applyLines, applySummary, undoJson, undoLines, undoSummary } from "../render/apply.ts"
import { runRootOf } from "../runRoot.ts"

/** How this program is started to watch over an apply; null where it is not known how it was started. */
const watcher = (): readonly [string, ...ReadonlyArray<string>] | null => {
  const script = process.argv[1]
  return script === undefined ? null : [process.execPath, script, "apply", "--watch-over"]
}

/** Resolves when nobody holds the other end of stdin any more. */
const parentGone: Effect.Effect<void> = Effect.callback((resume) => {
  const done = () => resume(Effect.void)
  process.stdin.once("end", done).once("close", done).once("error", done).resume()
})

/** The process beside an apply: it sits still until that one is gone, and then puts right what it left. */
const watchOver = Effect.fnUntraced(function* (root: string) {
  yield* showOut(`${watching}\n`)
  yield* parentGone
  yield* putRight(root).pipe(
    Effect.catch((error) => Effect.logWarning("an apply could not be put right", error)),
    Effect.provide(layerUserTree({ watcher: null }))
  )
})

const refuseIdle = (input: ApplyInput): Effect.Effect<void, Refusal> => {
  const branch = Option.isSome(input.branch)
  const other = input.check || input.unverified || input.conflicts || input.commit || branch
  if (input.undo && other) return Effect.fail(refuse("--undo goes with no other way to apply: give it alone"))
  if (branch && (input.check || input.conflicts))
    return Effect.fail(
      refuse("--branch does not touch your files: --check and --conflicts have nothing to do there")
    )
  if (branch && input.commit)
    return Effect.fail(refuse("--branch makes a commit of its own: give it without --commit"))
  if (input.commit && input.conflicts)
    return Effect.fail(refuse("--conflicts writes what nobody should commit: give it without --commit"))
  return Effect.void
}

const codeOf = (outcome: ApplyOutcome): 0 | 1 =>
  outcome._tag === "Conflicted" || (outcome._tag === "Applied" && outcome.conflicts.length > 0) ? 1 : 0

const present = Effect.fnUntraced(function* (
  input: ApplyInput,
  shown: { readonly lines: ReadonlyArray<string>; readonly summary: string; readonly json: unknown },
  code: 0 | 1
) {
  for (const line of shown.lines) yield* writeErr(`${line}\n`)
  yield* writeOut(input.output === "json" ? `${JSON.stringify(shown.json, null, 2)}\n` : `${shown.summary}\n`)
  if (code !== 0) return yield* new CliExit({ code })
})

export const applyPatch = Effect.fn("cli.applyPatch")(function* (input: ApplyInput) {
  if (Option.isSome(input.watchOver)) return yield* watchOver(input.watchOver.value)
  const path = yield* Path.Path
  yield* Effect.gen(function* () {
    yield* refuseIdle(input)
    const runRoot = yield* runRootOf(input)
    const directory = Option.getOrNull(input.directory)
    const target: ApplyTarget = {
      run: Option.getOrNull(input.run),
      directory: directory === null ? null : path.resolve(directory),
      here: path.resolve("."),
      say: (line) => writeErr(`looplane: ${line}\n`)
    }
    yield* Effect.gen(function* () {
      if (input.undo) {
        const outcome = yield* undoApply(target)
        const shown = {
          lines: undoLines(outcome),
          summary: undoSummary(outcome),
          json: undoJson(outcome)
        }
        return yield* present(input, shown, outcome._tag === "Undone" ? 0 : 1)
      }
      const { check, commit, conflicts, unverified } = input
      const branch = Option.getOrNull(input.branch)
      const outcome = yield* applyRun({ ...target, branch, check, commit, conflicts, unverified })
      const shown = {
        lines: applyLines(outcome),
        summary: applySummary(outcome),
        json: applyJson(outcome)
      }
      return yield* present(input, shown, codeOf(outcome))
    }).pipe(Effect.provide(layerApply({ runRoot, watcher: watcher() })))
  }).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({
      Refusal: refused,
      StoreError: refused,
      SettingsError: refused,
      UserTreeError: (error) => endWith(error.reason === "refused" ? 2 : 1, error.message)
    })
  )
})
