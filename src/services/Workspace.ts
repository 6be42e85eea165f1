/**
 * The disposable clone in which a run works, contained: no path of it leads out, no byte of it is the user's.
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { EventData } from "../domain/Event.ts"
import type { TreeId } from "../domain/Ids.ts"
import type { FileChange, FileNode } from "../domain/patch/FileSet.ts"
import type { ChangedFile } from "../domain/Result.ts"
import type { Task } from "../domain/Task.ts"
import type { CommandPlace } from "./Sandbox.ts"

export class WorkspaceError extends Schema.TaggedError<WorkspaceError>()("WorkspaceError", {
  reason: Schema.Literals([
    "refused_path",
    "not_found",
    "not_a_file",
    "too_large",
    "unwritable",
    "setup_failed",
    "failed"
  ]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** A tree against the base, as it is handed over. */
export interface WorkspaceDiff {
  /** A git unified diff with full index lines; binary files as git binary patches. */
  readonly patch: Uint8Array
  /** Sorted by path. */
  readonly files: ReadonlyArray<ChangedFile>
}

/** Paths are relative to the root, `/`-separated, already through `checkWorkspacePath`. */
export interface OpenWorkspace {
  readonly root: string
  readonly prepared: EventData<"workspace.prepared">
  /** What stood in a resumed workspace before its tree was put back; null for one that was made anew. */
  readonly found: TreeId | null
  /** The node at a path without following a final symlink; undefined when nothing is there. A path through a symlink
   * that leads out of the workspace, or into any `.git`, is refused. `max_bytes` bounds what is read. */
  readonly read: (path: string, max_bytes: number) => Effect.Effect<FileNode | undefined, WorkspaceError>
  /** Follows symlinks that stay inside; the path that is really meant. */
  readonly resolve: (path: string) => Effect.Effect<string, WorkspaceError>
  /** Paths of tracked and not ignored files below a directory, sorted; no `.git`, no symlinked directories. */
  readonly list: (directory: string) => Effect.Effect<ReadonlyArray<string>, WorkspaceError>
  /** All or nothing: either every change is on disk, or none. Keeps modes and symlinks of what it replaces. */
  readonly apply: (changes: ReadonlyArray<FileChange>) => Effect.Effect<TreeId, WorkspaceError>
  /** The state as it is now, by a full scan: what a command may have changed. Kept by a ref. */
  readonly scan: Effect.Effect<TreeId, WorkspaceError>
  /** The state after the last `apply` or `scan`. */
  readonly tree: Effect.Effect<TreeId>
  readonly diff: (tree: TreeId) => Effect.Effect<WorkspaceDiff, WorkspaceError>
  /** What is handed over of a tree: proved to apply to the base and to give that tree. Asked before any check of it runs,
   * so that no check can change it. */
  readonly handOver: (tree: TreeId) => Effect.Effect<WorkspaceDiff, WorkspaceError>
  /** Puts the workspace back to a state that it had. */
  readonly restore: (tree: TreeId) => Effect.Effect<void, WorkspaceError>
  /** A fresh directory that holds exactly the tree and its dependency layer, gone with the scope. */
  readonly materialise: (tree: TreeId) => Effect.Effect<FreshPlace, WorkspaceError, Scope.Scope>
  /** Things that the tree cannot hold: nested repositories, FIFOs, newly ignored files. One line each. */
  readonly unrecorded: Effect.Effect<ReadonlyArray<string>, WorkspaceError>
}

export interface FreshPlace {
  readonly root: string
  /** What commands must be shown below the root, from where it is: see `CommandPlace`. */
  readonly layers: CommandPlace["layers"]
  /** Paths that something wrote or removed there since it was made, sorted, at most 100. */
  readonly wrote: Effect.Effect<ReadonlyArray<string>, WorkspaceError>
  /** Why a check here could not be believed: an install that points back into the user's tree. */
  readonly distrust: string | null
}

export class Workspaces extends Context.Service<
  Workspaces,
  {
    /**
     * Clones into the run's directory. The clone stays when the scope closes; its processes do not. With `resume` the
     * workspace is that of a run that was there before: `tree` stands in it when this returns, whatever stood there,
     * out of the run's own `git/` alone where the source or the work tree is gone. Without it, what a dead run left of a
     * clone is thrown away first.
     */
    readonly open: (options: {
      readonly task: Task
      readonly directory: string
      readonly resume?: {
        readonly prepared: EventData<"workspace.prepared">
        readonly tree: TreeId
      }
    }) => Effect.Effect<OpenWorkspace, WorkspaceError, Scope.Scope>
  }
>()("looplane/services/Workspaces") {}
