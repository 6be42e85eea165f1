/**
 * How every edit reaches the workspace: all of its changes or none, within the run's limits, and shown back.
 */
import { Effect, Ref, TextDiff } from "effect"
import type { FileChange, FileNode } from "../../domain/patch/FileSet.ts"
import { protectedAmong } from "../../domain/Warnings.ts"
import { boundText } from "../../domain/Text.ts"
import { quotePath } from "../../domain/WorkspacePath.ts"
import type { EditedFiles, FileSize, Observation, ToolContext } from "../../services/Tools.ts"
import type { WorkspaceDiff, WorkspaceError } from "../../services/Workspace.ts"
import { refuse, Refused } from "./Define.ts"

/** Of the diffs that one observation shows. */
const maxSnippetBytes = 4000
/** Beyond this, a diff of two texts is as long as they are and slow to make. */
const maxDiffEdits = 1000

/** What stood at the changed paths before; a path that had nothing is left out. */
export type Before = ReadonlyMap<string, FileNode>

const undo = (changes: ReadonlyArray<FileChange>, before: Before): ReadonlyArray<FileChange> => {
  const inverse = changes.map(({ path }): FileChange => {
    const node = before.get(path)
    return node?._tag === "File"
      ? { _tag: "Write", path, bytes: node.bytes, executable: node.executable }
      : { _tag: "Delete", path }
  })
  // A deletion may have made room for a directory, so what was written goes first.
  return inverse.toSorted((left, right) => Number(left._tag === "Write") - Number(right._tag === "Write"))
}

const lineCount = (bytes: Uint8Array): number => {
  let count = bytes.length > 0 && bytes.at(-1) !== 0x0a ? 1 : 0
  for (const byte of bytes) if (byte === 0x0a) count++
  return count
}

/** Why the run's whole patch has grown too large, if it has. */
const overLimit = ({ files, patch }: WorkspaceDiff, { limits }: ToolContext): string | undefined => {
  if (files.length > limits.max_changed_files) {
    return `the patch would change ${files.length} files, more than ${limits.max_changed_files}`
  }
  if (patch.length > limits.max_patch_bytes) {
    return `the patch would have ${patch.length} bytes, more than ${limits.max_patch_bytes}`
  }
  const lines = lineCount(patch)
  return lines > limits.max_patch_lines
    ? `the patch would have ${lines} lines, more than ${limits.max_patch_lines}`
    : undefined
}

const sizeOf = (bytes: Uint8Array): FileSize => ({ bytes: bytes.length, lines: lineCount(bytes) })
const nothing: FileSize = { bytes: 0, lines: 0 }
/** What a file's headers in a patch have at most, beside twice its path. */
const header: FileSize = { bytes: 1024, lines: 12 }

/**
 * Whether the patch is within the limits whatever a diff would say. A text patch holds no byte of the old and the new
 * file more than once and one sign a line; a binary one holds five characters for four bytes, 52 bytes a line.
 */
const surelyWithin = (edited: EditedFiles, { limits }: ToolContext): boolean => {
  let bytes = 0
  let lines = 0
  for (const [path, { after, before }] of edited) {
    const both = before.bytes + after.bytes
    bytes += header.bytes + 8 * path.length + 2 * both
    lines += header.lines + before.lines + after.lines + Math.ceil(both / 52)
  }
  return (
    edited.size <= limits.max_changed_files &&
    bytes <= limits.max_patch_bytes &&
    lines <= limits.max_patch_lines
  )
}

const remember = (context: ToolContext, changes: ReadonlyArray<FileChange>, before: Before) =>
  Ref.updateAndGet(context.edited, (edited) => {
    const next = new Map(edited)
    for (const change of changes) {
      const node = before.get(change.path)
      next.set(change.path, {
        before: edited.get(change.path)?.before ?? (node?._tag === "File" ? sizeOf(node.bytes) : nothing),
        after: change._tag === "Write" ? sizeOf(change.bytes) : nothing
      })
    }
    return next
  })

const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

const snippet = (before: Uint8Array, after: Uint8Array): string => {
  if (before.includes(0) || after.includes(0)) return ""
  return TextDiff.unified(TextDiff.lines(decode(before), decode(after), { maxEdits: maxDiffEdits }))
}

const summary = (change: FileChange, before: Before): { readonly line: string; readonly diff: string } => {
  const node = before.get(change.path)
  const path = quotePath(change.path).slice(1, -1)
  if (change._tag === "Delete") return { line: `deleted ${path}`, diff: "" }
  if (node?._tag !== "File") {
    const lines = lineCount(change.bytes)
    return { line: `created ${path} (${lines} ${lines === 1 ? "line" : "lines"})`, diff: "" }
  }
  return { line: `edited ${path}`, diff: snippet(node.bytes, change.bytes) }
}

const report = (changes: ReadonlyArray<FileChange>, before: Before): string => {
  const parts = changes.map((change) => summary(change, before))
  const [only] = parts
  const diffs = parts.filter(({ diff }) => diff !== "")
  const shown =
    parts.length === 1 ? diffs.map(({ diff }) => diff) : diffs.map(({ diff, line }) => `${line}:\n${diff}`)
  const head =
    parts.length === 1 && only !== undefined
      ? only.line
      : [`${parts.length} files changed`, ...parts.map(({ line }) => line)].join("\n")
  return shown.length === 0 ? head : `${head}\n${boundText(shown.join(""), maxSnippetBytes)}`.trimEnd()
}

const requireSizes = (changes: ReadonlyArray<FileChange>, { limits }: ToolContext): Refused | undefined => {
  const large = changes.find(
    (change) => change._tag === "Write" && change.bytes.length > limits.max_read_bytes
  )
  return large === undefined
    ? undefined
    : refuse(`${quotePath(large.path)} would be larger than ${limits.max_read_bytes} bytes`)
}

/**
 * Writes the changes. When they make the run's patch exceed a limit, or that cannot be found out, they are taken back
 * and the call fails.
 */
export const applyEdit = Effect.fnUntraced(function* (
  changes: ReadonlyArray<FileChange>,
  before: Before,
  context: ToolContext
) {
  const { workspace } = context
  const large = requireSizes(changes, context)
  if (large !== undefined) return yield* large
  const held = protectedAmong(
    context.protected_paths,
    changes.map((change) => change.path)
  )
  if (held !== null)
    return yield* refuse(
      `${quotePath(held.path)} is protected (${held.glob}): this run may not change it, and no way around that is wanted`
    )
  const tree = yield* workspace.apply(changes)
  const done = Effect.sync((): Observation => ({ ok: true, content: report(changes, before), tree }))
  if (surelyWithin(yield* remember(context, changes, before), context)) return yield* done
  const takeBack = Effect.fnUntraced(function* (
    why: string
  ): Effect.fn.Return<never, Refused | WorkspaceError> {
    const restored = yield* workspace.apply(undo(changes, before))
    return yield* new Refused({ message: `the edit was refused and taken back: ${why}`, tree: restored })
  })
  const why = yield* workspace.diff(tree).pipe(
    Effect.map((diff) => overLimit(diff, context)),
    Effect.catch((error) => Effect.succeed(`its patch could not be made: ${error.message}`))
  )
  if (why !== undefined) return yield* takeBack(why)
  return yield* done
})
