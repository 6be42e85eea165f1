/**
 * Taking a run's patch home: into the user's work tree or onto a branch, and back out again.
 */
import { Effect, Schedule } from "effect"
import { decide, type MergedText, type SurveyedPath } from "../domain/Apply.ts"
import { type ApplyConflict, planApply } from "../domain/ApplyPlan.ts"
import { type CommitId, RunId } from "../domain/Ids.ts"
import { refuse } from "../domain/Refusal.ts"
import type { ChangedFile } from "../domain/Result.ts"
import { Git } from "../services/Git.ts"
import { RunStore, type RunSummary } from "../services/RunStore.ts"
import { type OpenUserTree, type Recovery, UserTree } from "../services/UserTree.ts"
import { readEvidence } from "./PatchEvidence.ts"

/** Which run, and which repository. */
export interface ApplyTarget {
  /** As `RunStore.find` takes it; null: the newest run of the repository. */
  readonly run: string | null
  /** A directory of the repository that the user named; null when none was. */
  readonly directory: string | null
  /** Where the user stands, absolute. */
  readonly here: string
  /** Told what the user must know before anything else, one line each. */
  readonly say: (line: string) => Effect.Effect<void>
}

export interface ApplyOptions extends ApplyTarget {
  readonly unverified: boolean
  /** Say what would happen, and write nothing. */
  readonly check: boolean
  /** Write conflict markers where both changed a text. */
  readonly conflicts: boolean
  readonly commit: boolean
  /** A new branch instead of the work tree. */
  readonly branch: string | null
}

export interface AppliedPath {
  readonly path: string
  readonly change: ChangedFile["change"]
}

interface Home {
  readonly run_id: RunId
  readonly root: string
}

export type ApplyOutcome = Home &
  (
    | { readonly _tag: "Nothing"; readonly kept: ReadonlyArray<string> }
    /** With `dry`, what would be done. */
    | {
        readonly _tag: "Applied"
        readonly dry: boolean
        readonly applied: ReadonlyArray<AppliedPath>
        readonly merged: ReadonlyArray<string>
        readonly kept: ReadonlyArray<string>
        /** Written with markers, or left as they were. */
        readonly conflicts: ReadonlyArray<ApplyConflict>
        readonly commit: CommitId | null
      }
    /** Nothing was written. */
    | { readonly _tag: "Conflicted"; readonly conflicts: ReadonlyArray<ApplyConflict> }
    | { readonly _tag: "Branched"; readonly branch: string; readonly commit: CommitId }
  )

export type UndoOutcome =
  | { readonly _tag: "NothingToUndo"; readonly root: string }
  | (Home & { readonly _tag: "Undone"; readonly paths: ReadonlyArray<string> })
  /** These are not what the apply left; nothing was written. */
  | (Home & { readonly _tag: "Changed"; readonly paths: ReadonlyArray<string> })

/** Of the newest runs, so many are looked at for the one of this repository. */
const maxRuns = 1000

const rootAt = Effect.fnUntraced(function* (directory: string) {
  const git = yield* Git
  return yield* git.source(directory).pipe(
    Effect.map((source) => source.root),
    Effect.mapError((error) => refuse(error.message))
  )
})

/** The repository of a run: the one that was named, else its own, else the one here. */
const rootOf = Effect.fnUntraced(function* (target: ApplyTarget, summary: RunSummary | null) {
  if (target.directory !== null) return yield* rootAt(target.directory)
  const own = summary?.request?.task.repository
  const found = own === undefined ? null : yield* rootAt(own).pipe(Effect.orElseSucceed(() => null))
  return found ?? (yield* rootAt(target.here))
})

const choose = Effect.fnUntraced(function* (target: ApplyTarget) {
  const store = yield* RunStore
  if (target.run !== null) {
    const summary = yield* store.find(target.run)
    return { summary, root: yield* rootOf(target, summary) }
  }
  const root = yield* rootOf(target, null)
  const runs = yield* store.list({ limit: maxRuns, query: null })
  const summary = runs.find((run) => run.request?.task.repository === root)
  if (summary === undefined)
    return yield* refuse(`no run of ${root} was found: name one (looplane sessions lists them)`)
  return { summary, root }
})

const recoveryWords: Readonly<Record<Recovery["outcome"], string>> = {
  finished: "was whole already",
  committed: "is whole and committed",
  put_back: "was put back"
}

const sayRecovered = (target: ApplyTarget, recovered: ReadonlyArray<Recovery>) =>
  Effect.forEach(
    recovered,
    ({ foreign, outcome, run_id, saved }) =>
      Effect.gen(function* () {
        yield* target.say(`an apply of run ${run_id} that was cut off ${recoveryWords[outcome]}`)
        if (foreign.length > 0)
          yield* target.say(
            `changed since, so left as they are: ${foreign.join(", ")} (what they were is in ${saved ?? "the record"})`
          )
      }),
    { discard: true }
  )

const mergeTexts = Effect.fnUntraced(function* (tree: OpenUserTree, surveyed: ReadonlyArray<SurveyedPath>) {
  const merged = new Map<string, MergedText | null>()
  for (const each of surveyed) {
    const decision = decide(each)
    if (decision._tag === "MergeText") merged.set(each.path, yield* tree.merge(decision.texts))
  }
  return merged
})

const demandBase = Effect.fnUntraced(function* ({ run_id, root }: Home, commit: CommitId) {
  const git = yield* Git
  yield* git
    .resolve(root, commit)
    .pipe(
      Effect.mapError((error) =>
        refuse(
          error.reason === "unknown_commit"
            ? `${root} is not the repository of run ${run_id}, or its base commit ${commit} is gone from it: name the right one with -C`
            : error.message
        )
      )
    )
})

/** Applies a run's patch. Nothing is written unless all of it can be, or the user asked for conflict markers. */
export const applyRun = Effect.fn("Apply.applyRun")(function* (options: ApplyOptions) {
  const { root, summary } = yield* choose(options)
  const { run_id } = summary
  const home: Home = { run_id, root }
  const evidence = yield* readEvidence(summary)
  const done = (outcome: ApplyOutcome) => outcome
  if (evidence.patch.length === 0) return done({ ...home, _tag: "Nothing", kept: [] })
  const { doubt, instruction, patch_digest, source } = evidence
  if (doubt !== null && !options.unverified)
    return yield* refuse(`run ${run_id} is not verified: ${doubt}; --unverified applies it all the same`)
  yield* demandBase(home, source.base_commit)
  if (doubt !== null)
    yield* options.say(`run ${run_id} ${options.check ? "would be" : "is"} applied unverified: ${doubt}`)
  const userTree = yield* UserTree
  const tree = yield* userTree.open(root, { write: !options.check })
  yield* sayRecovered(options, tree.recovered)
  if (options.branch !== null) {
    if (evidence.request.task.base.kind !== "commit")
      return yield* refuse(
        `run ${run_id} began from a working tree, not from a commit: --branch has nothing to put it on`
      )
    const commit = yield* tree.branch(source, options.branch, { run_id, instruction })
    return done({ ...home, _tag: "Branched", branch: options.branch, commit })
  }
  const surveyed = yield* tree.survey(source)
  if (options.commit) yield* tree.checkCommit(surveyed)
  const merges = yield* mergeTexts(tree, surveyed)
  const mark = options.conflicts && !options.commit
  const { conflicts, kept, steps } = planApply(surveyed, (path) => merges.get(path) ?? null, mark)
  if (conflicts.length > 0 && (!mark || steps.length === 0))
    return done({ ...home, _tag: "Conflicted", conflicts })
  if (steps.length === 0) return done({ ...home, _tag: "Nothing", kept })
  const outcome = {
    ...home,
    _tag: "Applied",
    dry: options.check,
    applied: steps.map(({ change, path }) => ({ path, change })),
    merged: steps.filter((step) => step.merged).map((step) => step.path),
    kept,
    conflicts,
    commit: null
  } as const
  if (options.check) return done(outcome)
  const { commit } = yield* tree.write(
    steps,
    { run_id, patch_digest, unverified: doubt !== null, conflicts: conflicts.length > 0 },
    options.commit ? { run_id, instruction } : null
  )
  return done({ ...outcome, commit })
}, Effect.scoped)

/** The run that is meant, also when nothing of it is left but its id. */
const meant = Effect.fnUntraced(function* (run: string) {
  const store = yield* RunStore
  return yield* store.find(run).pipe(
    Effect.map((summary) => ({ summary, run_id: summary.run_id })),
    Effect.catchIf(
      (error) => error.reason === "not_found" && /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}$/.test(run),
      () => Effect.succeed({ summary: null, run_id: RunId.make(run) })
    )
  )
})

/** Puts the last apply of a repository back, or the last one of a run. */
export const undoApply = Effect.fn("Apply.undoApply")(function* (target: ApplyTarget) {
  const run = target.run === null ? null : yield* meant(target.run)
  const root = yield* rootOf(target, run?.summary ?? null)
  const userTree = yield* UserTree
  const tree = yield* userTree.open(root, { write: false })
  yield* sayRecovered(target, tree.recovered)
  const done = (outcome: UndoOutcome) => outcome
  const record = yield* tree.last(run?.run_id ?? null)
  if (record === null) return done({ _tag: "NothingToUndo", root })
  const { run_id } = record
  if (record.commit !== null)
    return yield* refuse(
      `the patch of run ${run_id} was committed as ${record.commit}: git revert ${record.commit} takes it back`
    )
  const changed = yield* tree.undo(record)
  return done(
    changed.length > 0
      ? { _tag: "Changed", run_id, root, paths: changed }
      : { _tag: "Undone", run_id, root, paths: record.files.map((file) => file.path) }
  )
}, Effect.scoped)

/** The lock of a process that has just died is free a moment later. */
const untilFree = Schedule.max([Schedule.spaced("25 millis"), Schedule.recurs(200)])

/** Puts an apply right whose process has died: opening the tree does it. */
export const putRight = Effect.fn("Apply.putRight")(function* (root: string) {
  const userTree = yield* UserTree
  yield* userTree.open(root, { write: false }).pipe(Effect.retry(untilFree))
}, Effect.scoped)
