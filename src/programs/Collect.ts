/**
 * What a tree would be handed over as, kept in the journal before any check of it can touch it.
 */
import { Effect } from "effect"
import type { TreeId } from "../domain/Ids.ts"
import { toOctets } from "../domain/Octets.ts"
import type { Journal } from "../services/RunStore.ts"
import type { OpenWorkspace } from "../services/Workspace.ts"

export const collect = Effect.fn("Collect.collect")(function* (
  journal: Journal,
  workspace: OpenWorkspace,
  tree: TreeId
) {
  const [{ files, patch }, unrecorded] = yield* Effect.all([workspace.handOver(tree), workspace.unrecorded], {
    concurrency: 2
  })
  const data = { tree, files, patch: toOctets(patch), unrecorded }
  yield* journal.append({ event_type: "patch.collected", data })
  return data
})
