/**
 * Writes git objects without git: hashing a few small objects is far cheaper than starting a process for it.
 */
import { Effect, FileSystem, Path } from "effect"
import { createHash } from "node:crypto"
import { deflateSync } from "node:zlib"
import { makeDirectoryOnce } from "../fs/Files.ts"

export interface GitObject {
  /** As many hex digits as the repository's ids have. */
  readonly id: string
  /** Header and content. */
  readonly bytes: Buffer
}

/** An object and its id, in a repository whose ids have `digits` hex digits. */
export const gitObject = (kind: "blob" | "tree", content: Uint8Array, digits: number): GitObject => {
  const bytes = Buffer.concat([Buffer.from(`${kind} ${content.length}\0`), content])
  return {
    id: createHash(digits === 64 ? "sha256" : "sha1")
      .update(bytes)
      .digest("hex"),
    bytes
  }
}

/** Keeps an object: durable, and there as a whole or not at all. */
export const keepObject = Effect.fnUntraced(function* (git_dir: string, { bytes, id }: GitObject) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.join(git_dir, "objects", id.slice(0, 2))
  const target = path.join(directory, id.slice(2))
  if (yield* fs.exists(target)) return
  yield* makeDirectoryOnce(directory, 0o700)
  // Not beside the objects: those are copied while others are written.
  const temporary = path.join(git_dir, "objects", `tmp_obj_${id}`)
  yield* fs.remove(temporary, { force: true })
  yield* Effect.scoped(
    Effect.gen(function* () {
      const file = yield* fs.open(temporary, { flag: "wx", mode: 0o444 })
      yield* file.writeAll(deflateSync(bytes, { level: 1 }))
      yield* file.sync
    })
  )
  yield* fs.rename(temporary, target)
})
