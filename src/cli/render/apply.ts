/**
 * What applying did, line by line and as JSON.
 */
import type { ApplyOutcome, UndoOutcome } from "../../programs/Apply.ts"
import { printable } from "./clip.ts"

const files = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`

const undoOf = (run_id: string): string => `looplane apply --undo ${run_id}`

const clean = (path: string): string => printable(path.replaceAll("\n", "?"))

/** One line a path, for stderr. */
export const applyLines = (outcome: ApplyOutcome): ReadonlyArray<string> => {
  switch (outcome._tag) {
    case "Nothing":
      return outcome.kept.map((path) => `kept ${clean(path)}: it is as the patch wants it`)
    case "Conflicted":
      return outcome.conflicts.map(({ path, reason }) => `conflict ${clean(path)}: ${reason}`)
    case "Branched":
      return []
    case "Applied": {
      const merged = new Set(outcome.merged)
      const conflicts = new Set(outcome.conflicts.map(({ path }) => path))
      const would = outcome.dry ? "would be " : ""
      return [
        ...outcome.applied
          .filter(({ path }) => !conflicts.has(path))
          .map(({ path }) => `${would}${merged.has(path) ? "merged" : "applied"} ${clean(path)}`),
        ...outcome.kept.map((path) => `kept ${clean(path)}: it is as the patch wants it`),
        ...outcome.conflicts.map(({ path, reason }) => {
          const marked = outcome.applied.some((each) => each.path === path)
          return `conflict ${clean(path)}: ${reason}${marked ? `, ${would}marked` : ", left as it is"}`
        })
      ]
    }
  }
}

/** The answer in one line. */
export const applySummary = (outcome: ApplyOutcome): string => {
  const { root, run_id } = outcome
  switch (outcome._tag) {
    case "Nothing":
      return outcome.kept.length === 0
        ? `nothing to apply: the patch of run ${run_id} is empty`
        : `nothing to apply: ${root} has what run ${run_id} changed already`
    case "Conflicted":
      return `nothing is applied: ${files(outcome.conflicts.length)} in conflict (--conflicts writes what can be merged, with markers)`
    case "Branched":
      return `run ${run_id} is on branch ${outcome.branch} as ${outcome.commit}`
    case "Applied": {
      const { applied, commit, conflicts, dry, merged } = outcome
      const clash = conflicts.length === 0 ? "" : `, ${conflicts.length} in conflict`
      const counted = `${files(applied.length)}${merged.length === 0 ? "" : `, ${merged.length} merged`}${clash}`
      if (dry) return `run ${run_id} would be applied to ${root}: ${counted}`
      const back = commit === null ? `; to undo: ${undoOf(run_id)}` : ` as commit ${commit}`
      return `run ${run_id} is applied to ${root}: ${counted}${back}`
    }
  }
}

export const applyJson = (outcome: ApplyOutcome) => {
  const { run_id, root: repository } = outcome
  const nothing = {
    ...{ run_id, repository, applied: [], merged: [], kept: [], conflicts: [] },
    ...{ dry_run: false, commit: null, branch: null, undo: null }
  }
  switch (outcome._tag) {
    case "Nothing":
      return { ...nothing, kept: outcome.kept }
    case "Conflicted":
      return { ...nothing, conflicts: outcome.conflicts }
    case "Branched":
      return { ...nothing, commit: outcome.commit, branch: outcome.branch }
    case "Applied": {
      const { applied, commit, conflicts, dry, kept, merged } = outcome
      const undo = dry || commit !== null ? null : undoOf(run_id)
      return { ...nothing, applied, merged, kept, conflicts, dry_run: dry, commit, undo }
    }
  }
}

export const undoLines = (outcome: UndoOutcome): ReadonlyArray<string> => {
  switch (outcome._tag) {
    case "NothingToUndo":
      return []
    case "Undone":
      return outcome.paths.map((path) => `put back ${clean(path)}`)
    case "Changed":
      return outcome.paths.map((path) => `changed ${clean(path)}: it is not what the apply left`)
  }
}

export const undoSummary = (outcome: UndoOutcome): string => {
  switch (outcome._tag) {
    case "NothingToUndo":
      return `nothing to undo: looplane has applied nothing in ${outcome.root}, or it was taken back already`
    case "Undone":
      return `run ${outcome.run_id} is undone in ${outcome.root}: ${files(outcome.paths.length)}`
    case "Changed":
      return `nothing is undone: ${files(outcome.paths.length)} changed since run ${outcome.run_id} was applied`
  }
}

export const undoJson = (outcome: UndoOutcome) => ({
  run_id: outcome._tag === "NothingToUndo" ? null : outcome.run_id,
  repository: outcome.root,
  undone: outcome._tag === "Undone" ? outcome.paths : [],
  changed: outcome._tag === "Changed" ? outcome.paths : []
})
