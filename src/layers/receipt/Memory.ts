/**
 * Patches put on the base of a workspace in memory.
 */
import { Effect, Layer, Result } from "effect"
import { planPatch } from "../../domain/patch/Patch.ts"
import { defaultLimits } from "../../domain/Task.ts"
import { Reproduction } from "../../services/Reproduction.ts"
import { WorkspaceError } from "../../services/Workspace.ts"
import type { MemoryWorkspace } from "../workspace/Memory.ts"

/** Text patches only. The patched tree stays the workspace's current one. */
export const layerMemory = (memory: MemoryWorkspace): Layer.Layer<Reproduction> =>
  Layer.succeed(
    Reproduction,
    Reproduction.of({
      place: Effect.succeed("/reproduction"),
      patched: Effect.fnUntraced(function* ({ patch, workspace }) {
        const base = workspace.prepared.tree
        yield* workspace.restore(base)
        if (patch.length === 0) return base
        const nodes = memory.nodesOf(base)
        const changes = Result.flatMap(planPatch(new TextDecoder().decode(patch), defaultLimits), (plan) =>
          plan.apply((path) => nodes.get(path))
        )
        if (Result.isFailure(changes))
          return yield* new WorkspaceError({
            reason: "failed",
            message: `the patch does not apply: ${changes.failure.message}`
          })
        return yield* workspace.apply(changes.success)
      })
    })
  )
