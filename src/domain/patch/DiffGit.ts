/**
 * Files of git's unified diffs: which file the header is about, what happens to it, and whether its lines agree.
 */
import { Result } from "effect"
import type { ByteString } from "./ByteString.ts"
import type { DiffKind, PatchText } from "./Diff.ts"
import { finishFile, malformed, type ReadFile } from "./DiffHeader.ts"
import { readHunks } from "./DiffHunks.ts"
import {
  DEV_NULL,
  dropPrefix,
  gitNamePairs,
  havePrefixes,
  type MarkedName,
  markedName,
  type NamePair,
  unmarkedName
} from "./DiffNames.ts"
import type { PatchError } from "./PatchError.ts"
import { quoteLine } from "./Quote.ts"

/** What the lines between "diff --git" and the first hunk say. */
interface GitHeader {
  readonly oldMode?: string
  readonly newMode?: string
  readonly created?: true
  readonly deleted?: true
  readonly renamed?: true
  readonly copied?: true
  readonly from?: ByteString
  readonly to?: ByteString
  readonly minus?: MarkedName
  readonly plus?: MarkedName
  readonly binary?: true
}

const extended: ReadonlyArray<readonly [string, (rest: string, header: GitHeader) => GitHeader | undefined]> =
  [
    ["old mode ", (rest, header) => ({ ...header, oldMode: rest.trim() })],
    ["new mode ", (rest, header) => ({ ...header, newMode: rest.trim() })],
    ["new file mode ", (rest, header) => ({ ...header, created: true, newMode: rest.trim() })],
    ["deleted file mode ", (rest, header) => ({ ...header, deleted: true, oldMode: rest.trim() })],
    ["rename from ", (rest, header) => from(rest, { ...header, renamed: true })],
    ["rename to ", (rest, header) => to(rest, { ...header, renamed: true })],
    ["rename old ", (rest, header) => from(rest, { ...header, renamed: true })],
    ["rename new ", (rest, header) => to(rest, { ...header, renamed: true })],
    ["copy from ", (rest, header) => from(rest, { ...header, copied: true })],
    ["copy to ", (rest, header) => to(rest, { ...header, copied: true })],
    ["similarity index ", (_, header) => header],
    ["dissimilarity index ", (_, header) => header],
    ["index ", (rest, header) => withIndexMode(rest, header)],
    ["Binary files ", (_, header) => ({ ...header, binary: true })],
    ["GIT binary patch", (_, header) => ({ ...header, binary: true })]
  ]

const from = (rest: string, header: GitHeader): GitHeader | undefined => {
  const name = unmarkedName(rest)
  return name === undefined ? undefined : { ...header, from: name }
}

const to = (rest: string, header: GitHeader): GitHeader | undefined => {
  const name = unmarkedName(rest)
  return name === undefined ? undefined : { ...header, to: name }
}

/** "index 1234567..89abcde 100644" gives the mode of a file whose mode stays. */
const withIndexMode = (rest: string, header: GitHeader): GitHeader => {
  const mode = /^[0-9a-f]+\.\.[0-9a-f]+ ([0-7]{6})$/.exec(rest.trim())?.[1]
  return mode === undefined ? header : { oldMode: mode, newMode: mode, ...header }
}

/** After "GIT binary patch": one or two blocks of data, each ended by an empty line. */
const skipBinary = (text: PatchText, from: number): number => {
  let at = from
  while (/^(?:literal|delta) \d/.test(text.header(at) ?? "")) {
    while (at < text.lines.length && text.header(at) !== "") at++
    at++
  }
  return at
}

const readGitHeader = (
  text: PatchText,
  start: number
): Result.Result<{ readonly header: GitHeader; readonly next: number }, PatchError> => {
  let header: GitHeader = {}
  let at = start + 1
  for (; at < text.lines.length; at++) {
    const line = text.header(at) ?? ""
    if (line.startsWith("--- ") || line.startsWith("+++ ")) {
      const name = markedName(line.slice(4), false)
      if (name === undefined) return malformed(at, "a file name is missing")
      const minus = line.startsWith("-")
      if ((minus ? header.minus : header.plus) !== undefined)
        return malformed(at, "a file name is given twice")
      header = minus ? { ...header, minus: name } : { ...header, plus: name }
      continue
    }
    const entry = extended.find(([start]) => line.startsWith(start))
    if (entry === undefined) break
    const next = entry[1](line.slice(entry[0].length), header)
    if (next === undefined) return malformed(at, `${quoteLine(line)} names no file`)
    header = next
    if (entry[0] === "GIT binary patch") return Result.succeed({ header, next: skipBinary(text, at + 1) })
  }
  return Result.succeed({ header, next: at })
}

/** The reading of the "diff --git" line with which all the other lines agree; without prefixes. */
const agreedNames = (
  line: ByteString,
  header: GitHeader
): (NamePair & { readonly prefixed: boolean }) | undefined => {
  for (const pair of gitNamePairs(line)) {
    const prefixed = havePrefixes(pair.oldName, pair.newName)
    const bare = (name: ByteString): ByteString => (prefixed ? dropPrefix(name) : name)
    const says = (marked: MarkedName | undefined, name: ByteString): boolean =>
      marked === undefined || marked.name === DEV_NULL || marked.name === name
    const renames = header.renamed === true || header.copied === true
    const agree = renames
      ? header.from === bare(pair.oldName) && header.to === bare(pair.newName)
      : bare(pair.oldName) === bare(pair.newName)
    if (agree && says(header.minus, pair.oldName) && says(header.plus, pair.newName)) {
      return { oldName: bare(pair.oldName), newName: bare(pair.newName), prefixed }
    }
  }
  return undefined
}

const kindOf = (header: GitHeader): DiffKind | undefined => {
  const created = header.created === true || header.minus?.name === DEV_NULL
  const deleted = header.deleted === true || header.plus?.name === DEV_NULL
  const kinds: ReadonlyArray<readonly [boolean, DiffKind]> = [
    [created, "create"],
    [deleted, "delete"],
    [header.renamed === true, "rename"],
    [header.copied === true, "copy"]
  ]
  const said = kinds.filter(([holds]) => holds)
  if (said.length > 1) return undefined
  const marked = header.minus !== undefined
  if (created && marked && header.minus?.name !== DEV_NULL) return undefined
  if (deleted && marked && header.plus?.name !== DEV_NULL) return undefined
  return said[0]?.[1] ?? "modify"
}

/** A file that begins with "diff --git". */
export const readGitFile = (text: PatchText, at: number): Result.Result<ReadFile, PatchError> =>
  Result.gen(function* () {
    const read = yield* readGitHeader(text, at)
    const { header } = read
    const kind = kindOf(header)
    if (kind === undefined) return yield* malformed(at, "the header lines contradict each other")
    if ((header.minus === undefined) !== (header.plus === undefined)) {
      return yield* malformed(at, 'the header needs both a "---" and a "+++" line')
    }
    const names = agreedNames(text.header(at)?.slice("diff --git ".length) ?? "", header)
    if (names === undefined)
      return yield* malformed(at, "the file names in the header disagree or are missing")
    const { hunks, next } = yield* readHunks(text, read.next)
    const binary = header.binary === true
    if (binary && hunks.length > 0) return yield* malformed(at, "a file cannot be both binary and text")
    if (hunks.length > 0 && header.minus === undefined) {
      return yield* malformed(at, 'before the first hunk the header needs "--- a/path" and "+++ b/path"')
    }
    if (hunks.length === 0 && header.minus !== undefined) {
      return yield* malformed(read.next, 'after "+++" a hunk must follow, starting like "@@ -12,5 +12,6 @@"')
    }
    const changesMode = header.oldMode !== header.newMode
    if (hunks.length === 0 && !binary && kind === "modify" && !changesMode) {
      return yield* malformed(at, "the file header is followed by no change")
    }
    const oldPath = kind === "create" ? undefined : names.oldName
    const newPath = kind === "delete" ? undefined : names.newName
    const oldMode = kind === "create" ? undefined : header.oldMode
    const newMode = kind === "delete" ? undefined : header.newMode
    const { prefixed } = names
    return yield* finishFile(
      { kind, oldPath, newPath, oldMode, newMode, hunks, binary, plain: false, prefixed },
      at,
      next
    )
  })
