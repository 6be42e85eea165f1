/**
 * What both kinds of file headers in unified diffs share.
 */
import { Result } from "effect"
import type { DiffFile, DiffHunk } from "./Diff.ts"
import { type PatchError, refuse } from "./PatchError.ts"

/** A file that was read, and the line after it. */
export interface ReadFile {
  readonly file: DiffFile
  readonly next: number
}

/** A refusal that names the line of the patch, given from 0. */
export const malformed = (at: number, message: string): Result.Result<never, PatchError> =>
  refuse("malformed", `line ${at + 1} of the patch: ${message}`)

const total = (hunks: ReadonlyArray<DiffHunk>, kind: "add" | "remove"): number =>
  hunks.reduce(
    (sum, hunk) => sum + hunk.lines.reduce((count, line) => count + (line.kind === kind ? 1 : 0), 0),
    0
  )

/** The file with its totals, once its hunks fit its kind. */
export const finishFile = (
  file: Omit<DiffFile, "additions" | "deletions" | "at">,
  at: number,
  next: number
): Result.Result<ReadFile, PatchError> => {
  if (file.kind === "create" && file.hunks.some((hunk) => hunk.oldCount > 0)) {
    return malformed(at, "a new file cannot have old lines")
  }
  if (file.kind === "delete" && file.hunks.some((hunk) => hunk.newCount > 0)) {
    return malformed(at, "a deleted file cannot have new lines")
  }
  const additions = total(file.hunks, "add")
  const deletions = total(file.hunks, "remove")
  return Result.succeed({ file: { ...file, additions, deletions, at: at + 1 }, next })
}
