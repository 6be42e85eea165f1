/**
 * The user's repository, read only: everything a run must know before and beside its clone.
 */
import { Context, type Effect, Schema } from "effect"
import type { CommitId } from "../domain/Ids.ts"

export class GitError extends Schema.TaggedError<GitError>()("GitError", {
  reason: Schema.Literals([
    "missing_git",
    "not_a_repository",
    "bare",
    "no_commits",
    "unknown_commit",
    "failed"
  ]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export interface Source {
  /** The work tree's root, absolute and free of symlinks. */
  readonly root: string
  /** Where the user stood, relative to the root; "" is the root. */
  readonly subdirectory: string
  readonly head: CommitId
}

export class Git extends Context.Service<
  Git,
  {
    /** Finds the repository that holds `directory`. Runs nothing that the repository planted. */
    readonly source: (directory: string) => Effect.Effect<Source, GitError>
    /** The full id of a commit that the repository has. */
    readonly resolve: (root: string, revision: string) => Effect.Effect<CommitId, GitError>
    /** The bytes of a file of a commit; null when it is not a regular file there, or larger than `max_bytes`. */
    readonly file: (
      root: string,
      commit: CommitId,
      path: string,
      max_bytes: number
    ) => Effect.Effect<Uint8Array | null, GitError>
    /** Sorted paths of a commit, without touching a work tree. */
    readonly paths: (root: string, commit: CommitId) => Effect.Effect<ReadonlyArray<string>, GitError>
  }
>()("looplane/services/Git") {}
