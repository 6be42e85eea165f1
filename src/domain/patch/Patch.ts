/**
 * A patch as a tool call or a person gives it, in either format: what it would touch, and what it does.
 */
import { Result } from "effect"
import type { Limits } from "../Task.ts"
import { byteLength } from "../Text.ts"
import { parentsOf } from "../WorkspacePath.ts"
import { applyCodexOperation } from "./CodexApply.ts"
import { type CodexOperation, isCodexPatch, parseCodexPatch } from "./CodexPatch.ts"
import type { DiffFile } from "./Diff.ts"
import { applyDiffFile, type RenameState } from "./DiffApply.ts"
import { type FileChange, makeOverlay, type ReadNode } from "./FileSet.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { checkRawPath } from "./PatchPath.ts"
import { parseDiff } from "./UnifiedDiff.ts"

type ParsedPatch =
  | { readonly format: "codex"; readonly operations: ReadonlyArray<CodexOperation> }
  | { readonly format: "unified"; readonly files: ReadonlyArray<DiffFile> }

const parse = (patch: string): Result.Result<ParsedPatch, PatchError> =>
  Result.gen(function* () {
    if (patch.trim() === "") return yield* refuse("empty", "the patch is empty")
    if (patch.includes("\0"))
      return yield* refuse("binary", "the patch contains a NUL character: only text can be patched")
    const parsed: ParsedPatch = isCodexPatch(patch)
      ? { format: "codex", operations: yield* parseCodexPatch(patch) }
      : { format: "unified", files: yield* parseDiff(patch) }
    if ((parsed.format === "codex" ? parsed.operations : parsed.files).length === 0) {
      return yield* refuse("empty", "the patch touches no file")
    }
    return parsed
  })

const rawPaths = (parsed: ParsedPatch): ReadonlyArray<string> => {
  const paths =
    parsed.format === "unified"
      ? parsed.files.flatMap((file) => [file.oldPath, file.newPath])
      : parsed.operations.flatMap((operation) => [
          operation.path,
          operation._tag === "Update" ? operation.moveTo : undefined
        ])
  return paths.filter((path) => path !== undefined)
}

const checkedPaths = (parsed: ParsedPatch): Result.Result<ReadonlyArray<string>, PatchError> =>
  Result.gen(function* () {
    const paths = new Set<string>()
    for (const raw of rawPaths(parsed)) paths.add(yield* checkRawPath(raw))
    const bare = parsed.format === "unified" ? parsed.files.find(hidesPrefix) : undefined
    if (bare !== undefined) {
      return yield* refuse(
        "malformed",
        `line ${bare.at} of the patch: the file names need the prefixes a/ and b/, as in "--- a/path" and "+++ b/path"`
      )
    }
    return [...paths]
  })

/** Without prefixes "src/f" may mean itself or, as for `git apply`, "f": nobody can tell which. */
const hidesPrefix = ({ newPath, oldPath, prefixed }: DiffFile): boolean =>
  !prefixed && (newPath ?? oldPath ?? "").includes("/")

/**
 * Every path that the patch would read or write, normalised, each once, in its order. Fails as applying would on a patch
 * that cannot be read and on a path outside the workspace or in a git directory.
 */
export const pathsOf = (patch: string): Result.Result<ReadonlyArray<string>, PatchError> =>
  Result.flatMap(parse(patch), checkedPaths)

/** Bytes are those of the patch as UTF-8, an empty last line does not count, files are different paths. */
export type PatchLimits = Pick<Limits, "max_patch_bytes" | "max_patch_lines" | "max_changed_files">

const lineCount = (patch: string): number => {
  let count = patch === "" || patch.endsWith("\n") ? 0 : 1
  for (let at = patch.indexOf("\n"); at >= 0; at = patch.indexOf("\n", at + 1)) count++
  return count
}

const checkSize = (
  patch: string,
  { max_patch_bytes, max_patch_lines }: PatchLimits
): Result.Result<void, PatchError> => {
  if (byteLength(patch) > max_patch_bytes)
    return refuse("too_large", `the patch has more than ${max_patch_bytes} bytes: split it`)
  const lines = lineCount(patch)
  if (lines > max_patch_lines)
    return refuse("too_large", `the patch has ${lines} lines, more than ${max_patch_lines}: split it`)
  return Result.void
}

/** A patch that was read and is within its limits. */
export interface PatchPlan {
  /** Every path that the patch would read or write, normalised, each once, in its order. */
  readonly paths: ReadonlyArray<string>
  /** What `apply` will ask `read` for: the paths and every directory above them. */
  readonly nodes: ReadonlyArray<string>
  /**
   * The net effect on the tree that `read` shows: all of it, or an error and nothing. No path of the result leads out of
   * the workspace, through a symlink or into a git directory; files keep their mode, and every byte that the patch does
   * not name.
   */
  readonly apply: (read: ReadNode) => Result.Result<ReadonlyArray<FileChange>, PatchError>
}

const apply = (parsed: ParsedPatch, read: ReadNode): Result.Result<ReadonlyArray<FileChange>, PatchError> =>
  Result.gen(function* () {
    const overlay = makeOverlay(read)
    if (parsed.format === "codex") {
      for (const operation of parsed.operations) yield* applyCodexOperation(overlay, operation)
    } else {
      const state = yield* renameStateOf(parsed.files)
      for (const file of parsed.files) yield* applyDiffFile(overlay, file, state)
    }
    const changes = overlay.changes()
    if (changes.length === 0) return yield* refuse("no_change", "the patch leaves every file as it is")
    return changes
  })

/** Reads a patch. Fails as `pathsOf` does, and when the patch is too large. */
export const planPatch = (patch: string, limits: PatchLimits): Result.Result<PatchPlan, PatchError> =>
  Result.gen(function* () {
    yield* checkSize(patch, limits)
    const parsed = yield* parse(patch)
    const paths = yield* checkedPaths(parsed)
    if (paths.length > limits.max_changed_files) {
      return yield* refuse(
        "too_large",
        `the patch touches ${paths.length} files, more than ${limits.max_changed_files}: split it`
      )
    }
    const nodes = [...new Set(paths.flatMap((path) => [...parentsOf(path), path]))]
    return { paths, nodes, apply: (read) => apply(parsed, read) }
  })

const renameStateOf = (files: ReadonlyArray<DiffFile>): Result.Result<RenameState, PatchError> =>
  Result.gen(function* () {
    const sources = new Set<string>()
    for (const { kind, oldPath } of files) {
      if (kind === "rename" && oldPath !== undefined) sources.add(yield* checkRawPath(oldPath))
    }
    return { sources, filled: new Set<string>() }
  })
