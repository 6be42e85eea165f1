/**
 * A place away from every run, where a patch is put on its base again.
 */
import { Context, type Effect, type Scope } from "effect"
import type { TreeId } from "../domain/Ids.ts"
import type { OpenWorkspace, WorkspaceError } from "./Workspace.ts"

export class Reproduction extends Context.Service<
  Reproduction,
  {
    /** An empty directory, outside of every repository, gone with the scope whatever stands in it by then. */
    readonly place: Effect.Effect<string, WorkspaceError, Scope.Scope>
    /**
     * The tree that a patch makes of the base of a workspace that was opened in `place`. Applied as git applies it, all
     * or nothing; the workspace itself stays as it is and can `materialise` the tree.
     */
    readonly patched: (options: {
      readonly place: string
      readonly workspace: OpenWorkspace
      readonly patch: Uint8Array
    }) => Effect.Effect<TreeId, WorkspaceError>
  }
>()("looplane/services/Reproduction") {}
