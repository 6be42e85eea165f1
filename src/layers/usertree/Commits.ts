/**
 * Commits in the user's repository, by plumbing alone: no hook, no filter, no signature, no maintenance.
 */
import { Clock, Effect } from "effect"
import type { SurveyedPath } from "../../domain/Apply.ts"
import type { ApplyStep } from "../../domain/ApplyPlan.ts"
import { inForm, toLf } from "../../domain/ApplyText.ts"
import { sameBytes } from "../../domain/Bytes.ts"
import { CommitId } from "../../domain/Ids.ts"
import type { FileNode } from "../../domain/patch/FileSet.ts"
import type { NewCommit, PatchSource } from "../../services/UserTree.ts"
import { displayName, git, lineOf, nameOf, runGit } from "../git/GitBinary.ts"
import { infoAt } from "../fs/Files.ts"
import { entriesOf } from "../workspace/Trees.ts"
import { explained, failed, refused } from "./Fault.ts"
import { type CommitOnto, headOf, here, indexInfo, indexLine, nowhere } from "./Land.ts"
import type { Place } from "./Place.ts"
import { applyToBase, makeScratch, nodeOf, readBlobs, type Scratch } from "./Scratch.ts"
import { identityOf, readSettings } from "./Settings.ts"

/** The environment of a git that commits for the user, now. */
const committer = Effect.fnUntraced(function* (place: Place) {
  const identity = yield* identityOf(yield* readSettings(place.location, place.root))
  const date = `@${Math.floor((yield* Clock.currentTimeMillis) / 1000)} +0000`
  return { ...identity, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }
})

/** The task's first line, and where the change came from. */
const messageOf = ({ instruction, run_id }: NewCommit): Uint8Array => {
  const first = instruction.split("\n").find((each) => each.trim() !== "") ?? ""
  const subject = first.replaceAll(/[\u0000-\u001f\u007f]+/g, " ").trim()
  return Buffer.from(`${subject === "" ? "Apply a patch" : subject}\n\nLooplane-Run: ${run_id}\n`)
}

const objectsOf = (place: Place): string => place.disk.path.join(place.location.common_dir, "objects")

const commitTree = (
  scratch: Scratch,
  tree: string,
  parent: string,
  commit: NewCommit,
  env: Readonly<Record<string, string>>
) =>
  Effect.map(
    scratch.run(["commit-tree", "-p", parent, "-F", "-", tree], { stdin: messageOf(commit), env }),
    (bytes) => CommitId.make(lineOf(bytes))
  )

/** A new branch that is its base plus the patch. */
export const makeBranch = Effect.fnUntraced(
  function* (place: Place, source: PatchSource, name: string, commit: NewCommit) {
    const { location } = place
    const ref = `refs/heads/${name}`
    const named = yield* runGit(here(place, ["check-ref-format", ref]))
    if (named.exit_code !== 0 || /^(?:-|refs\/|HEAD$|@$)/.test(name))
      return yield* refused(`${JSON.stringify(name)} is no name for a branch`)
    const found = yield* runGit(here(place, ["rev-parse", "--verify", "--quiet", "--end-of-options", ref]))
    if (found.exit_code === 0)
      return yield* refused(
        `there is a branch ${name} already: name another one, or remove it with git branch -d`
      )
    const env = yield* committer(place)
    const options = { location, commit: source.base_commit, run_directory: source.run_directory }
    const scratch = yield* makeScratch({ ...options, into: objectsOf(place) })
    const tree = yield* applyToBase(scratch, source)
    const made = yield* commitTree(scratch, tree, source.base_commit, commit, env)
    // All zeros: the reference must not have come to be meanwhile.
    const nobody = "0".repeat(made.length)
    yield* git({
      ...here(place, ["update-ref", "-m", `looplane apply ${commit.run_id}`, ref, made, nobody]),
      env
    }).pipe(Effect.mapError((cause) => refused(`the branch ${name} cannot be made: ${cause.message}`, cause)))
    return made
  },
  Effect.scoped,
  Effect.mapError(explained("failed", "the branch cannot be made"))
)

/** What git is in the middle of, by the file that says so. */
const unfinished: ReadonlyArray<readonly [file: string, what: string]> = [
  ["MERGE_HEAD", "a merge"],
  ["CHERRY_PICK_HEAD", "a cherry-pick"],
  ["REVERT_HEAD", "a revert"],
  ["rebase-merge", "a rebase"],
  ["rebase-apply", "a rebase"]
]

const sameAsHead = (head: FileNode | undefined, { modes, now }: SurveyedPath): boolean => {
  if (head === undefined || now === undefined) return head === now
  if (head._tag === "Symlink") return now._tag === "Symlink" && now.target === head.target
  return (
    head._tag === "File" &&
    now._tag === "File" &&
    (!modes || head.executable === now.executable) &&
    (sameBytes(now.bytes, head.bytes) || sameBytes(now.bytes, inForm(head.bytes, "crlf")))
  )
}

/** What HEAD has at paths. */
const atHead = Effect.fnUntraced(function* (
  place: Place,
  scratch: Scratch,
  head: string,
  paths: ReadonlySet<string>
) {
  const entries = (yield* entriesOf(place.location.git_dir, head)).flatMap(({ id, mode, path: name }) => {
    const path = displayName(name)
    return paths.has(path) && mode !== "160000" && mode !== "040000" ? [{ path, mode, id }] : []
  })
  const blobs = yield* readBlobs(scratch, [...new Set(entries.map(({ id }) => id))])
  const nodes = yield* Effect.forEach(entries, (entry) =>
    Effect.map(nodeOf(entry, entry.path, blobs), (node) => [entry.path, { ...entry, node }] as const)
  )
  return new Map(nodes)
})

/** Refuses where a commit would hold more, or something else, than the patch on top of HEAD. */
export const checkCommit = Effect.fnUntraced(
  function* (place: Place, surveyed: ReadonlyArray<SurveyedPath>) {
    const { disk, location } = place
    yield* committer(place)
    for (const [file, what] of unfinished) {
      if ((yield* infoAt(disk.path.join(location.git_dir, file))) !== undefined)
        return yield* refused(`git is in the middle of ${what} here: end it first, or apply without --commit`)
    }
    const lock = disk.path.join(location.git_dir, "index.lock")
    if ((yield* infoAt(lock)) !== undefined)
      return yield* refused(
        `${lock} is there: wait for the git that made it, or remove it if none is running, or apply without --commit`
      )
    const staged = yield* runGit(
      here(place, ["diff-index", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--"])
    )
    if (staged.exit_code > 1)
      return yield* refused("git cannot compare the index with HEAD here: apply without --commit")
    if (staged.exit_code === 1)
      return yield* refused(
        "there are staged changes: commit or unstage them first, or apply without --commit"
      )
    const marked = surveyed.find(({ mark }) => mark !== null)
    if (marked !== undefined)
      return yield* refused(
        `${marked.path} is marked ${marked.mark} in the index: git update-index --no-${marked.mark} ${marked.path} first, or apply without --commit`
      )
    const { head } = yield* headOf(place)
    const scratch = yield* makeScratch({ location, commit: head, run_directory: null, into: null })
    const there = yield* atHead(place, scratch, head, new Set(surveyed.map(({ path }) => path)))
    const changed = surveyed.find((each) => !sameAsHead(there.get(each.path)?.node, each))
    if (changed !== undefined) {
      return yield* refused(
        `${changed.path} has changes of yours that are not committed: commit them first, or apply without --commit`
      )
    }
  },
  Effect.scoped,
  Effect.mapError(explained("refused", "nothing can be committed here"))
)

/** The commit of what the steps write, on top of HEAD: durable, and on no branch yet. */
export const prepareCommit = Effect.fnUntraced(
  function* (place: Place, steps: ReadonlyArray<ApplyStep>, commit: NewCommit) {
    const { location } = place
    const env = yield* committer(place)
    const { head, ref } = yield* headOf(place)
    const scratch = yield* makeScratch({
      location,
      commit: head,
      run_directory: null,
      into: objectsOf(place)
    })
    const lines = yield* Effect.forEach(steps, ({ form, path, to }) =>
      Effect.gen(function* () {
        if (to?._tag !== "File" && to?._tag !== "Symlink") return indexLine(nowhere, head, nameOf(path))
        const file = to._tag === "File"
        const stdin = file ? (form === "crlf" ? toLf(to.bytes) : to.bytes) : Buffer.from(to.target)
        const id = lineOf(yield* scratch.run(["hash-object", "-w", "--no-filters", "--stdin"], { stdin }))
        return indexLine(file ? (to.executable ? "100755" : "100644") : "120000", id, nameOf(path))
      })
    )
    yield* scratch.run(["read-tree", head])
    yield* scratch.run(["update-index", "-z", "--index-info"], { stdin: indexInfo(lines) })
    const tree = lineOf(yield* scratch.run(["write-tree", "--missing-ok"]))
    const onto: CommitOnto = {
      ref,
      parent: head,
      commit: yield* commitTree(scratch, tree, head, commit, env)
    }
    return onto
  },
  Effect.scoped,
  Effect.mapError((cause) =>
    failed(`the patch cannot be committed, and nothing is applied: ${cause.message}`, cause)
  )
)
