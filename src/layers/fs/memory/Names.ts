/**
 * The in-memory file system's changes of names: make, link, rename, remove and copy.
 */
import { Errno, raise } from "./Errno.ts"
import {
  attach,
  contentOf,
  demand,
  detach,
  directoryAt,
  fileAt,
  locate,
  newDirectory,
  newFile,
  newLink,
  nodeAt,
  pathOf,
  resize,
  writeAt,
  type DirectoryNode,
  type Node,
  type Place,
  type Tree
} from "./Tree.ts"

/** Like `locate`, with nothing for a path whose way is missing too. */
const locateIfAny = (tree: Tree, path: string, follow: boolean): Place | undefined => {
  try {
    return locate(tree, path, follow)
  } catch (error) {
    if (error instanceof Errno && error.code === "ENOENT") return undefined
    throw error
  }
}

export const makeDirectory = (
  tree: Tree,
  path: string,
  options: { readonly recursive: boolean; readonly mode: number },
  now: number
): void => {
  const names = path.split("/").filter((name) => name !== "")
  const start = path.startsWith("/") ? "/" : ""
  const prefixes = options.recursive
    ? names.map((_, index) => start + names.slice(0, index + 1).join("/"))
    : [path]
  for (const prefix of prefixes) {
    const place = locate(tree, prefix, false)
    const found = options.recursive ? locateIfAny(tree, prefix, true)?.node : place.node
    if (place.node === undefined) {
      attach(tree, place, newDirectory(tree, place.parent, options.mode, now), now)
    } else if (!options.recursive || found?.kind !== "Directory") {
      if (prefix !== path && options.recursive) return raise("ENOTDIR")
      return raise(options.recursive && found === undefined ? "ENOENT" : "EEXIST")
    }
  }
}

export const symlink = (tree: Tree, target: string, path: string, now: number): void => {
  const place = locate(tree, path, false)
  if (place.node !== undefined) return raise("EEXIST")
  if (target === "" || place.slash) return raise("ENOENT")
  attach(tree, place, newLink(tree, target, now), now)
}

export const link = (tree: Tree, from: string, to: string, now: number): void => {
  const node = nodeAt(tree, from, false)
  const place = locate(tree, to, false)
  if (place.node !== undefined) return raise("EEXIST")
  if (place.slash) return raise("ENOENT")
  if (node.kind === "Directory") return raise("EPERM")
  attach(tree, place, node, now)
  node.links += 1
}

const isWithin = (directory: DirectoryNode, ancestor: Node): boolean => {
  for (let node: DirectoryNode | null = directory; node !== null; node = node.parent)
    if (node === ancestor) return true
  return false
}

export const rename = (tree: Tree, from: string, to: string, now: number): void => {
  const source = locate(tree, from, false)
  const target = locate(tree, to, false)
  if (source.name === "" || target.name === "") return raise("EBUSY")
  if (source.node === undefined) return raise("ENOENT")
  const moved = source.node
  if (moved.kind !== "Directory" && (source.slash || target.slash)) return raise("ENOTDIR")
  if (isWithin(target.parent, moved)) return raise("EINVAL")
  if (target.node !== undefined && isWithin(source.parent, target.node)) return raise("ENOTEMPTY")
  if (target.node === moved) return
  demand(tree, source.parent, 3)
  demand(tree, target.parent, 3)
  if (target.node !== undefined) {
    if (moved.kind === "Directory" && target.node.kind !== "Directory") return raise("ENOTDIR")
    if (moved.kind !== "Directory" && target.node.kind === "Directory") return raise("EISDIR")
    if (target.node.kind === "Directory" && target.node.entries.size > 0) return raise("ENOTEMPTY")
    detach(tree, target, now)
  }
  detach(tree, source, now)
  attach(tree, target, moved, now)
  moved.links += 1
  if (moved.kind === "Directory") moved.parent = target.parent
}

const removeNode = (tree: Tree, place: Place, now: number): void => {
  const { node } = place
  if (node?.kind === "Directory") {
    if (node.entries.size > 0) demand(tree, node, 7)
    for (const [name, child] of [...node.entries])
      removeNode(tree, { parent: node, name, node: child, slash: false }, now)
  }
  detach(tree, place, now)
}

export const remove = (
  tree: Tree,
  path: string,
  options: { readonly recursive: boolean; readonly force: boolean },
  now: number
): void => {
  const place = options.force ? locateIfAny(tree, path, false) : locate(tree, path, false)
  if (place?.node === undefined) return options.force ? undefined : raise("ENOENT")
  if (place.node.kind === "Directory" && !options.recursive) return raise("ERR_FS_EISDIR")
  if (place.name === "") return raise("EBUSY")
  removeNode(tree, place, now)
}

export const copyFile = (tree: Tree, from: string, to: string, now: number): void => {
  const source = nodeAt(tree, from, true)
  demand(tree, source, 4)
  const place = locate(tree, to, true)
  const target = place.node ?? newFile(tree, source.mode, now)
  if (target.kind !== "File") return raise("EISDIR")
  if (place.node === undefined) attach(tree, place, target, now)
  else demand(tree, target, 2)
  if (source.kind !== "File") {
    // The platform finds out late that it cannot copy a directory, and then removes the name that it was copying to.
    detach(tree, locate(tree, to, false), now)
    return raise("EISDIR")
  }
  if (target === source) return
  target.mode = source.mode
  const content = contentOf(source)
  resize(target, 0, now)
  writeAt(target, 0, content, now)
}

/** The target of a copied link: a relative one is made absolute, as the platform's recursive copy does. */
const copiedTarget = (source: Place, target: string): string =>
  target.startsWith("/")
    ? target
    : normalise(`${pathOf({ ...source, name: "", node: source.parent })}/${target}`)

const normalise = (path: string): string => {
  const names: Array<string> = []
  for (const name of path.split("/")) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}

export const copy = (
  tree: Tree,
  from: string,
  to: string,
  options: { readonly overwrite: boolean; readonly preserveTimestamps: boolean },
  now: number
): void => {
  const source = locate(tree, from, false)
  const target = locate(tree, to, false)
  const node = source.node ?? raise("ENOENT")
  if (target.node === node) return raise("ERR_FS_CP_EINVAL")
  if (node.kind === "Directory") {
    if (target.node !== undefined && target.node.kind !== "Directory")
      return raise("ERR_FS_CP_DIR_TO_NON_DIR")
    if (isWithin(target.parent, node)) return raise("ERR_FS_CP_EINVAL")
    if (target.node === undefined)
      makeDirectory(tree, to, { recursive: true, mode: node.mode | tree.umask }, now)
    const made = directoryAt(tree, to)
    if (target.node === undefined) made.mode = node.mode
    for (const name of node.entries.keys()) copy(tree, `${from}/${name}`, `${to}/${name}`, options, now)
    return
  }
  if (target.node?.kind === "Directory") return raise("ERR_FS_CP_NON_DIR_TO_DIR")
  if (target.node !== undefined && node.kind === "File" && !options.overwrite) return
  if (node.kind === "SymbolicLink") {
    if (target.node !== undefined) detach(tree, target, now)
    attach(tree, target, newLink(tree, copiedTarget(source, node.target), now), now)
    return
  }
  if (target.node !== undefined) detach(tree, target, now)
  copyFile(tree, from, to, now)
  const made = fileAt(tree, to)
  made.mode = node.mode
  if (options.preserveTimestamps) Object.assign(made, { atime: node.atime, mtime: node.mtime })
}
