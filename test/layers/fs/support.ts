/**
 * What a program may expect of a FileSystem, asked of any implementation: each case works in an empty directory and
 * returns what a program can see. The real one decides what is right.
 */
import type { FileSystem, PlatformError } from "effect"
import { Effect, Option, Result } from "effect"

export const text = new TextEncoder()
export const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** A failure as a program tells it from others. */
const failure = (error: PlatformError.PlatformError): string => {
  const { cause, _tag } = error.reason
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : "none"
  return `${_tag} ${code}`
}
export const outcome = <A, R>(effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.result(effect).pipe(
    Effect.map((result) =>
      Result.isSuccess(result) ? { ok: result.success } : { failed: failure(result.failure) }
    )
  )

export type Case = (
  fs: FileSystem.FileSystem,
  root: string
) => Effect.Effect<unknown, PlatformError.PlatformError>

/** A tree as data, so that two file systems can be compared. */
export const dump = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, root: string) {
  const seen: Record<string, unknown> = {}
  const pending = [root]
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    for (const { name } of yield* fs.readDirectoryEntries(at)) {
      const path = `${at}/${name}`
      const info = yield* fs.lstat(path)
      const mode = (info.mode & 0o7777).toString(8)
      const key = path.slice(root.length)
      if (info.type === "File") {
        seen[key] = [mode, decode(yield* fs.readFile(path)), Number(Option.getOrThrow(info.nlink))]
      } else if (info.type === "SymbolicLink") {
        seen[key] = ["->", (yield* fs.readLink(path)).replaceAll(root, "ROOT")]
      } else {
        seen[key] = [mode, info.type]
        pending.push(path)
      }
    }
  }
  return seen
})

export const steps = <A>(list: ReadonlyArray<Effect.Effect<A, PlatformError.PlatformError>>) =>
  Effect.forEach(list, outcome)
