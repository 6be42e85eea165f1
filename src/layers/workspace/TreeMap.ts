/**
 * A tree in memory, so that an edit of a few paths costs a few objects and no process.
 */
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { byBytes } from "../git/GitBinary.ts"
import { type GitObject, gitObject } from "../git/Objects.ts"
import type { TreeEntry } from "./Trees.ts"

interface Node {
  readonly mode: string
  readonly id: string
}

type Directory = Map<ByteString, Node>

const treeMode = "040000"

export interface TreeMap {
  /** Directory ("" for the root) to what is in it. */
  readonly directories: Map<ByteString, Directory>
  readonly digits: number
}

const parentOf = (path: ByteString): ByteString => path.slice(0, Math.max(0, path.lastIndexOf("/")))
const nameIn = (path: ByteString): ByteString => path.slice(path.lastIndexOf("/") + 1)

const directoryAt = (map: TreeMap, path: ByteString): Directory => {
  const known = map.directories.get(path)
  if (known !== undefined) return known
  const made: Directory = new Map()
  map.directories.set(path, made)
  return made
}

/** From the entries of a tree, those of its subtrees included. */
export const treeMapOf = (entries: ReadonlyArray<TreeEntry>, digits: number): TreeMap => {
  const map: TreeMap = { directories: new Map([["", new Map()]]), digits }
  for (const { id, mode, path } of entries) {
    directoryAt(map, parentOf(path)).set(nameIn(path), { id, mode })
    if (mode === treeMode) directoryAt(map, path)
  }
  return map
}

export interface PathChange {
  readonly path: ByteString
  /** Null: the path is gone. */
  readonly file: { readonly bytes: Uint8Array; readonly executable: boolean } | null
}

/** Whether there is a file at the path. */
export const holds = (map: TreeMap, path: ByteString): boolean => {
  const mode = map.directories.get(parentOf(path))?.get(nameIn(path))?.mode
  return mode !== undefined && mode !== treeMode
}

/** Forgets a directory and everything below it. */
const dropBelow = (map: TreeMap, path: ByteString): void => {
  if (!map.directories.has(path)) return
  for (const directory of map.directories.keys()) {
    if (directory === path || directory.startsWith(`${path}/`)) map.directories.delete(directory)
  }
}

/** Removes an entry, and the directories that this leaves empty. Returns the directory that changed. */
const unset = (map: TreeMap, path: ByteString): ByteString => {
  const parent = parentOf(path)
  const directory = map.directories.get(parent)
  directory?.delete(nameIn(path))
  if (parent === "" || directory === undefined || directory.size > 0) return parent
  map.directories.delete(parent)
  return unset(map, parent)
}

/** Sets an entry and makes its directories, over whatever files are in the way. */
const set = (map: TreeMap, path: ByteString, node: Node): void => {
  const parent = parentOf(path)
  directoryAt(map, parent).set(nameIn(path), node)
  for (let at = parent; at !== ""; at = parentOf(at)) {
    const above = directoryAt(map, parentOf(at))
    if (above.get(nameIn(at))?.mode !== treeMode) above.set(nameIn(at), { id: "", mode: treeMode })
  }
}

/** A directory as git stores it: sorted as if the names of subtrees ended in "/". */
const treeObject = (directory: Directory, digits: number): GitObject => {
  const parts = [...directory]
    .map(([name, node]) => ({ name, node, order: node.mode === treeMode ? `${name}/` : name }))
    .toSorted((a, b) => byBytes(a.order, b.order))
    .flatMap(({ name, node }) => [
      Buffer.from(`${node.mode.replace(/^0/, "")} ${name}\0`, "latin1"),
      Buffer.from(node.id, "hex")
    ])
  return gitObject("tree", Buffer.concat(parts), digits)
}

/** The id of the whole tree, from what is known of its subtrees. */
export const rootOf = (map: TreeMap): string => treeObject(directoryAt(map, ""), map.digits).id

/** Whether every subtree is what its id says, up to this root: then the map holds that tree and nothing else. */
export const isTree = (map: TreeMap, root: string): boolean => {
  for (const [path, directory] of map.directories) {
    const said = path === "" ? root : map.directories.get(parentOf(path))?.get(nameIn(path))?.id
    if (treeObject(directory, map.digits).id !== said) return false
  }
  return true
}

/** Applies changes to the map. Returns the new root's id, and every object that is new since, blobs first. */
export const changeTree = (map: TreeMap, changes: ReadonlyArray<PathChange>) => {
  // By id: two files of the same bytes are one object.
  const objects = new Map<string, GitObject>()
  const touched = new Set<ByteString>([""])
  const touch = (directory: ByteString) => {
    for (let at = directory; at !== ""; at = parentOf(at)) touched.add(at)
  }
  for (const { file, path } of changes) {
    if (file === null) {
      touch(unset(map, path))
      continue
    }
    const blob = gitObject("blob", file.bytes, map.digits)
    objects.set(blob.id, blob)
    dropBelow(map, path)
    set(map, path, { id: blob.id, mode: file.executable ? "100755" : "100644" })
    touch(parentOf(path))
  }
  const deepestFirst = [...touched].toSorted(
    (a, b) => b.split("/").length - a.split("/").length || b.length - a.length
  )
  let root = ""
  for (const path of deepestFirst) {
    const directory = map.directories.get(path)
    if (directory === undefined) continue
    const tree = treeObject(directory, map.digits)
    objects.set(tree.id, tree)
    if (path === "") root = tree.id
    else map.directories.get(parentOf(path))?.set(nameIn(path), { id: tree.id, mode: treeMode })
  }
  return { root, objects: [...objects.values()] }
}
