/**
 * The files that an edit sees and the net effect that it has. Nothing is written while a patch is applied: a change set
 * comes out whole or not at all.
 */
import { Result } from "effect"
import { sameBytes } from "../Bytes.ts"
import type { ChangedFile } from "../Result.ts"
import { parentsOf, quotePath } from "../WorkspacePath.ts"
import { type PatchError, refuse } from "./PatchError.ts"

export type FileNode =
  | { readonly _tag: "File"; readonly bytes: Uint8Array; readonly executable: boolean }
  | { readonly _tag: "Symlink"; readonly target: string }
  | { readonly _tag: "Directory" }
  /** A FIFO, a socket, a device. */
  | { readonly _tag: "Special" }

export type FileOnly = Extract<FileNode, { readonly _tag: "File" }>

/** What became of a path; undefined is nothing there. */
export const changeOf = (
  before: FileNode | undefined,
  after: FileNode | undefined
): ChangedFile["change"] => {
  if (before === undefined) return "added"
  if (after === undefined) return "deleted"
  return before._tag === after._tag ? "modified" : "type_changed"
}

/**
 * What stands at a path, symlinks not followed; undefined when nothing does. It is asked for every path of a patch and
 * for every directory above one.
 */
export type ReadNode = (path: string) => FileNode | undefined

/** The net effect on one path. A change set names each path once. */
export type FileChange =
  | {
      readonly _tag: "Write"
      readonly path: string
      readonly bytes: Uint8Array
      readonly executable: boolean
    }
  | { readonly _tag: "Delete"; readonly path: string }

/** The tree while a patch is applied to it: what was read, covered by what the patch did so far. */
export interface Overlay {
  /** As it was before the patch. */
  readonly original: ReadNode
  /** As it is after the parts of the patch that were applied so far. */
  readonly current: ReadNode
  readonly touched: (path: string) => boolean
  readonly write: (path: string, bytes: Uint8Array, executable: boolean) => void
  readonly remove: (path: string) => void
  /** Deletions first, so that a directory may take a deleted file's place; unchanged files are left out. */
  readonly changes: () => ReadonlyArray<FileChange>
}

export const makeOverlay = (read: ReadNode): Overlay => {
  const done = new Map<string, FileOnly | undefined>()
  const directories = new Set<string>()
  const current: ReadNode = (path) => {
    if (done.has(path)) return done.get(path)
    return directories.has(path) ? { _tag: "Directory" } : read(path)
  }
  return {
    original: read,
    current,
    touched: (path) => done.has(path),
    write: (path, bytes, executable) => {
      done.set(path, { _tag: "File", bytes, executable })
      for (const parent of parentsOf(path)) directories.add(parent)
    },
    remove: (path) => {
      done.set(path, undefined)
    },
    changes: () => {
      const deletions: Array<FileChange> = []
      const writes: Array<FileChange> = []
      for (const [path, node] of done) {
        const before = read(path)
        if (node === undefined) {
          if (before !== undefined) deletions.push({ _tag: "Delete", path })
        } else if (
          before?._tag !== "File" ||
          before.executable !== node.executable ||
          !sameBytes(before.bytes, node.bytes)
        ) {
          writes.push({ _tag: "Write", path, bytes: node.bytes, executable: node.executable })
        }
      }
      return [...deletions, ...writes]
    }
  }
}

/** Every directory above the path is one, or is not there yet. Never a symlink: a write through it lands elsewhere. */
export const checkParents = (overlay: Overlay, path: string): Result.Result<void, PatchError> => {
  for (const parent of parentsOf(path)) {
    const node = overlay.current(parent)
    if (node === undefined || node._tag === "Directory") continue
    const what = node._tag === "Symlink" ? "a symlink" : "not a directory"
    return refuse("not_a_file", `${quotePath(path)} is refused: ${quotePath(parent)} is ${what}`, path)
  }
  return Result.void
}

const nameOf = (node: Exclude<FileNode, FileOnly>): string => {
  switch (node._tag) {
    case "Directory":
      return "a directory"
    case "Symlink":
      return "a symlink"
    case "Special":
      return "neither a file nor a directory"
  }
}

/** The regular file at a path that was looked up, or why it cannot be edited. */
export const requireFile = (
  node: FileNode | undefined,
  path: string
): Result.Result<FileOnly, PatchError> => {
  if (node === undefined) {
    return refuse("not_found", `${quotePath(path)} does not exist: check the path, or create the file`, path)
  }
  if (node._tag === "File") return Result.succeed(node)
  return refuse("not_a_file", `${quotePath(path)} is ${nameOf(node)}: only regular files can be edited`, path)
}

/** Nothing stands at the path, so a new file may. */
export const requireFree = (overlay: Overlay, path: string): Result.Result<void, PatchError> => {
  const node = overlay.current(path)
  if (node === undefined) return Result.void
  if (node._tag === "File") {
    return refuse("exists", `${quotePath(path)} already exists: update it, or delete it first`, path)
  }
  return refuse("not_a_file", `${quotePath(path)} is ${nameOf(node)}: a file cannot take its place`, path)
}
