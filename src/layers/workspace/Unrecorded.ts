/**
 * What stands in the workspace and can be in no tree: said, so that nobody believes it was handed over.
 */
import { Effect, FileSystem, Path } from "effect"
import { byBytes, displayName } from "../git/GitBinary.ts"
import type { Opened } from "./Opened.ts"
import { submoduleIn } from "./Submodules.ts"
import { differences, ignored, untracked } from "./Trees.ts"

/** FIFOs, sockets and devices below a directory, `skip` and git directories left out. */
const specialBelow = Effect.fnUntraced(function* (root: string, skip: ReadonlySet<string>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const found: Array<string> = []
  const queue = [""]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const entries = yield* fs
      .readDirectoryEntries(path.join(root, next))
      .pipe(Effect.catchTag("PlatformError", () => Effect.succeed([])))
    for (const entry of entries) {
      const at = next === "" ? entry.name : `${next}/${entry.name}`
      if (entry.type === "Directory") {
        if (entry.name !== ".git" && !skip.has(at)) queue.push(at)
      } else if (entry.type !== "File" && entry.type !== "SymbolicLink") {
        found.push(`special file: ${at} (${entry.type})`)
      }
    }
  }
  return found
})

/** One line for each thing, sorted. */
export const unrecorded = Effect.fnUntraced(function* (opened: Opened) {
  const { ignored_before, store, submodules } = opened
  const [others, hidden] = yield* Effect.all([untracked(store), ignored(store)], { concurrency: 2 })
  const fresh = hidden.map(displayName).filter((name) => !ignored_before.has(name))
  const skip = new Set([...hidden, ...others.nested].map((name) => displayName(name).replace(/\/$/, "")))
  const special = yield* specialBelow(store.work_tree, skip)
  const changedInside = yield* Effect.forEach(submodules, (submodule) =>
    Effect.gen(function* () {
      const { git_dir, path } = submodule
      if (git_dir === null) return [`submodule ${path}: left empty, the source has no copy of it`]
      const inside = {
        ...submoduleIn({ ...submodule, git_dir }, store.work_tree, "workspace"),
        excludes: "/dev/null"
      }
      const { nested, paths } = yield* differences(inside).pipe(
        Effect.catchTag("GitError", () => Effect.succeed({ nested: [], paths: [] }))
      )
      return paths.length + nested.length === 0
        ? []
        : [`submodule ${path}: changes inside of it are not recorded`]
    })
  )
  return [
    ...opened.notes,
    ...others.nested.map((name) => `nested repository: ${displayName(name)}/`),
    ...others.paths.map((name) => `not recorded: ${displayName(name)}`),
    ...fresh.map((name) => `ignored: ${name}`),
    ...special,
    ...changedInside.flat()
  ].toSorted(byBytes)
})
