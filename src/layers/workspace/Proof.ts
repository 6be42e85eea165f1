/**
 * Proof that what is checked and what is handed over are one and the same. Where nothing contains commands, a check of
 * the same user can rewrite the run's own git directory: objects, settings, attributes. That cannot be prevented there,
 * but it must never end in a tree that is said to be verified and is not. So nothing that git reads back is believed
 * before it is hashed again, against ids that only this process holds.
 */
import { Effect, FileSystem, Path, Ref } from "effect"
import { readlink } from "node:fs/promises"
import { TreeId } from "../../domain/Ids.ts"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import type { ChangedFile } from "../../domain/Result.ts"
import {
  byBytes,
  bytePath,
  displayName,
  git,
  gitIn,
  joinNul,
  type Repository,
  splitNul
} from "../git/GitBinary.ts"
import { bareDirectory, changedControl } from "../git/GitDirectory.ts"
import { gitObject } from "../git/Objects.ts"
import { failed } from "./Failure.ts"
import type { Opened } from "./Opened.ts"
import { type Submodule, submoduleIn } from "./Submodules.ts"
import { isTree, rootOf, treeMapOf } from "./TreeMap.ts"
import { entriesOf, type RawChange, type Store, type TreeEntry } from "./Trees.ts"

const tampered = (what: string) =>
  failed(
    `something else changed the run's own store (${what}), so nothing that is checked from it can be believed`
  )

/** Fails when a setting of our own git directory is not the one that we made. */
export const proveSettings = Effect.fnUntraced(function* ({ identity }: Opened) {
  const name = yield* changedControl(bareDirectory(identity.git_dir, identity.commit, identity.shallow))
  if (name !== null) return yield* tampered(`git/${name}`)
})

/** The entries of a tree, proved to be what its id says. */
export const provenEntries = Effect.fnUntraced(function* (opened: Opened, tree: TreeId) {
  if (tree === opened.base) return opened.entries
  const last = yield* Ref.get(opened.proven)
  if (last?.tree === tree) return last.entries
  const entries = yield* entriesOf(opened.store.git_dir, tree)
  if (!isTree(treeMapOf(entries, tree.length), tree)) return yield* tampered(`tree ${tree}`)
  yield* Ref.set(opened.proven, { tree, entries })
  return entries
})

/** Fails unless a place holds a submodule's commit as it was when the run began, where we have it. */
export const proveSubmodule = Effect.fnUntraced(function* (
  submodule: Submodule,
  root: string,
  label: string
) {
  const { commit, entries, git_dir } = submodule
  if (git_dir === null || entries === null) return
  const name = yield* changedControl(bareDirectory(git_dir, commit, null))
  if (name !== null) return yield* tampered(`submodule ${submodule.path}`)
  const map = treeMapOf(entries, commit.length)
  const place = { ...submoduleIn({ ...submodule, git_dir }, root, label), excludes: "/dev/null" }
  yield* provePlace(place, TreeId.make(rootOf(map)), entries)
})

/** The target of a link, in bytes; empty when there is no link. */
const linkTarget = (root: string, name: ByteString) =>
  Effect.promise(() => readlink(bytePath(root, name), { encoding: "buffer" }).catch(() => Buffer.alloc(0)))

/** Fails unless a place holds, on disk, every path of the tree with its bytes and its mode. */
export const provePlace = Effect.fnUntraced(function* (
  place: Store,
  tree: TreeId,
  entries: ReadonlyArray<TreeEntry>
) {
  const fs = yield* FileSystem.FileSystem
  // An index that has never seen the disk: git can only compare by hashing every file.
  const blind: Store = { ...place, index: `${place.index}.proof` }
  yield* gitIn(blind, ["read-tree", tree])
  const [differing, links] = yield* Effect.all(
    [
      Effect.map(gitIn(blind, ["ls-files", "-z", "-m", "-d"]), splitNul),
      // Links are compared with the object that they were made from, which says nothing of that object.
      Effect.filter(
        entries.filter((entry) => entry.mode === "120000"),
        (entry) =>
          Effect.map(
            linkTarget(place.work_tree, entry.path),
            (target) => gitObject("blob", target, tree.length).id !== entry.id
          ),
        { concurrency: 16 }
      )
    ],
    { concurrency: 2 }
  )
  yield* fs.remove(blind.index, { force: true })
  const first = differing[0] ?? links[0]?.path
  if (first !== undefined) return yield* tampered(displayName(first))
})

const changeOf: Readonly<Record<string, ChangedFile["change"]>> = {
  A: "added",
  D: "deleted",
  T: "type_changed"
}

/** The changed files of a difference, sorted. */
export const changedFiles = (
  changes: ReadonlyArray<Pick<RawChange, "path" | "status">>
): ReadonlyArray<ChangedFile> =>
  changes
    .map(({ path, status }) => ({ path: displayName(path), change: changeOf[status] ?? "modified" }))
    .toSorted((a, b) => byBytes(a.path, b.path))

/** Whether each object holds the bytes that its id says. */
const areBlobs = Effect.fnUntraced(function* (git_dir: string, ids: ReadonlyArray<string>) {
  const output = Buffer.from(
    yield* git({
      cwd: git_dir,
      args: [`--git-dir=${git_dir}`, "cat-file", "--batch"],
      stdin: Buffer.from(ids.map((id) => `${id}\n`).join(""))
    })
  )
  let at = 0
  for (const id of ids) {
    const line = output.indexOf(0x0a, at)
    const size = Number(/^[0-9a-f]+ blob (\d+)$/.exec(output.toString("latin1", at, line))?.[1] ?? NaN)
    if (Number.isNaN(size)) return false
    const content = output.subarray(line + 1, line + 1 + size)
    if (gitObject("blob", content, id.length).id !== id) return false
    at = line + 1 + size + 1
  }
  return true
})

const filesOf = (entries: ReadonlyArray<TreeEntry>): ReadonlyMap<ByteString, TreeEntry> =>
  new Map(entries.filter((entry) => entry.mode !== "040000").map((entry) => [entry.path, entry]))

const isSame = (a: TreeEntry | undefined, b: TreeEntry | undefined): boolean =>
  a?.mode === b?.mode && a?.id === b?.id

/** What git calls the change of a path. */
const statusOf = (before: TreeEntry | undefined, after: TreeEntry | undefined): string => {
  if (before === undefined) return "A"
  if (after === undefined) return "D"
  return before.mode.slice(0, 3) === after.mode.slice(0, 3) ? "M" : "T"
}

/** As `update-index --index-info` takes entries and `ls-files -s` gives them. */
const indexLine = ({ id, mode, path }: TreeEntry): string => `${mode} ${id} 0\t${path}`

/**
 * Fails unless the patch, applied by git to the base that we began with, gives exactly the tree. What differs between
 * the two is known here without git: it is asked of nothing that a check could have written to. Returns the changed files.
 */
export const provePatch = Effect.fnUntraced(function* (opened: Opened, tree: TreeId, patch: Uint8Array) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { entries, store } = opened
  const [before, after] = [filesOf(entries), filesOf(yield* provenEntries(opened, tree))]
  const changed = new Set(
    [...before.keys(), ...after.keys()].filter((name) => !isSame(before.get(name), after.get(name)))
  )
  const only = (files: ReadonlyMap<ByteString, TreeEntry>) =>
    [...files.values()].filter((entry) => changed.has(entry.path))
  const old = only(before)
  const blobs = old.filter((entry) => entry.mode !== "160000").map((entry) => entry.id)
  if (blobs.length > 0 && !(yield* areBlobs(store.git_dir, blobs))) return yield* tampered("the base")
  const place = yield* fs.makeTempDirectoryScoped({ directory: opened.directory, prefix: "proof-" })
  const scratch: Repository = { ...store, index: path.join(place, "index") }
  if (old.length > 0)
    yield* gitIn(scratch, ["update-index", "-z", "--index-info"], { stdin: joinNul(old.map(indexLine)) })
  yield* gitIn(scratch, ["apply", "--cached", "--whitespace=nowarn", "-"], { stdin: patch }).pipe(
    Effect.mapError((cause) => failed("the patch does not apply to its own base", cause))
  )
  const gives = splitNul(yield* gitIn(scratch, ["ls-files", "-s", "-z"])).toSorted()
  const wanted = only(after).map(indexLine).toSorted()
  if (gives.length !== wanted.length || gives.some((line, at) => line !== wanted[at]))
    return yield* failed("the patch does not give the tree that it was made from")
  return changedFiles(
    [...changed].map((name) => ({ path: name, status: statusOf(before.get(name), after.get(name)) }))
  )
}, Effect.scoped)
