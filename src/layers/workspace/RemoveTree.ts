/**
 * Removing what commands left behind.
 */
import { Effect, FileSystem } from "effect"
import { chmod, lstat, readdir } from "node:fs/promises"

/** Makes every directory below writable, so that what is in it can be removed. */
const unlock = (directory: string): Effect.Effect<void> =>
  Effect.promise(async () => {
    const queue = [directory]
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const at = next
      // A link is never followed: what it leads to is not ours to open up.
      const entries = await lstat(at)
        .then((stats) =>
          stats.isDirectory() ? chmod(at, 0o700).then(() => readdir(at, { withFileTypes: true })) : []
        )
        .catch(() => [])
      for (const entry of entries) if (entry.isDirectory()) queue.push(`${at}/${entry.name}`)
    }
  })

/** Removes a directory whatever a command made of its modes. */
export const removeTree = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const remove = fs.remove(directory, { recursive: true, force: true })
  yield* remove.pipe(
    Effect.catchTag("PlatformError", () => Effect.andThen(unlock(directory), remove)),
    Effect.ignore
  )
})
