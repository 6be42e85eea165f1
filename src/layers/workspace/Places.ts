/**
 * Where things of a run lie. Every path hangs on the run's directory, so that a bundle can be moved.
 */
import { Effect, Path } from "effect"
import type { Task } from "../../domain/Task.ts"
import type { Repository } from "../git/GitBinary.ts"
import type { Store } from "./Trees.ts"

export interface Places {
  /** The run's directory. */
  readonly directory: string
  /** Our git directory with the workspace as its work tree. */
  readonly store: Store
  /** Our git directory with the source as its work tree. */
  readonly source: Repository
  /** What set-up installed. */
  readonly aside: string
  /** Our copies of the submodules' repositories. */
  readonly modules: string
  /** What the run wrote down of its workspace for whoever opens it again. */
  readonly record: string
  readonly task_env: string
  /** What is being made, until it is whole. */
  readonly staging: string
}

export const placesOf = Effect.fnUntraced(function* (task: Task, directory: string) {
  const path = yield* Path.Path
  const git_dir = path.join(directory, "git")
  const places: Places = {
    directory,
    store: {
      git_dir,
      work_tree: path.join(directory, "workspace"),
      index: path.join(git_dir, "index"),
      excludes: path.join(git_dir, "info", "looplane-excludes")
    },
    source: { git_dir, work_tree: task.repository, index: path.join(git_dir, "source.index") },
    aside: path.join(directory, "deps"),
    modules: path.join(directory, "modules"),
    record: path.join(git_dir, "looplane.json"),
    task_env: path.join(directory, "task-env"),
    staging: path.join(directory, "staging")
  }
  return places
})
