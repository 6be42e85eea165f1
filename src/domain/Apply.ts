/**
 * What applying a patch to a tree that moved on means for one path: the three-way decision. The plan of all of them is
 * `ApplyPlan.ts`.
 */
import { checkoutForm, type EndingRules, type Form, formOf, inForm, isBinary } from "./ApplyText.ts"
import { sameBytes } from "./Bytes.ts"
import type { FileNode, FileOnly } from "./patch/FileSet.ts"

/** What the patch makes of a path: a file or a symlink, before and after; undefined for nothing. */
export interface PatchedPath {
  readonly path: string
  readonly base: FileNode | undefined
  readonly patched: FileNode | undefined
}

/** A path of the patch, and what stands there in the user's tree. */
export interface SurveyedPath extends PatchedPath {
  /** A final symlink not followed. */
  readonly now: FileNode | undefined
  /** A directory above the path that is a file; null when there is none. */
  readonly obstacle: string | null
  /** When `now` is a directory: the paths of the files below it; null when something else is there too. */
  readonly inside: ReadonlyArray<string> | null
  readonly rules: EndingRules
  /** A filter or an encoding that git applies to the path (`filter=lfs`); null when there is none. */
  readonly conversion: string | null
  /** Whether the disk keeps executable bits (`core.fileMode`). */
  readonly modes: boolean
  /** What the index says of the path that keeps git from looking at the file; `skip-worktree` is also how a sparse
   * checkout leaves it out. */
  readonly mark: "skip-worktree" | "assume-unchanged" | null
}

export interface Texts {
  readonly base: Uint8Array
  readonly ours: Uint8Array
  readonly theirs: Uint8Array
}

/** What is to be done about one path. */
export type Decision =
  /** The user's tree has it already. */
  | { readonly _tag: "Keep" }
  | {
      readonly _tag: "Write"
      readonly to: FileNode | undefined
      readonly merged: boolean
      readonly form: Form
    }
  /** Both changed a text: whether that is a conflict shows when they are merged. */
  | {
      readonly _tag: "MergeText"
      readonly texts: Texts
      readonly executable: boolean
      readonly form: Form
    }
  | { readonly _tag: "Conflict"; readonly reason: string }

const write = (to: FileNode | undefined, merged: boolean, form: Form): Decision => ({
  _tag: "Write",
  to,
  merged,
  form
})
const conflict = (reason: string): Decision => ({ _tag: "Conflict", reason })

export const sameNode = (left: FileNode | undefined, right: FileNode | undefined): boolean => {
  if (left === undefined || right === undefined) return left === right
  switch (left._tag) {
    case "File":
      return (
        right._tag === "File" && left.executable === right.executable && sameBytes(left.bytes, right.bytes)
      )
    case "Symlink":
      return right._tag === "Symlink" && left.target === right.target
    case "Directory":
    case "Special":
      return false
  }
}

const kindOf = (node: FileNode): string => {
  switch (node._tag) {
    case "File":
      return "a file"
    case "Symlink":
      return "a symbolic link"
    case "Directory":
      return "a directory"
    case "Special":
      return "neither a file nor a directory"
  }
}

/** Of three values: what the side that changed says; undefined when both did, each in its own way. */
const threeWay = <A>(base: A, ours: A, theirs: A, same: (a: A, b: A) => boolean): A | undefined =>
  same(ours, theirs) || same(base, theirs) ? ours : same(base, ours) ? theirs : undefined

const isFile = (node: FileNode | undefined): node is FileOnly => node?._tag === "File"

/** The form of the bytes on disk, where there are any, else the one that git would write. */
const formAt = ({ base, now, patched, rules }: SurveyedPath): Form => {
  const versions = [base, patched].filter(isFile).map((node) => node.bytes)
  const usual = isFile(patched) ? checkoutForm(rules, patched.bytes) : "raw"
  return isFile(now) ? formOf(now.bytes, versions, usual) : usual
}

const decideFiles = (
  base: FileOnly,
  patched: FileOnly,
  now: FileOnly,
  form: Form,
  conversion: string | null
): Decision => {
  // Of two values the side that changed is always known.
  const executable =
    threeWay(base.executable, now.executable, patched.executable, (a, b) => a === b) ?? patched.executable
  const bytes = threeWay(base.bytes, now.bytes, patched.bytes, sameBytes)
  if (bytes !== undefined) {
    const to: FileOnly = { _tag: "File", bytes, executable }
    return sameNode(to, now) ? { _tag: "Keep" } : write(to, !sameNode(to, patched), form)
  }
  if (conversion !== null)
    return conflict(
      `git converts it (${conversion}), so it cannot be told from yours: --branch NAME takes it`
    )
  if ([base, patched, now].some((node) => isBinary(node.bytes)))
    return conflict("changed by both, and binary")
  const texts = { base: base.bytes, ours: now.bytes, theirs: patched.bytes }
  return { _tag: "MergeText", texts, executable, form }
}

/** The three-way decision on one path, with nothing in the way of it. */
export const decide = (surveyed: SurveyedPath): Decision => {
  const form = formAt(surveyed)
  const onDisk = (node: FileNode | undefined): FileNode | undefined =>
    isFile(node) ? { ...node, bytes: inForm(node.bytes, form) } : node
  const base = onDisk(surveyed.base)
  const patched = onDisk(surveyed.patched)
  // Where the disk keeps no executable bits, what it shows there is nobody's change.
  const now =
    isFile(surveyed.now) && !surveyed.modes
      ? {
          ...surveyed.now,
          executable: isFile(base) ? base.executable : isFile(patched) && patched.executable
        }
      : surveyed.now
  if (sameNode(now, patched)) return { _tag: "Keep" }
  if (sameNode(now, base)) return write(patched, false, form)
  if (base === undefined) {
    return now === undefined
      ? write(patched, false, form)
      : conflict(`added by the patch, and ${kindOf(now)} is there already`)
  }
  if (now === undefined)
    return conflict(
      surveyed.mark === "skip-worktree"
        ? "changed by the patch, and left out of your checkout: git sparse-checkout add its directory, or --branch NAME"
        : "changed by the patch, and gone from your tree"
    )
  if (patched === undefined) return conflict("deleted by the patch, and changed in your tree")
  if (isFile(base) && isFile(patched) && isFile(now))
    return decideFiles(base, patched, now, form, surveyed.conversion)
  return conflict(`${kindOf(patched)} in the patch, and ${kindOf(now)} in your tree`)
}

export interface MergedText {
  readonly bytes: Uint8Array
  /** Whether no conflict was marked. */
  readonly clean: boolean
}

/** A decision that needs nothing more. A conflict that can be marked in the file carries how that looks. */
export type Settled =
  | Exclude<Decision, { readonly _tag: "MergeText" | "Conflict" }>
  | {
      readonly _tag: "Conflict"
      readonly reason: string
      readonly marked: { readonly to: FileOnly; readonly form: Form } | null
    }

/** What becomes of a decision when `merge` did the merging. */
export const settle = (decision: Decision, merged: MergedText | null): Settled => {
  switch (decision._tag) {
    case "Keep":
    case "Write":
      return decision
    case "Conflict":
      return { ...decision, marked: null }
    case "MergeText": {
      const reason = "changed by both in the same place"
      if (merged === null) return { _tag: "Conflict", reason, marked: null }
      const { executable, form } = decision
      const to: FileOnly = { _tag: "File", bytes: merged.bytes, executable }
      return merged.clean
        ? { _tag: "Write", to, merged: true, form }
        : { _tag: "Conflict", reason, marked: { to, form } }
    }
  }
}
