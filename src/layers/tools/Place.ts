/**
 * Where a path of a tool call really leads, and whether tools may go there. The rule of allowed paths is asked about
 * the place that is meant, symlinks followed, not about the name that was given.
 */
import { Effect, Result } from "effect"
import * as PathRule from "../../domain/PathRule.ts"
import type { FileNode, FileOnly } from "../../domain/patch/FileSet.ts"
import { checkWorkspaceDirectory, checkWorkspacePath, quotePath } from "../../domain/WorkspacePath.ts"
import type { ToolContext } from "../../services/Tools.ts"
import { refuse, type Refused } from "./Define.ts"

/** The rule of the run's allowed paths. */
export const ruleOf = (context: ToolContext): Effect.Effect<PathRule.PathRule, Refused> =>
  Effect.fromResult(Result.mapError(PathRule.compile(context.allowed_paths), refuse))

const outside = (path: string, context: ToolContext): Refused =>
  refuse(`${quotePath(path)} is outside the allowed paths: ${context.allowed_paths.join(", ")}`)

/** Fails unless every path may be touched. */
export const requireAllowed = Effect.fnUntraced(function* (
  paths: ReadonlyArray<string>,
  context: ToolContext
) {
  const rule = yield* ruleOf(context)
  for (const path of paths) if (!PathRule.allows(rule, path)) return yield* outside(path, context)
})

/** The path that a file's path means. */
export const locateFile = Effect.fnUntraced(function* (input: string, context: ToolContext) {
  const path = yield* Effect.fromResult(Result.mapError(checkWorkspacePath(input), refuse))
  const meant = yield* context.workspace.resolve(path)
  yield* requireAllowed([meant], context)
  return meant
})

/** What a path that may be a directory means: "." is the workspace itself. */
export const locateAny = Effect.fnUntraced(function* (input: string, context: ToolContext) {
  const path = yield* Effect.fromResult(Result.mapError(checkWorkspaceDirectory(input), refuse))
  const meant = yield* context.workspace.resolve(path)
  if (meant === ".") return { path: meant, node: directory }
  const node = yield* context.workspace.read(meant, context.limits.max_read_bytes).pipe(
    Effect.catchIf(
      (error) => error.reason === "too_large",
      () => Effect.succeed(largeFile)
    )
  )
  if (node === undefined) return yield* refuse(`${quotePath(input)} does not exist`)
  const rule = yield* ruleOf(context)
  const allowed =
    node._tag === "Directory" ? PathRule.allowsDirectory(rule, meant) : PathRule.allows(rule, meant)
  return allowed ? { path: meant, node } : yield* outside(input, context)
})

const directory: FileNode = { _tag: "Directory" }
/** Stands for a file whose content nobody asked for. */
const largeFile: FileNode = { _tag: "File", bytes: new Uint8Array(), executable: false }

/** The place of a new file: links above it are followed, a link in its place is not. */
export const locateNew = Effect.fnUntraced(function* (input: string, context: ToolContext) {
  const path = yield* Effect.fromResult(Result.mapError(checkWorkspacePath(input), refuse))
  const slash = path.lastIndexOf("/")
  const parent = slash < 0 ? "." : yield* context.workspace.resolve(path.slice(0, slash))
  const meant = parent === "." ? path.slice(slash + 1) : `${parent}${path.slice(slash)}`
  yield* requireAllowed([meant], context)
  return meant
})

/** The regular file at a located path, or why there is none. */
export const readRegular = Effect.fnUntraced(function* (path: string, input: string, context: ToolContext) {
  const node = yield* context.workspace.read(path, context.limits.max_read_bytes)
  if (node?._tag === "File") return node satisfies FileOnly
  return yield* refuse(notAFile(node, input))
})

const notAFile = (node: Exclude<FileNode, FileOnly> | undefined, input: string): string => {
  switch (node?._tag) {
    case undefined:
      return `${quotePath(input)} does not exist`
    case "Directory":
      return `${quotePath(input)} is a directory: list_files shows what is in it`
    case "Symlink":
      return `${quotePath(input)} is a symlink that leads nowhere`
    case "Special":
      return `${quotePath(input)} is neither a file nor a directory`
  }
}
