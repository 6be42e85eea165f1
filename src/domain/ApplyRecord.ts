/**
 * The record of one apply: enough to put every path back to what it was, whatever happened in between. It is durable
 * before the first path is touched.
 */
import { Schema } from "effect"
import { CommitId, Digest, RunId } from "./Ids.ts"
import { ChangedFile } from "./Result.ts"

/** What stands at a path. A file's bytes lie beside the record. */
export const Standing = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("absent") }),
  Schema.Struct({
    kind: Schema.Literal("file"),
    digest: Digest,
    executable: Schema.Boolean,
    /** Permission bits. */
    mode: Schema.Int
  }),
  Schema.Struct({ kind: Schema.Literal("symlink"), target: Schema.String })
])
export type Standing = typeof Standing.Type

export const ApplyRecord = Schema.Struct({
  version: Schema.Literal(1),
  id: Schema.String,
  run_id: RunId,
  patch_digest: Digest,
  /** The user said `--unverified`. */
  unverified: Schema.Boolean,
  /** Files were written with conflict markers. */
  conflicts: Schema.Boolean,
  created_at: Schema.String,
  /**
   * `prepared`: paths may have been touched, and go back to `before` unless all of them are at `after`. `done`: the
   * apply is whole. `undoing`: paths are on their way back. `left`: a path was changed by somebody else meanwhile, so
   * the rest was put back and what that path was before is kept here.
   */
  phase: Schema.Literals(["prepared", "done", "undoing", "left"]),
  /** The commit that was made of it; null until it is on its branch. */
  commit: Schema.NullOr(CommitId),
  /** The commit that is to be made of it, objects and all, and what it goes on: HEAD, and the branch that HEAD names,
   * null for none. Once it is on its branch there is no way back. */
  onto: Schema.optionalKey(
    Schema.Struct({ ref: Schema.NullOr(Schema.String), parent: CommitId, commit: CommitId })
  ),
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      change: ChangedFile.fields.change,
      merged: Schema.Boolean,
      before: Standing,
      after: Standing
    })
  ),
  /** Directories that were not there before, outermost first. */
  made: Schema.Array(Schema.String),
  /** Directories that a deletion may leave empty, and their permission bits. */
  emptied: Schema.Array(Schema.Struct({ path: Schema.String, mode: Schema.Int }))
})
export type ApplyRecord = typeof ApplyRecord.Type

export const sameStanding = (left: Standing, right: Standing): boolean => {
  switch (left.kind) {
    case "absent":
      return right.kind === "absent"
    case "file":
      return right.kind === "file" && left.digest === right.digest && left.executable === right.executable
    case "symlink":
      return right.kind === "symlink" && left.target === right.target
  }
}

/** How a path stands against a record. */
export type Found = "before" | "after" | "foreign"

/** What an apply that was cut off calls for, by how its paths stand. */
export type Remedy =
  /** Every path is as it should have become. */
  | { readonly _tag: "Finish" }
  /** Paths that are at `after` go back; what somebody else changed since stays as it is. */
  | { readonly _tag: "GoBack"; readonly foreign: ReadonlyArray<string> }

export const remedyOf = (record: ApplyRecord, found: (path: string) => Found): Remedy => {
  const foreign = record.files.map((file) => file.path).filter((path) => found(path) === "foreign")
  return record.phase === "prepared" && record.files.every((file) => found(file.path) === "after")
    ? { _tag: "Finish" }
    : { _tag: "GoBack", foreign }
}
