/**
 * Objects that must be there: had again from the source where it still has them, and named where nobody has.
 */
import { Effect, Path } from "effect"
import type { TreeId } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { isDirectory } from "../fs/Files.ts"
import { copyObjects, type GitLocation, locateGit } from "../git/GitDirectory.ts"
import { failed } from "./Failure.ts"
import type { Places } from "./Places.ts"
import { isComplete } from "./Trees.ts"

/** The source's git directory, while there is one. */
export const sourceOf = (task: Task) =>
  locateGit(task.repository).pipe(
    Effect.catchTag("GitError", (): Effect.Effect<GitLocation | null> => Effect.succeed(null))
  )

/** Fails when the base commit is nowhere to be had. */
export const demandCommit = Effect.fnUntraced(function* (task: Task, git_dir: string) {
  const { commit } = task.base
  if (yield* isComplete(git_dir, `${commit}^{tree}`)) return
  const source = yield* isDirectory(task.repository)
  return yield* failed(
    `the base commit ${commit} is gone: ${task.repository} ${source ? "no longer has it" : "is not there any more"}, and ${git_dir} does not hold it`
  )
})

/** Says what is gone for ever when a tree cannot be had. */
export const lost = (task: Task, git_dir: string, tree: TreeId) =>
  Effect.andThen(
    demandCommit(task, git_dir),
    Effect.fail(failed(`the tree ${tree} is gone: objects of it are missing in ${git_dir}`))
  )

/** Fails unless `git/` holds a tree to its last object. What the source still has is brought again first. */
export const demandTree = Effect.fnUntraced(function* (task: Task, { store }: Places, tree: TreeId) {
  const path = yield* Path.Path
  if (yield* isComplete(store.git_dir, tree)) return
  const location = yield* sourceOf(task)
  if (location !== null) {
    yield* copyObjects(location.common_dir, path.join(store.git_dir, "objects"))
    if (yield* isComplete(store.git_dir, tree)) return
  }
  return yield* lost(task, store.git_dir, tree)
})
