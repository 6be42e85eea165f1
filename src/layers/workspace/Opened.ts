/**
 * What an open workspace knows of itself.
 */
import type { Context, FileSystem, Path, Ref } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import type { TreeId } from "../../domain/Ids.ts"
import type { DependencyLayer } from "./Dependencies.ts"
import type { Submodule } from "./Submodules.ts"
import type { Identity } from "./ThrowAway.ts"
import type { Store, TreeEntry } from "./Trees.ts"

/** What the workspace's floor stands on. */
export type Platform = ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path

export interface Opened {
  /** The run's directory. */
  readonly directory: string
  /** Our git directory with the workspace as its work tree. */
  readonly store: Store
  readonly identity: Identity
  readonly base: TreeId
  /** Everything in the base tree. */
  readonly entries: ReadonlyArray<TreeEntry>
  /** The last tree whose entries were proved. */
  readonly proven: Ref.Ref<{ readonly tree: TreeId; readonly entries: ReadonlyArray<TreeEntry> } | null>
  readonly layer: DependencyLayer
  /** What the layer was when the run began, whatever of it can still be brought: none of it is the repository's. */
  readonly brought: ReadonlyArray<string>
  /** The layer serves a tree whatever its lock files say. */
  readonly any_locks: boolean
  readonly submodules: ReadonlyArray<Submodule>
  /** See `Lfs.ts`; null when the source has none. */
  readonly lfs: string | null
  /** Ignored paths that were there when the agent began; directories end in "/". */
  readonly ignored_before: ReadonlySet<string>
  /** What came to stand in the workspace before the agent began and is not part of its change. One line each. */
  readonly notes: ReadonlyArray<string>
  readonly services: Context.Context<Platform>
}
