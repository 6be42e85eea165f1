/**
 * The user's own work tree, to apply a patch to it: the one service that writes there.
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { MergedText, SurveyedPath, Texts } from "../domain/Apply.ts"
import type { ApplyStep } from "../domain/ApplyPlan.ts"
import type { ApplyRecord } from "../domain/ApplyRecord.ts"
import type { CommitId, Digest, RunId, TreeId } from "../domain/Ids.ts"

export class UserTreeError extends Schema.TaggedError<UserTreeError>()("UserTreeError", {
  /** `refused`: nothing was begun. `failed`: something was, and what it had changed was put back. */
  reason: Schema.Literals(["refused", "failed"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** A patch, and where what it says of files can be looked up. */
export interface PatchSource {
  readonly run_id: RunId
  readonly patch: Uint8Array
  readonly base_commit: CommitId
  /** What the patch begins from: that commit, or the tree of the work tree that the run was begun on. */
  readonly base: CommitId | TreeId
  /** What it ends in; null when nothing says so. */
  readonly tree: TreeId | null
  /** The run's directory, whose `git/` is asked for objects that the repository does not have. */
  readonly run_directory: string
}

/** How an apply that was cut off was put right. */
export interface Recovery {
  readonly run_id: RunId
  readonly outcome: "finished" | "committed" | "put_back"
  /** Paths that somebody changed since: they stay, and what they were before is kept in `saved`. */
  readonly foreign: ReadonlyArray<string>
  readonly saved: string | null
}

export interface ApplyAbout {
  readonly run_id: RunId
  readonly patch_digest: Digest
  readonly unverified: boolean
  readonly conflicts: boolean
}

export interface NewCommit {
  readonly run_id: RunId
  readonly instruction: string
}

/** Paths are relative to the work tree's root, through `checkWorkspacePath`. */
export interface OpenUserTree {
  /** What was put right before anything else. */
  readonly recovered: ReadonlyArray<Recovery>
  /** Every path of the patch with what stands there. Refuses a patch whose tree is not the one that it should give, and
   * paths through a symlinked directory, into a git directory or into a submodule. */
  readonly survey: (source: PatchSource) => Effect.Effect<ReadonlyArray<SurveyedPath>, UserTreeError>
  readonly merge: (texts: Texts) => Effect.Effect<MergedText | null, UserTreeError>
  /** All or nothing, also over a crash: see `ApplyRecord`. Refuses when a path is no longer what the step says. With a
   * commit, the paths and nothing else are committed on top of HEAD, and that is part of the all. */
  readonly write: (
    steps: ReadonlyArray<ApplyStep>,
    about: ApplyAbout,
    commit: NewCommit | null
  ) => Effect.Effect<ApplyRecord, UserTreeError>
  /** The newest whole apply of the run, or of any; null when there is none. */
  readonly last: (run_id: RunId | null) => Effect.Effect<ApplyRecord | null, UserTreeError>
  /** Puts every path back, unless one is no longer what the apply left: returns those, and nothing was written. */
  readonly undo: (record: ApplyRecord) => Effect.Effect<ReadonlyArray<string>, UserTreeError>
  /** A new branch with base plus patch on it. Touches neither work tree nor index. */
  readonly branch: (
    source: PatchSource,
    name: string,
    commit: NewCommit
  ) => Effect.Effect<CommitId, UserTreeError>
  /** Refuses unless exactly these paths could be committed on top of HEAD. */
  readonly checkCommit: (surveyed: ReadonlyArray<SurveyedPath>) => Effect.Effect<void, UserTreeError>
}

export class UserTree extends Context.Service<
  UserTree,
  {
    /**
     * Opens the work tree at `root`, alone: another apply there is refused. What an apply that was cut off has left is
     * put right first. With `write` false nothing is made in the repository.
     */
    readonly open: (
      root: string,
      options: { readonly write: boolean }
    ) => Effect.Effect<OpenUserTree, UserTreeError, Scope.Scope>
  }
>()("looplane/services/UserTree") {}
