/**
 * Files that Git LFS keeps elsewhere: the tree has pointers, and a check needs what they point at. It comes from the
 * source's own store, never from a network. The tree stays what it is: in a place to check in, the content stands over
 * the pointer.
 */
import { Effect, FileSystem, Path } from "effect"
import type { GitLocation } from "../git/GitDirectory.ts"
import { displayName, textOf } from "../git/GitBinary.ts"
import { bytesAt, isDirectory } from "../fs/Files.ts"
import type { TreeEntry } from "./Trees.ts"

/** https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: a pointer is shorter than this, in bytes. */
const maxPointer = 1024
const pointer =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:[^\n]+\n)*?oid sha256:([0-9a-f]{64})\nsize (\d+)\n$/

/** The source's store of contents; null when it has none. */
export const lfsStoreOf = Effect.fnUntraced(function* (location: GitLocation | null) {
  const path = yield* Path.Path
  if (location === null) return null
  const store = path.join(location.common_dir, "lfs", "objects")
  return (yield* isDirectory(store)) ? store : null
})

/** What the pointers in a place point at, as far as the store has it whole. */
export const lfsContents = Effect.fnUntraced(function* (
  store: string | null,
  root: string,
  entries: ReadonlyArray<TreeEntry>
) {
  if (store === null) return []
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const sizeOf = (file: string) =>
    fs.stat(file).pipe(
      Effect.map((info) => (info.type === "File" ? Number(info.size) : null)),
      Effect.orElseSucceed(() => null)
    )
  const found = yield* Effect.forEach(
    entries.filter(({ mode }) => mode.startsWith("100")),
    Effect.fnUntraced(function* (entry) {
      const name = textOf(entry.path)
      if (name === undefined) return []
      const file = path.join(root, displayName(entry.path))
      const size = yield* sizeOf(file)
      if (size === null || size >= maxPointer) return []
      const match = pointer.exec(new TextDecoder().decode((yield* bytesAt(file)) ?? new Uint8Array()))
      const [, oid = "", length = ""] = match ?? []
      if (match === null) return []
      const from = path.join(store, oid.slice(0, 2), oid.slice(2, 4), oid)
      return (yield* sizeOf(from)) === Number(length) ? [{ from, path: name }] : []
    }),
    { concurrency: 16 }
  )
  return found.flat()
})
