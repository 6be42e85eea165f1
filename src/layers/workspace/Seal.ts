/**
 * Notices that a directory of ours was changed by somebody else. Content is not read: the kernel's own change time of
 * each file cannot be set back by whoever rewrites it.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { lstat, readdir } from "node:fs/promises"
import { failed } from "./Failure.ts"

const concurrency = 64

const facts = async (at: string): Promise<string> => {
  const { ctimeNs, ino, mode, mtimeNs, size } = await lstat(at, { bigint: true })
  return `${at}\0${ino}\0${mode}\0${size}\0${mtimeNs}\0${ctimeNs}\n`
}

/** A digest of everything below a directory that is as long equal as nothing there was written, renamed or removed. */
export const sealOf = (directory: string) =>
  Effect.tryPromise({
    try: async () => {
      const hash = createHash("sha256")
      const queue = [directory]
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        const entries = await readdir(next, { withFileTypes: true }).catch(() => [])
        const paths = entries.map((entry) => `${entry.parentPath}/${entry.name}`).toSorted()
        queue.push(
          ...entries
            .filter((entry) => entry.isDirectory())
            .map((entry) => `${entry.parentPath}/${entry.name}`)
            .toSorted()
        )
        for (let at = 0; at < paths.length; at += concurrency)
          hash.update((await Promise.all(paths.slice(at, at + concurrency).map(facts))).join(""))
      }
      return hash.digest("hex")
    },
    catch: (cause) =>
      failed(`${directory} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  })
