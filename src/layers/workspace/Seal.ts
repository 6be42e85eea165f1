/**
 * Notices that a directory of ours was changed by somebody else. The kernel's own change time of each file cannot be set
 * back by whoever rewrites it, so content is read only when that differs: in a bundle that was copied to another disk.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { lstat, readdir, readlink } from "node:fs/promises"
import { pipeline } from "node:stream/promises"
import { thrown } from "./Failure.ts"
import type { Seal } from "./Record.ts"

const concurrency = 64

type Describe = (at: string) => Promise<string>

const facts: Describe = async (at) => {
  const { ctimeNs, ino, mode, mtimeNs, size } = await lstat(at, { bigint: true })
  return `${ino}\0${mode}\0${size}\0${mtimeNs}\0${ctimeNs}`
}

const content: Describe = async (at) => {
  const stats = await lstat(at)
  if (stats.isSymbolicLink()) return `link\0${(await readlink(at, { encoding: "buffer" })).toString("hex")}`
  if (!stats.isFile()) return stats.isDirectory() ? "directory" : "other"
  const hash = createHash("sha256")
  // In pieces: what is installed may be larger than memory.
  await pipeline(createReadStream(at), hash)
  return `${(stats.mode & 0o100) === 0 ? "file" : "program"}\0${hash.digest("hex")}`
}

/** A digest of what is said of everything below a directory, by its path there. */
const digestOf = (directory: string, describe: Describe) =>
  Effect.tryPromise({
    try: async () => {
      const hash = createHash("sha256")
      const queue = [""]
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        const below = next
        const entries = (
          await readdir(`${directory}/${below}`, { withFileTypes: true }).catch(() => [])
        ).toSorted((a, b) => (a.name < b.name ? -1 : 1))
        queue.push(...entries.filter((entry) => entry.isDirectory()).map((entry) => `${below}${entry.name}/`))
        for (let at = 0; at < entries.length; at += concurrency) {
          const lines = entries
            .slice(at, at + concurrency)
            .map(async ({ name }) => `${below}${name}\0${await describe(`${directory}/${below}${name}`)}\n`)
          hash.update((await Promise.all(lines)).join(""))
        }
      }
      return hash.digest("hex")
    },
    catch: thrown(`${directory} cannot be read`)
  })

/** What is below a directory now. Its own path is no part of it. */
export const sealOf = Effect.fnUntraced(function* (directory: string) {
  const seal: Seal = {
    facts: yield* digestOf(directory, facts),
    content: yield* digestOf(directory, content)
  }
  return seal
})

/** Whether a directory still holds what was sealed. */
export const isSealed = Effect.fnUntraced(function* (directory: string, seal: Seal) {
  return (
    seal.facts === (yield* digestOf(directory, facts)) ||
    seal.content === (yield* digestOf(directory, content))
  )
})
