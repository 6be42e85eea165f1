/**
 * The hunks of a unified diff. The counts in the header rule: exactly so many lines follow, whatever they look like.
 */
import { Result } from "effect"
import type { ByteString } from "./ByteString.ts"
import type { DiffHunk, DiffLine, PatchText } from "./Diff.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { quoteLine } from "./Quote.ts"

const hunkHeader = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/

/** A hunk while its lines are read. */
interface Body {
  readonly lines: Array<DiffLine>
  oldCount: number
  newCount: number
}

const kindOf = (raw: ByteString): DiffLine["kind"] | undefined => {
  switch (raw[0]) {
    case "+":
      return "add"
    case "-":
      return "remove"
    case " ":
    // Some tools and editors strip the blank of an empty context line.
    case "\n":
      return "context"
    default:
      return raw === "\r\n" ? "context" : undefined
  }
}

const push = (body: Body, kind: DiffLine["kind"], raw: ByteString): void => {
  body.lines.push({ kind, text: raw[0] === "\n" || raw[0] === "\r" ? raw : raw.slice(1) })
  if (kind !== "add") body.oldCount++
  if (kind !== "remove") body.newCount++
}

/** "\ No newline at end of file": the line before it has none. */
const dropNewline = (body: Body): boolean => {
  const last = body.lines.pop()
  if (last === undefined || !last.text.endsWith("\n")) return false
  body.lines.push({ kind: last.kind, text: last.text.slice(0, -1) })
  return true
}

/** What the body would have been with the right counts, to say so. */
const countBody = (text: PatchText, from: number): string => {
  const body: Body = { lines: [], oldCount: 0, newCount: 0 }
  for (let at = from; at < text.lines.length; at++) {
    const raw = text.lines[at] ?? ""
    if (/^(?:diff --git |@@ -|--- |-- ?\r?\n?$)/.test(raw)) break
    const kind = kindOf(raw)
    if (kind !== undefined) push(body, kind, raw)
    else if (!raw.startsWith("\\ ")) break
  }
  return `the body has ${body.oldCount} old and ${body.newCount} new lines`
}

const followsNothing = (at: number): Result.Result<never, PatchError> =>
  refuse("malformed", `line ${at + 1} of the patch: "\\ No newline at end of file" follows no line of a file`)

const endsEarly = (lines: ReadonlyArray<DiffLine>): boolean => {
  const open = lines.findIndex((line) => !line.text.endsWith("\n"))
  const kind = lines[open]?.kind
  if (kind === undefined) return false
  const later = lines.slice(open + 1)
  // An old last line may be followed by the new one, and the other way round, but by nothing on its own side.
  return later.some((line) => line.kind === "context" || line.kind === kind || kind === "context")
}

const readHunk = (
  text: PatchText,
  at: number
): Result.Result<{ readonly hunk: DiffHunk; readonly next: number }, PatchError> => {
  const line = text.header(at) ?? ""
  const header = hunkHeader.exec(line)
  if (header === null) {
    const message = `line ${at + 1} of the patch: ${quoteLine(line)} is no hunk header like "@@ -12,5 +12,6 @@"`
    return refuse("malformed", message)
  }
  const oldCount = Number(header[2] ?? 1)
  const newCount = Number(header[4] ?? 1)
  const body: Body = { lines: [], oldCount: 0, newCount: 0 }
  const wrongCounts = (reason: "counts" | "truncated") =>
    refuse(
      reason,
      `line ${at + 1} of the patch: the hunk header announces ${oldCount} old and ${newCount} new lines, ` +
        `but ${countBody(text, at + 1)}${reason === "truncated" ? " and the patch ends there" : ""}`
    )
  let next = at + 1
  while (body.oldCount < oldCount || body.newCount < newCount) {
    const raw = text.lines[next]
    if (raw === undefined) return wrongCounts("truncated")
    const kind = kindOf(raw)
    if (kind !== undefined) push(body, kind, raw)
    else if (!raw.startsWith("\\ ")) return wrongCounts("counts")
    else if (!dropNewline(body)) return followsNothing(next)
    if (body.oldCount > oldCount || body.newCount > newCount) return wrongCounts("counts")
    next++
    // The patch's own last newline is often trimmed away. A context or old line is checked against the file anyway; an
    // added line could as well have been cut in the middle.
    if (!raw.endsWith("\n") && kind !== undefined) {
      if (kind === "add") {
        return refuse(
          "truncated",
          "the last line of the patch is an added line without a newline: end it with one"
        )
      }
      const last = body.lines.pop()
      if (last !== undefined) body.lines.push({ kind, text: `${last.text}\n` })
    }
  }
  if (text.lines[next]?.startsWith("\\ ") === true) {
    if (!dropNewline(body)) return followsNothing(next)
    next++
  }
  if (body.lines.every((entry) => entry.kind === "context")) {
    return refuse("malformed", `line ${at + 1} of the patch: the hunk changes nothing`)
  }
  if (endsEarly(body.lines)) {
    return refuse(
      "malformed",
      `line ${at + 1} of the patch: lines follow one that has no newline at the end of file`
    )
  }
  const hunk: DiffHunk = {
    oldStart: Number(header[1]),
    oldCount,
    newCount,
    lines: body.lines,
    at: at + 1
  }
  return Result.succeed({ hunk, next })
}

/** The hunks from a line on, up to the first line that begins none. */
export const readHunks = (
  text: PatchText,
  from: number
): Result.Result<{ readonly hunks: ReadonlyArray<DiffHunk>; readonly next: number }, PatchError> =>
  Result.gen(function* () {
    const hunks: Array<DiffHunk> = []
    let next = from
    while (text.header(next)?.startsWith("@@ ") === true) {
      const read = yield* readHunk(text, next)
      hunks.push(read.hunk)
      next = read.next
    }
    return { hunks, next }
  })
