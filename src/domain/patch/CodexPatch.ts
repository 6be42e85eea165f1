/**
 * The "*** Begin Patch" format: files by name, changes by context instead of line numbers.
 *
 * Blanks around the markers are forgiven where they cannot be content. Everything between "*** Begin Patch" and
 * "*** End Patch" must be understood: a patch without its end was cut off and is refused.
 */
import { Result } from "effect"
import { type ByteString, encode } from "./ByteString.ts"
import { bodyOf, splitLines, withoutBlanks } from "./Lines.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { quoteLine } from "./Quote.ts"

export interface CodexLine {
  readonly kind: "context" | "remove" | "add"
  /** Without prefix and without ending. */
  readonly text: ByteString
}

export interface CodexChunk {
  /** Lines to find first, each below the one before, from "@@ line" headers. */
  readonly anchors: ReadonlyArray<ByteString>
  readonly lines: ReadonlyArray<CodexLine>
  /** How many of the last lines are wholly empty in the patch: context, or only space before the next marker. */
  readonly blankTail: number
  /** "*** End of File" follows: the old lines are the file's last. */
  readonly endOfFile: boolean
  /** The line of the patch that it begins on, from 1. */
  readonly at: number
}

export type CodexOperation =
  | { readonly _tag: "Add"; readonly path: ByteString; readonly content: ByteString }
  | { readonly _tag: "Delete"; readonly path: ByteString }
  | {
      readonly _tag: "Update"
      readonly path: ByteString
      readonly moveTo: ByteString | undefined
      readonly chunks: ReadonlyArray<CodexChunk>
    }

const BEGIN = "*** Begin Patch"
const END = "*** End Patch"
const END_OF_FILE = "*** End of File"

/** Whether a text is meant to be in this format: its first line with anything on it opens it, perhaps in a wrapper. */
export const isCodexPatch = (patch: string): boolean => {
  const lines = patch.split("\n", 50).filter((line) => line.trim() !== "")
  const first = lines[0]?.trim() ?? ""
  return first.startsWith("*** ") || (isWrapper(first) && lines[1]?.trim() === BEGIN)
}

/** A shell here-document or a Markdown fence, in which models wrap patches. */
const isWrapper = (line: string): boolean =>
  /^(?:apply_patch\s+)?<<-?\s?(['"]?)\w+\1$/.test(line) || /^`{3,}\w*$/.test(line)

interface Script {
  readonly lines: ReadonlyArray<ByteString>
  /** The number of `lines[0]` in the patch, from 1. */
  readonly first: number
}

/** The lines between the markers. */
const between = (patch: ByteString): Result.Result<Script, PatchError> => {
  const all = splitLines(patch)
  const whole = all.map((line) => withoutBlanks(line))
  let start = whole.findIndex((line) => line !== "")
  let end = whole.findLastIndex((line) => line !== "")
  const opener = whole[start] ?? ""
  if (isWrapper(opener)) {
    const closer = opener.startsWith("`") ? /`+/.exec(opener)?.[0] : /\w+(?=['"]?$)/.exec(opener)?.[0]
    start++
    if (whole[end] === closer) end--
  }
  if (whole[start] !== BEGIN) return refuse("malformed", `the first line of the patch must be "${BEGIN}"`)
  if (end <= start || whole[end] !== END) {
    return refuse("truncated", `the last line of the patch must be "${END}": it was cut off, or text follows`)
  }
  // A patch that came with CRLF throughout says nothing about the files' own endings.
  const crlf = all[start]?.endsWith("\r\n") === true
  const lines = all.slice(start + 1, end).map((line) => (crlf ? bodyOf(line) : line.replace(/\n$/, "")))
  return Result.succeed({ lines, first: start + 2 })
}

const fail = (script: Script, at: number, message: string): Result.Result<never, PatchError> =>
  refuse("malformed", `line ${script.first + at} of the patch: ${message}`)

const headers = {
  add: "*** Add File: ",
  remove: "*** Delete File: ",
  update: "*** Update File: ",
  move: "*** Move to: "
}

const isMarker = (line: ByteString | undefined): boolean => line !== undefined && line.startsWith("***")

interface Read<A> {
  readonly value: A
  readonly next: number
}

const readAdd = (
  script: Script,
  path: ByteString,
  from: number
): Result.Result<Read<CodexOperation>, PatchError> => {
  const content: Array<ByteString> = []
  let at = from
  for (; at < script.lines.length; at++) {
    const line = script.lines[at] ?? ""
    if (!line.startsWith("+")) break
    content.push(`${line.slice(1)}\n`)
  }
  return Result.succeed({ value: { _tag: "Add", path, content: content.join("") }, next: at })
}

/** "@@ line" names a line to go to; "@@ -1,3 +1,4 @@" of a unified diff only opens a chunk here. */
const anchorOf = (line: ByteString): ByteString | undefined => {
  const anchor = line.slice(2).replace(/^ /, "").replace(/\r$/, "")
  return /^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@/.test(anchor) || withoutBlanks(anchor) === "" ? undefined : anchor
}

const lineOf = (line: ByteString): CodexLine | undefined => {
  const text = line.slice(1).replace(/\r$/, "")
  if (line.startsWith("+")) return { kind: "add", text }
  if (line.startsWith("-")) return { kind: "remove", text }
  return line.startsWith(" ") || line === "" || line === "\r" ? { kind: "context", text } : undefined
}

const readChunk = (
  script: Script,
  from: number,
  first: boolean
): Result.Result<Read<CodexChunk>, PatchError> => {
  const anchors: Array<ByteString> = []
  let at = from
  for (; script.lines[at]?.startsWith("@@") === true; at++) {
    const anchor = anchorOf(script.lines[at] ?? "")
    if (anchor !== undefined) anchors.push(anchor)
  }
  if (at === from && !first) {
    return fail(script, at, `${quoteLine(script.lines[at] ?? "")} must start with " ", "+", "-" or "@@"`)
  }
  const lines: Array<CodexLine> = []
  let blankTail = 0
  for (; at < script.lines.length; at++) {
    const raw = script.lines[at] ?? ""
    const line = lineOf(raw)
    if (line === undefined) break
    lines.push(line)
    blankTail = raw === "" || raw === "\r" ? blankTail + 1 : 0
  }
  if (lines.length === blankTail) {
    const here = script.lines[at]
    return here === undefined || isMarker(here)
      ? fail(script, from, "a chunk without lines changes nothing")
      : fail(script, at, `${quoteLine(here)} must start with " " (context), "+" or "-"`)
  }
  const endOfFile = withoutBlanks(script.lines[at] ?? "") === END_OF_FILE
  const value = { anchors, lines, blankTail, endOfFile, at: script.first + from }
  return Result.succeed({ value, next: endOfFile ? at + 1 : at })
}

const readUpdate = (
  script: Script,
  path: ByteString,
  from: number
): Result.Result<Read<CodexOperation>, PatchError> =>
  Result.gen(function* () {
    let at = from
    let moveTo: ByteString | undefined
    const header = withoutBlanks(script.lines[at] ?? "")
    if (header.startsWith(headers.move)) {
      moveTo = withoutBlanks(header.slice(headers.move.length))
      at++
    }
    const chunks: Array<CodexChunk> = []
    while (at < script.lines.length && !isMarker(script.lines[at])) {
      // Empty lines before an "@@" or the next file only separate.
      if (withoutBlanks(script.lines[at] ?? "") === "" && isSeparator(script, at)) {
        at++
        continue
      }
      if (chunks.length === 0 && isHeader(script.lines[at] ?? "")) break
      const chunk = yield* readChunk(script, at, chunks.length === 0)
      chunks.push(chunk.value)
      at = chunk.next
    }
    if (chunks.length === 0 && moveTo === undefined) {
      return yield* fail(script, from - 1, `the update of ${quoteLine(path)} has no changes`)
    }
    const value: CodexOperation = { _tag: "Update", path, moveTo, chunks }
    return { value, next: at }
  })

const isHeader = (line: ByteString): boolean => {
  const trimmed = withoutBlanks(line)
  return Object.values(headers).some((header) => trimmed.startsWith(header))
}

const isSeparator = (script: Script, from: number): boolean => {
  let at = from
  while (at < script.lines.length && withoutBlanks(script.lines[at] ?? "") === "") at++
  const line = script.lines[at]
  return line === undefined || isMarker(line) || line.startsWith("@@")
}

/** The operations of a patch in their order, paths as they are written. */
export const parseCodexPatch = (patch: string): Result.Result<ReadonlyArray<CodexOperation>, PatchError> =>
  Result.gen(function* () {
    if (!patch.isWellFormed()) return yield* refuse("encoding", "the patch contains half of a surrogate pair")
    const script = yield* between(encode(patch))
    const operations: Array<CodexOperation> = []
    for (let at = 0; at < script.lines.length;) {
      const header = withoutBlanks(script.lines[at] ?? "")
      const rest = (prefix: string): ByteString => withoutBlanks(header.slice(prefix.length))
      if (header === "") {
        at++
      } else if (header.startsWith(headers.add)) {
        const read = yield* readAdd(script, rest(headers.add), at + 1)
        operations.push(read.value)
        at = read.next
      } else if (header.startsWith(headers.remove)) {
        operations.push({ _tag: "Delete", path: rest(headers.remove) })
        at++
      } else if (header.startsWith(headers.update)) {
        const read = yield* readUpdate(script, rest(headers.update), at + 1)
        operations.push(read.value)
        at = read.next
      } else {
        return yield* fail(
          script,
          at,
          `${quoteLine(script.lines[at] ?? "")} is no header: use "*** Add File: path", "*** Update File: path" or ` +
            `"*** Delete File: path"; every line of a new file starts with "+"`
        )
      }
    }
    return operations
  })
