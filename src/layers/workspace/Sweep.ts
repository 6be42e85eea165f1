/**
 * What a process that died left in a run's directory. Nothing of it means anything to the next one, which alone holds
 * the run's lock.
 */
import { Effect, FileSystem, Path } from "effect"
import { isPlainGitDirectory } from "../git/GitDirectory.ts"
import { endBelow } from "../sandbox/Leftovers.ts"
import type { Places } from "./Places.ts"
import { removeTree } from "./RemoveTree.ts"

const entriesIn = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs
    .readDirectoryEntries(directory)
    .pipe(Effect.catchTag("PlatformError", () => Effect.succeed([])))
})

/** Fresh places and scratch directories, by name. */
const scratchDirectory = /^(?:staging|task-env|(?:verify|proof|task)-.*)$/

/** Locks, and indexes of places that are gone. The index of a submodule in the workspace is none of them. */
const leftoverFile = /\.lock$|\.proof$|^(?!workspace\.index$).*\.index$|^sharedindex\./

/** Objects that were being written, and directories that held such objects. */
const leftoverObject = /^(?:tmp_|incoming-)/

/** Removes what is left over among the objects. Links are never followed. */
const sweepObjects = Effect.fnUntraced(function* (objects: string) {
  const path = yield* Path.Path
  const top = yield* entriesIn(objects)
  const below = yield* Effect.forEach(
    top.filter((entry) => entry.type === "Directory" && !leftoverObject.test(entry.name)),
    ({ name }) =>
      Effect.map(entriesIn(path.join(objects, name)), (entries) =>
        entries.map((entry) => ({ ...entry, name: path.join(name, entry.name) }))
      ),
    { concurrency: 16 }
  )
  const left = [...top, ...below.flat()].filter((entry) => leftoverObject.test(path.basename(entry.name)))
  yield* Effect.forEach(left, ({ name }) => removeTree(path.join(objects, name)), { discard: true })
})

/** Removes the files that a pattern names, and temporary objects. Links are never followed. */
const sweepBelow = Effect.fnUntraced(function* (git_dir: string, leftover: RegExp) {
  const path = yield* Path.Path
  const queue = [git_dir]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const at = next
    for (const { name, type } of yield* entriesIn(at)) {
      if (type === "Directory") {
        if (at === git_dir && name === "objects") yield* sweepObjects(path.join(at, name))
        else queue.push(path.join(at, name))
      } else if (leftover.test(name)) yield* removeTree(path.join(at, name))
    }
  }
})

/** Removes locks and temporary objects of dead git processes from a `.git` that is not ours. */
export const sweepForeign = (git_dir: string) => sweepBelow(git_dir, /\.lock$/)

const sweepScratch = Effect.fnUntraced(function* ({ directory }: Places) {
  const path = yield* Path.Path
  const names = (yield* entriesIn(directory)).map((entry) => entry.name)
  const left = names.filter((name) => scratchDirectory.test(name))
  // A command of the dead process may still be at work in what is removed here, and in the workspace.
  if (left.length > 0) yield* endBelow(directory)
  yield* Effect.forEach(left, (name) => removeTree(path.join(directory, name)), { discard: true })
})

/** Removes whatever only the dead process had a use for. The workspace itself is left as it stands. */
export const sweep = Effect.fnUntraced(function* (places: Places) {
  const path = yield* Path.Path
  yield* sweepScratch(places)
  const modules = (yield* entriesIn(places.modules)).filter((entry) => entry.type === "Directory")
  for (const at of [places.store.git_dir, ...modules.map(({ name }) => path.join(places.modules, name))])
    if (yield* isPlainGitDirectory(at)) yield* sweepBelow(at, leftoverFile)
})

/** Removes all that hangs on `git/`. */
export const discardWork = Effect.fnUntraced(function* (places: Places) {
  yield* sweepScratch(places)
  const { aside, modules, store } = places
  yield* Effect.forEach([store.work_tree, aside, modules], removeTree, { discard: true })
})

/** Removes every part of a clone that was never finished. */
export const discard = (places: Places) =>
  Effect.andThen(discardWork(places), removeTree(places.store.git_dir))

/** Leaves of a git directory of ours only its objects and its refs; nothing of one that links lead out of. */
export const discardSettings = Effect.fnUntraced(function* (git_dir: string) {
  const path = yield* Path.Path
  if (!(yield* isPlainGitDirectory(git_dir))) return yield* removeTree(git_dir)
  const names = (yield* entriesIn(git_dir)).map((entry) => entry.name)
  const settings = names.filter((name) => name !== "objects" && name !== "refs")
  yield* Effect.forEach([...settings, "objects/info"], (name) => removeTree(path.join(git_dir, name)), {
    discard: true
  })
})
