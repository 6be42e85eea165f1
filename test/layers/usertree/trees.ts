import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { decide, type MergedText } from "../../../src/domain/Apply.ts"
import { planApply } from "../../../src/domain/ApplyPlan.ts"
import { Digest, RunId } from "../../../src/domain/Ids.ts"
import { ApplySteps } from "../../../src/layers/usertree/Fault.ts"
import * as UserTreeLayer from "../../../src/layers/usertree/UserTree.ts"
import * as Watcher from "../../../src/layers/usertree/Watcher.ts"
import {
  type NewCommit,
  type OpenUserTree,
  type PatchSource,
  UserTree
} from "../../../src/services/UserTree.ts"

export const about = {
  run_id: RunId.make("run-1"),
  patch_digest: Digest.make("a".repeat(64)),
  unverified: false,
  conflicts: false
}

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layerSecureRandom)

export interface TreeOptions {
  readonly steps?: (step: string) => Effect.Effect<void>
  readonly watcher?: readonly [string, ...ReadonlyArray<string>]
}

/** Opens the tree at a root for one program. */
export const withTree = <A, E>(
  root: string,
  use: (tree: OpenUserTree) => Effect.Effect<A, E>,
  options: TreeOptions = {}
) =>
  Effect.gen(function* () {
    const userTree = yield* UserTree
    return yield* use(yield* userTree.open(root, { write: true }))
  }).pipe(
    Effect.scoped,
    Effect.provide(
      UserTreeLayer.layer.pipe(
        Layer.provide(
          options.watcher === undefined ? Watcher.layerNone : Watcher.layerProcess(options.watcher)
        ),
        Layer.provide(Layer.succeed(ApplySteps, options.steps ?? (() => Effect.void))),
        Layer.provide(platform)
      )
    )
  )

/** The plan of a patch against the tree as it stands. */
export const planOf = Effect.fnUntraced(function* (tree: OpenUserTree, source: PatchSource, mark = false) {
  const surveyed = yield* tree.survey(source)
  const merged = new Map<string, MergedText | null>()
  for (const each of surveyed) {
    const decision = decide(each)
    if (decision._tag === "MergeText") merged.set(each.path, yield* tree.merge(decision.texts))
  }
  return planApply(surveyed, (path) => merged.get(path) ?? null, mark)
})

export const message: NewCommit = { run_id: about.run_id, instruction: "Fix it." }

/** Applies a patch, unless there are conflicts or nothing to do; with `commit`, commits it. */
export const applySource = (
  root: string,
  source: PatchSource,
  options: TreeOptions & { readonly commit?: boolean } = {}
) =>
  withTree(
    root,
    (tree) =>
      Effect.gen(function* () {
        const plan = yield* planOf(tree, source)
        if (plan.conflicts.length > 0 || plan.steps.length === 0) return { plan, record: null }
        return { plan, record: yield* tree.write(plan.steps, about, options.commit ? message : null) }
      }),
    options
  )
