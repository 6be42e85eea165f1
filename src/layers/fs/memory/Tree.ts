/**
 * The in-memory file system's nodes and names: what exists, where a path leads, and what of it a power loss keeps.
 */
import { raise } from "./Errno.ts"

interface Common {
  readonly ino: number
  /** Permission bits. */
  mode: number
  links: number
  atime: number
  mtime: number
  readonly birthtime: number
}
export interface FileNode extends Common {
  readonly kind: "File"
  /** Capacity; the first `size` bytes are the content. */
  bytes: Uint8Array
  size: number
  /** What was synced: the first `size` bytes of `copy`, or of `bytes` itself while they are untouched. */
  synced: { readonly size: number; readonly copy: Uint8Array | null }
}
export interface DirectoryNode extends Common {
  readonly kind: "Directory"
  entries: Map<string, Node>
  synced: ReadonlyMap<string, Node>
  /** Null in the root alone. */
  parent: DirectoryNode | null
}
export interface LinkNode extends Common {
  readonly kind: "SymbolicLink"
  readonly target: string
}
export type Node = FileNode | DirectoryNode | LinkNode

/** Where a path leads: a name in a directory, and what is there. A path that ends in `.` or `..` has the name "". */
export interface Place {
  readonly parent: DirectoryNode
  readonly name: string
  readonly node: Node | undefined
  /** The path ends in a slash: only a directory may be there. */
  readonly slash: boolean
}

export interface Tree {
  readonly root: DirectoryNode
  readonly umask: number
  /** Permission bits do not bind, as for root. */
  readonly privileged: boolean
  nextIno: number
}

const maxSymlinks = 40
/** In bytes. */
const maxName = 255
const encoder = new TextEncoder()

export const makeTree = (options: { readonly umask: number; readonly privileged: boolean }): Tree => ({
  root: {
    kind: "Directory",
    ino: 1,
    mode: 0o755,
    links: 1,
    atime: 0,
    mtime: 0,
    birthtime: 0,
    entries: new Map(),
    synced: new Map(),
    parent: null
  },
  ...options,
  nextIno: 2
})

const parentOf = (directory: DirectoryNode): DirectoryNode => directory.parent ?? directory

const common = (tree: Tree, mode: number, now: number): Common => ({
  ino: tree.nextIno++,
  mode: mode & 0o7777 & ~tree.umask,
  links: 1,
  atime: now,
  mtime: now,
  birthtime: now
})
export const newFile = (tree: Tree, mode: number, now: number): FileNode => ({
  ...common(tree, mode, now),
  kind: "File",
  bytes: new Uint8Array(),
  size: 0,
  synced: { size: 0, copy: null }
})
export const newDirectory = (
  tree: Tree,
  parent: DirectoryNode,
  mode: number,
  now: number
): DirectoryNode => ({
  ...common(tree, mode, now),
  kind: "Directory",
  entries: new Map(),
  synced: new Map(),
  parent
})
export const newLink = (tree: Tree, target: string, now: number): LinkNode => ({
  ...common(tree, 0o777 | tree.umask, now),
  mode: 0o777,
  kind: "SymbolicLink",
  target
})

/** 4 read, 2 write, 1 search: the owner's bits decide, because everything here has one owner. */
const mayAccess = (tree: Tree, node: Node, bits: number): boolean =>
  tree.privileged || ((node.mode >> 6) & bits) === bits
export const demand = (tree: Tree, node: Node, bits: number): void => {
  if (!mayAccess(tree, node, bits)) raise("EACCES")
}

/** Follows every symbolic link on the way, and the last one when `follow` is set. */
export const locate = (tree: Tree, path: string, follow: boolean): Place => {
  if (path === "") return raise("ENOENT")
  let pending = path.split("/")
  let slash = path.endsWith("/")
  let current = tree.root
  let hops = 0
  while (pending.length > 0) {
    const [segment = "", ...rest] = pending
    pending = rest
    if (segment === "" || segment === ".") continue
    demand(tree, current, 1)
    if (segment === "..") {
      current = parentOf(current)
      continue
    }
    if (encoder.encode(segment).length > maxName) return raise("ENAMETOOLONG")
    const node = current.entries.get(segment)
    const last = rest.every((part) => part === "")
    if (node?.kind === "SymbolicLink" && (!last || follow || slash)) {
      if (++hops > maxSymlinks) return raise("ELOOP")
      if (node.target.startsWith("/")) current = tree.root
      slash = slash || (last && node.target.endsWith("/"))
      pending = [...node.target.split("/"), ...rest]
      continue
    }
    if (last) {
      if (slash && node !== undefined && node.kind !== "Directory") return raise("ENOTDIR")
      return { parent: current, name: segment, node, slash }
    }
    if (node === undefined) return raise("ENOENT")
    if (node.kind !== "Directory") return raise("ENOTDIR")
    current = node
  }
  return { parent: parentOf(current), name: "", node: current, slash }
}

export const nodeAt = (tree: Tree, path: string, follow: boolean): Node =>
  locate(tree, path, follow).node ?? raise("ENOENT")

export const fileAt = (tree: Tree, path: string): FileNode => {
  const node = nodeAt(tree, path, true)
  return node.kind === "File" ? node : raise(node.kind === "Directory" ? "EISDIR" : "EINVAL")
}

export const directoryAt = (tree: Tree, path: string): DirectoryNode => {
  const node = nodeAt(tree, path, true)
  return node.kind === "Directory" ? node : raise("ENOTDIR")
}

/** The absolute path of a node, given where it was found. */
export const pathOf = (place: Place): string => {
  const names = place.name === "" ? [] : [place.name]
  const first = place.node?.kind === "Directory" && place.name === "" ? place.node : place.parent
  for (let node = first; node.parent !== null; node = node.parent) {
    for (const [name, child] of node.parent.entries) if (child === node) names.unshift(name)
  }
  return `/${names.join("/")}`
}

/** Puts a node under a name that is free. */
export const attach = (tree: Tree, place: Place, node: Node, now: number): void => {
  demand(tree, place.parent, 3)
  place.parent.entries.set(place.name, node)
  place.parent.mtime = now
}
export const detach = (tree: Tree, place: Place, now: number): void => {
  demand(tree, place.parent, 3)
  place.parent.entries.delete(place.name)
  place.parent.mtime = now
  if (place.node !== undefined) place.node.links -= 1
}

/** Makes room for a change at `from`: what was synced of the bytes behind it is kept aside. */
const beforeChange = (file: FileNode, from: number): void => {
  const { copy, size } = file.synced
  if (copy === null && from < size) file.synced = { size, copy: file.bytes.slice(0, size) }
}
export const writeAt = (file: FileNode, position: number, data: Uint8Array, now: number): void => {
  beforeChange(file, Math.min(position, file.size))
  const end = position + data.length
  if (end > file.bytes.length) {
    const grown = new Uint8Array(Math.max(end, file.bytes.length * 2, 256))
    grown.set(file.bytes.subarray(0, file.size))
    file.bytes = grown
  }
  if (position > file.size) file.bytes.fill(0, file.size, position)
  file.bytes.set(data, position)
  file.size = Math.max(file.size, end)
  file.mtime = now
}
export const resize = (file: FileNode, size: number, now: number): void => {
  beforeChange(file, size)
  if (size > file.size) writeAt(file, file.size, new Uint8Array(size - file.size), now)
  file.size = size
  file.mtime = now
}
export const contentOf = (file: FileNode): Uint8Array => file.bytes.slice(0, file.size)

/** What `sync` promises: a file's content, or a directory's names, survive power loss. */
export const syncNode = (node: Node): void => {
  if (node.kind === "File") node.synced = { size: node.size, copy: null }
  if (node.kind === "Directory") node.synced = new Map(node.entries)
}

/** Power loss: content goes back to what was synced, and so do names unless they are said to have got through. */
export const loseUnsynced = (tree: Tree, names: "lost" | "kept"): void => {
  const seen = new Set<Node>()
  const visit = (node: Node): void => {
    if (seen.has(node)) return
    seen.add(node)
    if (node.kind === "File") {
      const { copy, size } = node.synced
      node.bytes = (copy ?? node.bytes).slice(0, size)
      node.size = size
      syncNode(node)
    }
    if (node.kind === "Directory") {
      if (names === "lost") node.entries = new Map(node.synced)
      syncNode(node)
      for (const child of node.entries.values()) {
        if (child.kind === "Directory") child.parent = node
        visit(child)
      }
    }
  }
  visit(tree.root)
}
