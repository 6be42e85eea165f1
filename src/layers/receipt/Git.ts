/**
 * Patches put on their base by git, in an index of their own: no file is written, so nothing that a repository planted has
 * anything to act on.
 */
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { gitIn, type Repository } from "../git/GitBinary.ts"
import { Reproduction } from "../../services/Reproduction.ts"
import type { OpenWorkspace } from "../../services/Workspace.ts"
import { failed } from "../workspace/Failure.ts"
import type { Platform } from "../workspace/Opened.ts"
import { removeTree } from "../workspace/RemoveTree.ts"
import { writeTree } from "../workspace/Trees.ts"

const place = Effect.fnUntraced(
  function* () {
    const fs = yield* FileSystem.FileSystem
    const made = yield* Effect.acquireRelease(
      fs.makeTempDirectory({ prefix: "looplane-receipt-" }),
      removeTree
    )
    return yield* fs.realPath(made)
  },
  Effect.mapError((cause) => failed("no place to try the patch in", cause))
)

const patched = Effect.fnUntraced(
  function* (options: {
    readonly place: string
    readonly workspace: OpenWorkspace
    readonly patch: Uint8Array
  }) {
    const path = yield* Path.Path
    const { patch, workspace } = options
    const base = workspace.prepared.tree
    if (patch.length === 0) return base
    const scratch: Repository = {
      git_dir: path.join(options.place, "git"),
      work_tree: workspace.root,
      index: path.join(options.place, "patched.index")
    }
    yield* gitIn(scratch, ["read-tree", base])
    yield* gitIn(scratch, ["apply", "--cached", "--whitespace=nowarn", "-"], { stdin: patch })
    return yield* writeTree(scratch)
  },
  Effect.catchTags({
    GitError: (cause) => Effect.fail(failed("the patch does not apply", cause)),
    PlatformError: (cause) => Effect.fail(failed("the patched tree cannot be kept", cause))
  })
)

export const layer: Layer.Layer<Reproduction, never, Platform> = Layer.effect(
  Reproduction,
  Effect.gen(function* () {
    const services = yield* Effect.map(
      Effect.context<Platform>(),
      Context.pick(ChildProcessSpawner.ChildProcessSpawner, FileSystem.FileSystem, Path.Path)
    )
    return Reproduction.of({
      place: Effect.provideContext(place(), services),
      patched: (options) => Effect.provideContext(patched(options), services)
    })
  })
)
