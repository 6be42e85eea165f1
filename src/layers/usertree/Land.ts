/**
 * Putting a prepared commit on the user's branch, and taking it off again: its paths in the user's index, then the branch
 * by compare-and-swap. Every step may be taken again.
 */
import { Effect, Schedule } from "effect"
import type { ApplyRecord } from "../../domain/ApplyRecord.ts"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { CommitId } from "../../domain/Ids.ts"
import { git, joinNul, lineOf, runGit } from "../git/GitBinary.ts"
import { changesBetween } from "../workspace/Trees.ts"
import { failed, reached } from "./Fault.ts"
import type { Place } from "./Place.ts"
import { identityOf, readSettings } from "./Settings.ts"

export type CommitOnto = NonNullable<ApplyRecord["onto"]>

export const here = ({ location, root }: Place, args: ReadonlyArray<string>) => ({
  cwd: root,
  args: [`--git-dir=${location.git_dir}`, `--work-tree=${root}`, ...args]
})

/** Where HEAD is: its commit, and its branch, null when it is on none. */
export const headOf = Effect.fnUntraced(function* (place: Place) {
  const head = lineOf(yield* git(here(place, ["rev-parse", "--verify", "HEAD^{commit}"])))
  const named = yield* runGit(here(place, ["symbolic-ref", "--quiet", "HEAD"]))
  return { head: CommitId.make(head), ref: named.exit_code === 0 ? lineOf(named.stdout) : null }
})

/** The mode of an entry that is to go. */
export const nowhere = "0"

/** A line of `update-index --index-info`; `id` matters to no entry that goes, but must be as long as any. */
export const indexLine = (mode: string, id: string, name: ByteString): string => `${mode} ${id}\t${name}`

/** Deletions first: a file may take the place of a directory, and the other way round. */
export const indexInfo = (lines: ReadonlyArray<string>): Uint8Array =>
  joinNul(lines.toSorted((a, b) => Number(b.startsWith(`${nowhere} `)) - Number(a.startsWith(`${nowhere} `))))

/** A git of the user's may hold the index for a moment. */
const untilUnlocked = Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(20)])

/** Makes the index hold what `to` has where `from` has something else, at the paths that count. */
const tellIndex = Effect.fnUntraced(function* (
  place: Place,
  from: CommitId,
  to: CommitId,
  counts: (path: ByteString) => boolean = () => true
) {
  const changes = (yield* changesBetween(place.location.git_dir, from, to)).filter(({ path }) => counts(path))
  if (changes.length === 0) return
  const lines = changes.map(({ new_id, new_mode, path }) =>
    indexLine(new_mode === "000000" ? nowhere : new_mode, new_id, path)
  )
  yield* git({ ...here(place, ["update-index", "-z", "--index-info"]), stdin: indexInfo(lines) }).pipe(
    Effect.retry(untilUnlocked)
  )
})

const moveBranch = Effect.fnUntraced(function* (place: Place, why: string, to: CommitId, from: CommitId) {
  // Who it is stands in the reflog alone.
  const env = yield* Effect.flatMap(readSettings(place.location, place.root), identityOf).pipe(
    Effect.orElseSucceed(() => ({}))
  )
  yield* git({ ...here(place, ["update-ref", "-m", why, "HEAD", to, from]), env })
})

/**
 * Where a commit is: on its branch, also below later ones (`landed`); still to come (`ready`); not to be had any more, but
 * HEAD holds what it holds (`taken`: the user committed the paths); or nothing of it is there (`gone`).
 */
export const landingOf = Effect.fnUntraced(function* (place: Place, { commit, parent, ref }: CommitOnto) {
  const now = yield* headOf(place)
  const asks = (...args: ReadonlyArray<string>) =>
    Effect.map(runGit(here(place, args)), ({ exit_code }) => exit_code === 0)
  if (!(yield* asks("cat-file", "-e", `${commit}^{tree}`))) return "gone"
  if (now.head === commit || (yield* asks("merge-base", "--is-ancestor", commit, "HEAD"))) return "landed"
  if (now.head === parent && now.ref === ref) return "ready"
  const changes = yield* changesBetween(place.location.git_dir, parent, commit)
  const since = yield* changesBetween(place.location.git_dir, commit, now.head)
  const own = new Set(changes.map(({ path }) => path))
  return since.some(({ path }) => own.has(path)) ? "gone" : "taken"
})

/** Puts the commit on its branch, where HEAD still is what it was made on. */
export const land = Effect.fnUntraced(function* (place: Place, run_id: string, onto: CommitOnto) {
  const { commit, parent } = onto
  if ((yield* landingOf(place, onto)) !== "ready")
    return yield* failed("HEAD was moved while the patch was being applied: nothing is applied, try again")
  // First the index: whoever commits between the two steps commits the patch, and never takes it back unseen.
  yield* reached("index")
  yield* tellIndex(place, parent, commit)
  yield* reached("commit")
  yield* moveBranch(place, `looplane apply ${run_id}`, commit, parent)
})

/** Takes the commit off its branch and out of the index again, as far as it is there. */
export const unland = Effect.fnUntraced(function* (place: Place, run_id: string, onto: CommitOnto) {
  const { commit, parent } = onto
  const { head } = yield* headOf(place)
  if (head === commit) yield* moveBranch(place, `looplane apply ${run_id} failed`, parent, commit)
  // HEAD may have been moved since the index was told: then what it has at these paths is what belongs there.
  const target = head === commit ? parent : head
  const staged = yield* runGit(
    here(place, ["diff-index", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", target, "--"])
  )
  if (staged.exit_code === 0) return
  const own = new Set((yield* changesBetween(place.location.git_dir, parent, commit)).map(({ path }) => path))
  yield* tellIndex(place, commit, target, (path) => own.has(path))
})
