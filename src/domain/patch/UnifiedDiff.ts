/**
 * Unified diffs, git's and plain ones, read strictly: what a header promises the body must keep, and a line that belongs
 * to no hunk is an error, never a line lost. Prose around the files (mails, commit messages, signatures) is skipped.
 */
import { Result } from "effect"
import { type ByteString, encode, fromBytes } from "./ByteString.ts"
import type { DiffFile, PatchText } from "./Diff.ts"
import { readGitFile } from "./DiffGit.ts"
import { readPlainFile } from "./DiffPlain.ts"
import { splitLines } from "./Lines.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { quoteLine } from "./Quote.ts"

const patchText = (text: ByteString): PatchText => {
  const lines = splitLines(text)
  return { lines, header: (at) => lines[at]?.replace(/\r?\n$/, "").replace(/\r$/, "") }
}

/** Whether a line after a file's last one looks like one more of a hunk. "-- " opens a mail signature. */
const isLeftover = (line: ByteString): boolean => /^[ +\\-]/.test(line) && line !== "-- " && line !== "--"

/**
 * The files of a diff in their order; none for a blank text. Bytes are read as they are, so that names and contents need
 * not be UTF-8. Fails on everything that is not a complete, consistent diff.
 */
export const parseDiff = (patch: string | Uint8Array): Result.Result<ReadonlyArray<DiffFile>, PatchError> =>
  Result.gen(function* () {
    if (typeof patch === "string" && !patch.isWellFormed()) {
      return yield* refuse("encoding", "the patch contains half of a surrogate pair")
    }
    const raw = typeof patch === "string" ? encode(patch) : fromBytes(patch)
    const text = patchText(raw)
    const files: Array<DiffFile> = []
    let afterFile = false
    for (let at = 0; at < text.lines.length;) {
      const line = text.header(at) ?? ""
      const git = line.startsWith("diff --git ")
      if (git || (line.startsWith("--- ") && text.header(at + 1)?.startsWith("+++ ") === true)) {
        const { file, next } = yield* git ? readGitFile(text, at) : readPlainFile(text, at)
        files.push(file)
        afterFile = true
        at = next
        continue
      }
      if (line.startsWith("diff --cc ") || line.startsWith("diff --combined ") || line.startsWith("@@@ ")) {
        return yield* refuse(
          "unsupported",
          `line ${at + 1} of the patch: a combined diff of a merge has no single base`
        )
      }
      if (line.startsWith("@@")) {
        return yield* refuse(
          "malformed",
          `line ${at + 1} of the patch: ${quoteLine(line)} is no hunk header with line numbers after a file header ` +
            '("--- a/path", "+++ b/path", then "@@ -12,5 +12,6 @@")'
        )
      }
      if (afterFile && line !== "") {
        if (isLeftover(line)) {
          return yield* refuse(
            "counts",
            `line ${at + 1} of the patch: ${quoteLine(line)} belongs to no hunk: ` +
              "the @@ header is missing or its counts are too small"
          )
        }
        afterFile = false
      }
      at++
    }
    if (files.length === 0 && raw.trim() !== "") {
      return yield* refuse(
        "malformed",
        'no file in the patch: start with "*** Begin Patch", or with "diff --git a/path b/path" or "--- a/path"'
      )
    }
    return files
  })
