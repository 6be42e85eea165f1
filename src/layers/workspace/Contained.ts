/**
 * Paths that stay inside a directory: symlinks are followed by hand, one component at a time, so that every step is
 * judged before it is taken.
 */
import { Effect, FileSystem, Option, Path, Result } from "effect"
import type { FileNode } from "../../domain/patch/FileSet.ts"
import { checkWorkspaceDirectory, quotePath } from "../../domain/WorkspacePath.ts"
import { WorkspaceError } from "../../services/Workspace.ts"
import { errnoOf, infoAt } from "../fs/Files.ts"
import { onDisk, refused } from "./Failure.ts"

const maxLinks = 40

const leadsOut = (path: string) =>
  refused(`${quotePath(path)} leads out of the workspace through a symbolic link`)

/** Where an absolute link target lies below the root; undefined when it does not. */
const below = Effect.fnUntraced(function* (root: string, target: string) {
  const fs = yield* FileSystem.FileSystem
  const inside = (absolute: string) =>
    absolute === root ? "" : absolute.startsWith(`${root}/`) ? absolute.slice(root.length + 1) : undefined
  const plain = inside(target)
  if (plain !== undefined) return plain
  // The root's own path may go through links as well: what counts is where the target really is.
  return yield* fs.realPath(target).pipe(
    Effect.map(inside),
    Effect.catchTag("PlatformError", () => Effect.succeed(undefined))
  )
})

const linkAt = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  // EINVAL: there, and no link. Anything else is told by whoever uses the path next.
  return yield* fs.readLink(at).pipe(
    Effect.map((target): string | undefined => target),
    Effect.catchTag("PlatformError", (error) => {
      const code = errnoOf(error)
      return code === "EACCES" || code === "ENAMETOOLONG" || code === "ELOOP"
        ? Effect.fail(onDisk(quotePath(at))(error))
        : Effect.succeed(undefined)
    })
  )
})

/**
 * The path that is really meant, relative to the root and free of symlinks, "." for the root. With `follow` a final
 * symlink is followed too. What does not exist yet is taken as written.
 */
export const resolveInside = Effect.fnUntraced(function* (root: string, path: string, follow: boolean) {
  const join = (yield* Path.Path).join
  const done: Array<string> = []
  const rest = path.split("/")
  let links = 0
  while (rest.length > 0) {
    const segment = rest.shift()
    if (segment === undefined || segment === "" || segment === ".") continue
    if (segment === "..") {
      if (done.pop() === undefined) return yield* leadsOut(path)
      continue
    }
    const last = rest.every((part) => part === "" || part === ".")
    const target = last && !follow ? undefined : yield* linkAt(join(root, ...done, segment))
    if (target === undefined) {
      done.push(segment)
      continue
    }
    links += 1
    if (links > maxLinks) return yield* refused(`${quotePath(path)} goes through too many symbolic links`)
    if (target.startsWith("/")) {
      const inside = yield* below(root, target)
      if (inside === undefined) return yield* leadsOut(path)
      done.length = 0
      rest.unshift(...inside.split("/"))
    } else {
      rest.unshift(...target.split("/"))
    }
  }
  // A link may name what no tool may name: the same rules hold for the path that is really meant.
  const checked = checkWorkspaceDirectory(done.length === 0 ? "." : done.join("/"))
  return Result.isFailure(checked) ? yield* refused(checked.failure) : checked.success
})

/** Reads a regular file that must not have been exchanged for a link since it was looked at. */
const readFile = Effect.fnUntraced(function* (at: string, path: string, max_bytes: number) {
  const fs = yield* FileSystem.FileSystem
  const file = yield* fs.open(at, { flag: "r", noFollow: true })
  const tooLarge = new WorkspaceError({
    reason: "too_large",
    message: `${quotePath(path)} is larger than ${max_bytes} bytes`
  })
  const expected = Number((yield* file.stat).size)
  if (expected > max_bytes) return yield* tooLarge
  const chunks: Array<Uint8Array> = []
  let size = 0
  for (;;) {
    const chunk = Option.getOrUndefined(
      yield* file.readAlloc(Math.max(1, Math.min(256 * 1024, expected - size + 1)))
    )
    if (chunk === undefined) break
    chunks.push(chunk)
    size += chunk.length
    if (size > max_bytes) return yield* tooLarge
  }
  const only = chunks[0]
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)
}, Effect.scoped)

/** What stands at a path that `resolveInside` gave, a final symlink not followed; undefined when nothing does. */
export const nodeAt = Effect.fnUntraced(
  function* (root: string, path: string, max_bytes: number) {
    const fs = yield* FileSystem.FileSystem
    const at = (yield* Path.Path).join(root, path)
    const info = yield* infoAt(at)
    if (info === undefined) return undefined
    if (info.type === "SymbolicLink") {
      return { _tag: "Symlink", target: yield* fs.readLink(at) } satisfies FileNode
    }
    if (info.type === "Directory") return { _tag: "Directory" } satisfies FileNode
    if (info.type !== "File") return { _tag: "Special" } satisfies FileNode
    const bytes = yield* readFile(at, path, max_bytes)
    return { _tag: "File", bytes, executable: (info.mode & 0o100) !== 0 } satisfies FileNode
  },
  (effect, _root, path) =>
    effect.pipe(
      Effect.catchTag("PlatformError", (error) => Effect.fail(onDisk(quotePath(path))(error))),
      Effect.map((node): FileNode | undefined => node)
    )
)
