/**
 * Opening a workspace: our own git directory, the checkout, and what a clone lacks. What can run side by side does.
 */
import { Context, Effect, FileSystem, Path } from "effect"
import { ChildProcessSpawner } from "effect/process"
import type { EventData } from "../../domain/Event.ts"
import { TreeId } from "../../domain/Ids.ts"
import type { Task } from "../../domain/Task.ts"
import { leftOutOfSparse, sourceState, workTreeChanges } from "../git/Dirty.ts"
import { displayName, git, gitIn, type Repository, splitNul, textOf } from "../git/GitBinary.ts"
import { copyObjects, type GitLocation, headOf, locateGit, makeGitDirectory } from "../git/GitDirectory.ts"
import {
  captureDependencies,
  type DependencyLayer,
  planDependencies,
  provideDependencies
} from "./Dependencies.ts"
import { failed } from "./Failure.ts"
import { excludesOf } from "./Ignore.ts"
import type { Opened, Platform } from "./Opened.ts"
import { clean } from "./Recorder.ts"
import { runSetup, taskEnvironment } from "./Setup.ts"
import { checkoutSubmodules, gatherSubmodules } from "./Submodules.ts"
import { finishThrowAway, makeThrowAway } from "./ThrowAway.ts"
import { rootOf, treeMapOf } from "./TreeMap.ts"
import {
  checkout,
  differences,
  entriesOf,
  ignored,
  keepTree,
  type Store,
  type TreeEntry,
  updateIndex,
  writeTree
} from "./Trees.ts"

/** Paths of a dirty source that a result names; more would help nobody. */
const maxLeftOut = 500

/** The tree of the source's work tree as it stands, untracked files included, through an index of ours. */
const workingTree = Effect.fnUntraced(function* (source: Repository, location: GitLocation, commit: string) {
  const sparse = new Set(yield* leftOutOfSparse(source, location))
  yield* git({
    cwd: source.git_dir,
    env: { GIT_INDEX_FILE: source.index },
    args: [`--git-dir=${source.git_dir}`, "read-tree", commit]
  })
  const missing = sparse.size === 0 ? [] : splitNul(yield* gitIn(source, ["ls-files", "-z", "-d"]))
  const absent = new Set(missing.filter((name) => sparse.has(name)))
  const changes = (yield* workTreeChanges(source, location)).filter((name) => !absent.has(name))
  yield* updateIndex(
    source,
    changes.filter((name) => !name.endsWith("/")),
    () => true
  )
  const tree = yield* writeTree(source)
  return { tree, dirty: changes.filter((name) => name.endsWith("/")), ignored: null }
})

/**
 * The base's ignore rules as one file. The source's own `info/exclude` counts as the base's: it is where its owner keeps
 * rules, and no agent can reach it. It is read once, now.
 */
const writeExcludes = Effect.fnUntraced(function* (
  store: Store,
  location: GitLocation,
  entries: ReadonlyArray<TreeEntry>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const read = (at: string) =>
    fs.readFile(at).pipe(
      Effect.map((bytes) => Buffer.from(bytes).toString("latin1")),
      Effect.catchTag("PlatformError", () => Effect.succeed(""))
    )
  const rules = entries.filter(
    (entry) =>
      entry.mode.startsWith("100") && (entry.path === ".gitignore" || entry.path.endsWith("/.gitignore"))
  )
  const [first, ...files] = yield* Effect.all(
    [
      Effect.map(read(path.join(location.common_dir, "info", "exclude")), (content) => ({
        directory: "",
        content
      })),
      ...rules.flatMap((entry) => {
        const name = textOf(entry.path)
        if (name === undefined) return []
        const directory = entry.path.slice(0, Math.max(0, entry.path.lastIndexOf("/")))
        return [Effect.map(read(path.join(store.work_tree, name)), (content) => ({ directory, content }))]
      })
    ],
    { concurrency: 8 }
  )
  const list = excludesOf(files, first?.content ?? "")
  yield* fs.writeFile(store.excludes, Buffer.from(list, "latin1"), { mode: 0o600 })
})

interface Places {
  readonly store: Store
  readonly source: Repository
  readonly aside: string
  readonly modules: string
  readonly task_env: string
  readonly staging: string
}

const placesOf = Effect.fnUntraced(function* (task: Task, directory: string) {
  const path = yield* Path.Path
  const git_dir = path.join(directory, "git")
  const places: Places = {
    store: {
      git_dir,
      work_tree: path.join(directory, "workspace"),
      index: path.join(git_dir, "index"),
      excludes: path.join(git_dir, "info", "looplane-excludes")
    },
    source: { git_dir, work_tree: task.repository, index: path.join(git_dir, "source.index") },
    aside: path.join(directory, "deps"),
    modules: path.join(directory, "modules"),
    task_env: path.join(directory, "task-env"),
    staging: path.join(directory, "staging")
  }
  return places
})

/** The git directory and every object of the source: from here on only ours is read. */
const cloneInto = Effect.fnUntraced(function* (task: Task, directory: string, places: Places) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(directory, { recursive: true, mode: 0o700 })
  // Making it is the lock: a directory that holds a clone already is another run's.
  yield* fs
    .makeDirectory(places.store.git_dir, { mode: 0o700 })
    .pipe(Effect.mapError((cause) => failed(`${places.store.git_dir} cannot be made`, cause)))
  yield* Effect.all([
    fs.makeDirectory(places.store.work_tree, { mode: 0o700 }),
    fs.makeDirectory(places.staging, { mode: 0o700 })
  ])
  const location = yield* locateGit(task.repository)
  const { branch, shallow } = yield* headOf(location)
  const identity = { git_dir: places.store.git_dir, commit: task.base.commit, branch, shallow }
  yield* makeGitDirectory({
    at: places.store.git_dir,
    commit: task.base.commit,
    branch: null,
    bare: true,
    shallow
  })
  yield* copyObjects(location.common_dir, path.join(places.store.git_dir, "objects"))
  return { identity, location }
})

/** Keeps directories that somebody named out of every tree, whatever the base's rules say of them. */
const hide = Effect.fnUntraced(function* (store: Store, { copied, included }: DependencyLayer) {
  const fs = yield* FileSystem.FileSystem
  const directories = copied.filter((name) => !included.includes(name))
  const rules = directories.map((name) => `/${name}\n`).join("")
  yield* fs.writeFileString(store.excludes, rules, { flag: "a" })
})

/** Of what set-up changed in the repository's own files, as many paths are named. */
const maxNotes = 20

/**
 * Puts the workspace back to where it starts: what set-up wrote into the repository's own files is no change of the
 * agent's, and a patch that carried it would not be the agent's alone. Returns what was put back.
 */
const putBack = Effect.fnUntraced(function* (store: Store, start: string) {
  const { paths } = yield* differences(store)
  if (paths.length === 0) return []
  yield* checkout(store, start)
  yield* clean(store)
  const more = paths.length > maxNotes ? [`and ${paths.length - maxNotes} more paths that set-up wrote`] : []
  return [
    ...paths.slice(0, maxNotes).map((name) => `written by set-up and put back: ${displayName(name)}`),
    ...more
  ]
})

/** Everything up to the first tool. */
export const prepare = Effect.fnUntraced(
  function* (task: Task, directory: string) {
    const fs = yield* FileSystem.FileSystem
    const places = yield* placesOf(task, directory)
    const { aside, modules, source, store, task_env } = places
    // Only these: a whole context would carry the scope that it was captured in to whoever uses the workspace later.
    const services: Context.Context<Platform> = Context.pick(
      ChildProcessSpawner.ChildProcessSpawner,
      FileSystem.FileSystem,
      Path.Path
    )(yield* Effect.context<Platform>())
    const { identity, location } = yield* cloneInto(task, directory, places)
    const { commit, kind } = task.base
    const standing = kind === "working_tree" ? yield* workingTree(source, location, commit) : null
    const start = standing?.tree ?? commit
    const [entries, state] = yield* Effect.all(
      [
        entriesOf(store.git_dir, start),
        standing === null ? sourceState(source, location) : Effect.succeed(standing),
        checkout(store, start),
        makeThrowAway(store.work_tree, identity)
      ],
      { concurrency: "unbounded" }
    )
    const tree = TreeId.make(rootOf(treeMapOf(entries, start.length)))
    yield* writeExcludes(store, location, entries)
    const [planned, submodules] = yield* Effect.all(
      [
        planDependencies(
          task,
          { ...store, work_tree: task.repository },
          store.work_tree,
          entries,
          state.ignored
        ),
        gatherSubmodules(entries, location, store.work_tree, modules),
        finishThrowAway(store.work_tree, store.index),
        keepTree(store.git_dir, tree),
        fs.remove(source.index, { force: true })
      ],
      { concurrency: "unbounded" }
    )
    yield* checkoutSubmodules(submodules, store.work_tree, "workspace")
    if (task.dependencies.mode === "path") yield* hide(store, planned)
    yield* provideDependencies(planned, store.work_tree, () => true)
    const setUp = task.setup.length > 0
    if (setUp) yield* runSetup(task.setup, store.work_tree, yield* taskEnvironment(task_env))
    const layer = setUp ? yield* captureDependencies(planned, store, aside) : planned
    const notes = setUp || task.dependencies.mode === "path" ? yield* putBack(store, start) : []
    const prepared: EventData<"workspace.prepared"> = {
      base_sha: commit,
      tree,
      left_out: state.dirty.slice(0, maxLeftOut).map(displayName),
      dependencies: {
        requested: task.dependencies,
        copied: layer.copied,
        lock_digest: layer.lock_digest,
        reason: layer.reason
      },
      setup: task.setup.map((argv) => argv.join(" "))
    }
    const opened: Opened = {
      directory,
      store,
      identity,
      base: tree,
      entries,
      layer,
      any_locks: task.dependencies.mode === "copy" || task.dependencies.mode === "path",
      submodules,
      ignored_before: new Set(
        setUp ? yield* ignored(store) : layer.copied.flatMap((name) => [name, `${name}/`])
      ),
      notes,
      services
    }
    return { opened, prepared, staging: places.staging, scratch: [places.staging, places.task_env] }
  },
  (effect) =>
    effect.pipe(
      Effect.catchTags({
        GitError: (cause) => Effect.fail(failed("the workspace cannot be made", cause)),
        PlatformError: (cause) => Effect.fail(failed("the workspace cannot be made", cause))
      })
    )
)
