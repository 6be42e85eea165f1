/**
 * The plan of a whole patch against a tree that moved on. It names no path that the patch does not.
 */
import { decide, type MergedText, sameNode, settle, type Settled, type SurveyedPath } from "./Apply.ts"
import type { Form } from "./ApplyText.ts"
import { changeOf, type FileNode } from "./patch/FileSet.ts"
import type { ChangedFile } from "./Result.ts"
import { parentsOf } from "./WorkspacePath.ts"

/** One path that is written: from exactly what stands there to what shall. */
export interface ApplyStep {
  readonly path: string
  readonly change: ChangedFile["change"]
  readonly from: FileNode | undefined
  readonly to: FileNode | undefined
  readonly merged: boolean
  readonly form: Form
}

export interface ApplyConflict {
  readonly path: string
  readonly reason: string
}

export interface Plan {
  /** In the order of the patch, one a path. */
  readonly steps: ReadonlyArray<ApplyStep>
  /** Paths that are as the patch wants them already. */
  readonly kept: ReadonlyArray<string>
  readonly conflicts: ReadonlyArray<ApplyConflict>
}

/** `surveyed` with what the patch itself clears away taken as gone; null when the rest is in the way. */
const withRoom = (
  surveyed: SurveyedPath,
  cleared: ReadonlySet<string>
): SurveyedPath | { readonly reason: string } => {
  const { base, inside, now, obstacle, patched } = surveyed
  if (obstacle !== null) {
    if (patched === undefined || cleared.has(obstacle)) return surveyed
    return { reason: `${obstacle} is a file in your tree` }
  }
  if (now?._tag !== "Directory" || patched === undefined || base !== undefined) return surveyed
  return inside !== null && inside.length > 0 && inside.every((path) => cleared.has(path))
    ? { ...surveyed, now: undefined }
    : surveyed
}

/**
 * The plan of a whole patch. `merge` yields what merging a path's texts gave, null where it was not possible. With
 * `mark`, conflicts that can be marked in their files become steps too.
 */
export const planApply = (
  surveyed: ReadonlyArray<SurveyedPath>,
  merge: (path: string) => MergedText | null,
  mark: boolean
): Plan => {
  const settled = (each: SurveyedPath): Settled => settle(decide(each), merge(each.path))
  const cleared = new Set(
    surveyed.flatMap((each) => {
      const decision = each.patched === undefined ? settled(each) : null
      return decision?._tag === "Write" || decision?._tag === "Keep" ? [each.path] : []
    })
  )
  const steps: Array<ApplyStep> = []
  const kept: Array<string> = []
  const conflicts: Array<ApplyConflict> = []
  for (const each of surveyed) {
    const { path } = each
    const room = withRoom(each, cleared)
    if ("reason" in room) {
      conflicts.push({ path, reason: room.reason })
      continue
    }
    const decision = settled(room)
    const step = (to: FileNode | undefined, merged: boolean, form: Form) =>
      steps.push({ path, change: changeOf(each.base, each.patched), from: room.now, to, merged, form })
    switch (decision._tag) {
      case "Keep":
        kept.push(path)
        break
      case "Write":
        // A merge may find that the user's text has it all.
        if (sameNode(room.now, decision.to)) kept.push(path)
        else step(decision.to, decision.merged, decision.form)
        break
      case "Conflict": {
        const { marked, reason } = decision
        conflicts.push({ path, reason })
        if (mark && marked !== null) step(marked.to, true, marked.form)
        break
      }
    }
  }
  // A file that stays in the way keeps everything below its name out.
  const conflicted = new Set(conflicts.map((each) => each.path))
  return mark
    ? {
        steps: steps.filter(({ path }) => !parentsOf(path).some((parent) => conflicted.has(parent))),
        kept,
        conflicts
      }
    : { steps, kept, conflicts }
}
