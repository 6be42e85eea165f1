/**
 * Applying a parsed unified diff the way `git apply` does: no fuzz, whole hunks, every file or none. Stricter than git
 * where it matters: a hunk that moved must fit in one place only.
 */
import { Result } from "effect"
import { quotePath } from "../WorkspacePath.ts"
import { type ByteString, fromBytes, toBytes } from "./ByteString.ts"
import type { DiffFile, DiffHunk } from "./Diff.ts"
import { checkParents, type FileOnly, type Overlay, requireFile, requireFree } from "./FileSet.ts"
import { findRuns, type LineNumbers, matchesAt, numberLines, splitLines } from "./Lines.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { checkRawPath } from "./PatchPath.ts"
import { quoteLine } from "./Quote.ts"
import { type Splice, spliceLines } from "./Splice.ts"

/** More places than this are not told apart in a message. */
const ENOUGH = 20

/** The place that the header names, counted from 0. */
const startOf = (hunk: DiffHunk): number => (hunk.oldCount === 0 ? hunk.oldStart : hunk.oldStart - 1)

const side = (hunk: DiffHunk, without: "add" | "remove"): ReadonlyArray<ByteString> =>
  hunk.lines.filter((line) => line.kind !== without).map((line) => line.text)

const noMatch = (
  path: string,
  hunk: DiffHunk,
  lines: ReadonlyArray<ByteString>,
  old: ReadonlyArray<ByteString>,
  limits: string
): Result.Result<never, PatchError> => {
  const start = startOf(hunk)
  const wrong = old.findIndex((line, index) => lines[start + index] !== line)
  const there = lines[start + Math.max(0, wrong)]
  const said = old[Math.max(0, wrong)] ?? ""
  const bare = (line: string): string => line.replace(/\r?\n$/, "")
  let hint = limits
  if (wrong >= 0 && there !== undefined && bare(there) === bare(said)) {
    hint =
      there.endsWith("\n") === said.endsWith("\n")
        ? ": they differ in the line ending (CRLF or LF)"
        : there.endsWith("\n")
          ? ': the file goes on after it, the patch says "No newline at end of file"'
          : ': the file ends there without a newline, which "\\ No newline at end of file" must say'
  }
  const what = there === undefined ? "the file ends before it" : `the file has ${quoteLine(there)}`
  const place = wrong >= 0 ? `: at line ${start + wrong + 1} the patch has ${quoteLine(said)}, ${what}` : ""
  const message = `the hunk on line ${hunk.at} of the patch does not apply to ${quotePath(path)}${place}${hint}`
  return refuse("no_match", `${message}. Read the file again and make a new patch`, path)
}

/** Where the hunk goes: as git reads it, no leading or trailing context means the file's very start or end. */
const locate = (
  path: string,
  hunk: DiffHunk,
  lines: ReadonlyArray<ByteString>,
  numbers: LineNumbers,
  taken: Uint8Array
): Result.Result<number, PatchError> => {
  const old = side(hunk, "add")
  const run = numbers.of(old)
  const fits = (at: number): boolean =>
    matchesAt(numbers.all, run, at) && !taken.subarray(at, at + run.length).includes(1)
  const atStart = hunk.oldStart <= 1
  const atEnd = hunk.lines.at(-1)?.kind !== "context"
  const last = lines.length - run.length
  if (atStart || atEnd) {
    const at = atStart ? 0 : last
    // Without any context, git takes the end of the file whatever the line number says, and edits the wrong lines.
    const stated = at === startOf(hunk) || hunk.lines.some((line) => line.kind === "context")
    if (fits(at) && (!atEnd || at === last) && stated) return Result.succeed(at)
    const end = "; no context line follows its changes, so it has to stand at the end of the file"
    const start = "; it starts at line 1, so it has to stand at the start of the file"
    return noMatch(path, hunk, lines, old, atEnd && (!atStart || fits(0)) ? end : atStart ? start : "")
  }
  const wanted = startOf(hunk)
  if (fits(wanted)) return Result.succeed(wanted)
  const places = findRuns(numbers.all, run, 0, ENOUGH).filter(fits)
  const only = places[0]
  if (only === undefined) return noMatch(path, hunk, lines, old, "")
  if (places.length === 1) return Result.succeed(only)
  const where = places.map((at) => at + 1).join(", ")
  return refuse(
    "ambiguous",
    `the hunk on line ${hunk.at} of the patch is not at line ${hunk.oldStart} of ${quotePath(path)}, ` +
      `and fits at lines ${where}: correct its line numbers or give more context`,
    path
  )
}

const applyHunks = (
  path: string,
  content: ByteString,
  hunks: ReadonlyArray<DiffHunk>
): Result.Result<ByteString, PatchError> =>
  Result.gen(function* () {
    if (hunks.length === 0) return content
    if (content.includes("\0")) {
      return yield* refuse("binary", `${quotePath(path)} is binary: it contains NUL bytes`, path)
    }
    const lines = splitLines(content)
    const numbers = numberLines(lines)
    const taken = new Uint8Array(lines.length)
    const splices: Array<Splice> = []
    for (const hunk of hunks) {
      const start = yield* locate(path, hunk, lines, numbers, taken)
      const count = hunk.oldCount
      taken.fill(1, start, start + count)
      splices.push({ start, count, lines: side(hunk, "remove") })
    }
    const after = spliceLines(lines, splices, () => undefined)
    return (
      after ??
      (yield* refuse(
        "malformed",
        `the patch puts lines after one of ${quotePath(path)} that has no newline`,
        path
      ))
    )
  })

/** The executable bit that a mode stands for; only regular files have one. */
const executableOf = (mode: string, path: string): Result.Result<boolean, PatchError> => {
  if (/^100[0-7]{3}$/.test(mode)) return Result.succeed((Number.parseInt(mode, 8) & 0o100) !== 0)
  const what =
    mode === "120000" ? "a symlink" : mode === "160000" ? "a submodule" : `a file of mode ${quotePath(mode)}`
  return refuse("unsupported", `${quotePath(path)}: patches may not create or change ${what}`, path)
}

/** What the whole patch does to paths, which git knows before it applies the first file. */
export interface RenameState {
  /** Paths that some file of the patch is renamed away from. */
  readonly sources: ReadonlySet<string>
  /** Paths that a rename or copy of this patch has already filled. */
  readonly filled: Set<string>
}

/** Renames and copies see the tree as it was before the patch, so that a patch can swap two files. */
const sourceOf = (
  overlay: Overlay,
  file: DiffFile,
  path: string,
  { filled }: RenameState
): Result.Result<FileOnly, PatchError> => {
  const moves = file.kind === "rename" || file.kind === "copy"
  if (!moves) return requireFile(overlay.current(path), path)
  if (file.kind === "rename" && overlay.touched(path) && !filled.has(path)) {
    return refuse(
      "conflict",
      `${quotePath(path)} is renamed after the same patch changed it: do both in one entry`,
      path
    )
  }
  return requireFile(overlay.original(path), path)
}

/** Applies one file of the diff to the overlay. */
export const applyDiffFile = (
  overlay: Overlay,
  file: DiffFile,
  state: RenameState
): Result.Result<void, PatchError> =>
  Result.gen(function* () {
    const oldPath = file.oldPath === undefined ? undefined : yield* checkRawPath(file.oldPath)
    const newPath = file.newPath === undefined ? undefined : yield* checkRawPath(file.newPath)
    const path = newPath ?? oldPath ?? ""
    if (file.binary) {
      return yield* refuse("binary", `${quotePath(path)}: binary patches cannot be applied, only text`, path)
    }
    const executable = file.newMode === undefined ? undefined : yield* executableOf(file.newMode, path)
    if (file.oldMode !== undefined) yield* executableOf(file.oldMode, path)
    if (oldPath !== undefined) yield* checkParents(overlay, oldPath)
    if (newPath !== undefined) yield* checkParents(overlay, newPath)
    const creates = oldPath === undefined || mayCreate(overlay, file, oldPath)
    const source = creates ? undefined : yield* sourceOf(overlay, file, oldPath, state)
    if (newPath !== undefined && newPath !== oldPath) {
      if (!state.sources.has(newPath) || overlay.touched(newPath)) yield* requireFree(overlay, newPath)
    }
    const before = source === undefined ? "" : fromBytes(source.bytes)
    const after = yield* applyHunks(path, before, file.hunks)
    if (newPath === undefined) {
      if (after !== "") {
        return yield* refuse(
          "no_match",
          `the patch deletes ${quotePath(path)} but leaves some of its lines`,
          path
        )
      }
      overlay.remove(path)
      return
    }
    const moves = file.kind === "rename" || file.kind === "copy"
    if (file.kind === "rename" && oldPath !== undefined && !state.filled.has(oldPath)) overlay.remove(oldPath)
    if (moves) state.filled.add(newPath)
    const bytes = source !== undefined && after === before ? source.bytes : toBytes(after)
    overlay.write(newPath, bytes, executable ?? source?.executable ?? false)
  })

/** A plain diff against nothing creates the file, as it does for git: its header has no way to say so. */
const mayCreate = (overlay: Overlay, file: DiffFile, path: string): boolean =>
  file.plain &&
  file.kind === "modify" &&
  file.hunks.every((hunk) => hunk.oldCount === 0) &&
  overlay.current(path) === undefined
