/**
 * Putting a workspace back where the journal says: what stands there is looked at, kept as a tree, and replaced.
 */
import { Effect, FileSystem, Path, Ref } from "effect"
import { readFile } from "node:fs/promises"
import type { TreeId } from "../../domain/Ids.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import { gitIn, joinNul } from "../git/GitBinary.ts"
import { gitObject } from "../git/Objects.ts"
import { infoAt } from "./Contained.ts"
import { type DependencyLayer, provideDependencies } from "./Dependencies.ts"
import { failed } from "./Failure.ts"
import type { Opened } from "./Opened.ts"
import type { Places } from "./Places.ts"
import { changesBetween } from "./Proof.ts"
import { makeRecorder } from "./Recorder.ts"
import { removeTree } from "./RemoveTree.ts"
import { checkoutSubmodules } from "./Submodules.ts"
import { finishLater, isWholeIndex, makeThrowAway, mendThrowAway } from "./ThrowAway.ts"
import { checkout, entriesOf, keepTree, newestTree, readIndex, type Store } from "./Trees.ts"

/** What a path on disk holds, as a blob's id; null when it is no file. */
const blobAt = (root: string, name: string, digits: number) =>
  Effect.promise(() =>
    readFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")])).then(
      (bytes) => gitObject("blob", bytes, digits).id,
      () => null
    )
  )

/**
 * Makes the index hold what the dead process last meant the workspace to be: an edit of a path that the rules ignore is
 * found only by way of it. Where that process never came to write such a path, what is there is not its own. Returns the
 * tree that is looked from.
 */
const lookFrom = Effect.fnUntraced(function* (store: Store, tree: TreeId) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* isWholeIndex(store.index, tree.length)))
    yield* fs.remove(store.index, { recursive: true, force: true })
  const last = (yield* newestTree(store.git_dir)) ?? tree
  if (last === tree) return yield* Effect.as(readIndex(store, tree), tree)
  const added = yield* changesBetween(store.git_dir, tree, last).pipe(
    Effect.map((changes) => changes.filter((change) => change.status === "A")),
    Effect.catchTag("GitError", () => Effect.succeed(null))
  )
  if (added === null) return yield* Effect.as(readIndex(store, tree), tree)
  yield* readIndex(store, last)
  const foreign = yield* Effect.filter(added, (change) =>
    Effect.map(blobAt(store.work_tree, change.path, tree.length), (id) => id !== change.new_id)
  )
  if (foreign.length > 0)
    yield* gitIn(store, ["update-index", "--force-remove", "-z", "--stdin"], {
      stdin: joinNul(foreign.map((change) => change.path))
    })
  return last
})
