/**
 * Where a chunk without line numbers belongs: below the chunk before it and below its anchors, in the one place that its
 * old lines fit. Two places that fit are an error, never a guess.
 */
import { Result } from "effect"
import { quotePath } from "../WorkspacePath.ts"
import { BOM, type ByteString } from "./ByteString.ts"
import type { CodexChunk } from "./CodexPatch.ts"
import {
  bodyOf,
  findRuns,
  type LineNumbers,
  numberLines,
  withoutBlanks,
  withoutTrailingBlanks
} from "./Lines.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { quoteLine } from "./Quote.ts"

/** A file in lines, and its lines compared in three ways, from strict to lax. */
export interface Target {
  readonly lines: ReadonlyArray<ByteString>
  /** The file begins with a byte order mark, which is not part of `lines`: models do not see it. */
  readonly hasBom: boolean
  readonly exact: LineNumbers
  readonly trailing: () => LineNumbers
  readonly trimmed: () => LineNumbers
}

const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

export const targetOf = (lines: ReadonlyArray<ByteString>, hasBom: boolean): Target => {
  const bodies = lines.map(bodyOf)
  return {
    lines,
    hasBom,
    exact: numberLines(bodies),
    trailing: once(() => numberLines(bodies.map(withoutTrailingBlanks))),
    trimmed: once(() => numberLines(bodies.map(withoutBlanks)))
  }
}

export interface Place {
  readonly start: number
  /** How many of the chunk's lines count: all, or all but the empty ones at its end. */
  readonly length: number
  /** Where the next chunk may begin. */
  readonly next: number
}

interface Starts {
  /** Where the chunk may begin, ascending. */
  readonly at: ReadonlyArray<number>
  /** Whether an anchor says so; otherwise it is the cursor alone. */
  readonly anchored: boolean
}

/** Every way to follow the anchors down from the cursor: the lines right below the last one. */
const startsOf = (target: Target, anchors: ReadonlyArray<ByteString>, cursor: number): Starts => {
  let starts: Starts = { at: [cursor], anchored: false }
  for (const anchor of anchors) {
    const exact = findRuns(target.exact.all, target.exact.of([anchor]), 0, Infinity)
    const lax = () =>
      findRuns(target.trimmed().all, target.trimmed().of([withoutBlanks(anchor)]), 0, Infinity)
    const all = exact.length > 0 ? exact : lax()
    const places = all.filter((at) => at >= cursor)
    // An anchor that the chunks before have passed holds still: two chunks in one class both name the class.
    if (places.length === 0 && all.length > 0) continue
    const next = starts.anchored ? firstFrom(places, starts.at) : places
    starts = { at: next.map((at) => at + 1), anchored: true }
  }
  return starts
}

/** For every start the first place at or after it, both ascending, without repeats. */
const firstFrom = (places: ReadonlyArray<number>, starts: ReadonlyArray<number>): ReadonlyArray<number> => {
  const found = new Set<number>()
  let at = 0
  for (const start of starts) {
    while (at < places.length && (places[at] ?? 0) < start) at++
    const place = places[at]
    if (place !== undefined) found.add(place)
  }
  return [...found]
}

const candidates = (
  target: Target,
  chunk: CodexChunk,
  old: ReadonlyArray<ByteString>,
  starts: Starts,
  cursor: number,
  numbers: LineNumbers
): ReadonlyArray<number> => {
  const places = findRuns(numbers.all, numbers.of(old), cursor, Infinity)
  if (chunk.endOfFile) return places.filter((at) => at + old.length === target.lines.length)
  if (!starts.anchored) return places
  // Models repeat the anchor as the chunk's first line: then the chunk begins on the anchor itself.
  const onAnchor = new Set(starts.at.map((start) => start - 1))
  const found = new Set([...firstFrom(places, starts.at), ...places.filter((at) => onAnchor.has(at))])
  return [...found].toSorted((left, right) => left - right)
}

/** Models that do see the mark repeat it; it is kept apart from the lines. */
export const withoutBom = (target: Target, text: ByteString): ByteString =>
  target.hasBom && text.startsWith(BOM) ? text.slice(BOM.length) : text

const missing = (
  path: string,
  target: Target,
  chunk: CodexChunk,
  old: ReadonlyArray<ByteString>,
  cursor: number
): Result.Result<never, PatchError> => {
  const above = findRuns(target.exact.all, target.exact.of(old), 0, 1)[0]
  const first = old.find((line) => withoutBlanks(line) !== "") ?? ""
  const alike = findRuns(target.trimmed().all, target.trimmed().of([withoutBlanks(first)]), 0, 1)[0]
  const hint = chunk.endOfFile
    ? "they are not the last lines of the file, as *** End of File says"
    : above !== undefined && above < cursor
      ? `they are at line ${above + 1}, above the chunk before: put the chunks in the file's order`
      : above !== undefined
        ? `they are at line ${above + 1}, not below the @@ line`
        : alike === undefined
          ? "read the file again"
          : `line ${alike + 1} of the file begins like them, but blanks or what follows differ`
  return refuse(
    "no_match",
    `the lines from line ${chunk.at} of the patch on, beginning ${quoteLine(first)}, are not in ${quotePath(path)}: ${hint}`,
    path
  )
}

const ambiguous = (
  path: string,
  chunk: CodexChunk,
  places: ReadonlyArray<number>
): Result.Result<never, PatchError> => {
  const where = places.slice(0, 10).map((at) => at + 1)
  const more = places.length > 10 ? " and more" : ""
  return refuse(
    "ambiguous",
    `the chunk on line ${chunk.at} of the patch fits ${places.length} places in ${quotePath(path)}, at lines ` +
      `${where.join(", ")}${more}: add context lines, or "@@ " with a line that is only above the right one`,
    path
  )
}

/** A chunk that only adds goes below its anchor, or to the end of the file when it has none. */
const locateAddition = (
  path: string,
  target: Target,
  chunk: CodexChunk,
  starts: Starts,
  length: number,
  cursor: number
): Result.Result<Place, PatchError> => {
  const end = target.lines.length
  if (chunk.anchors.length === 0 || chunk.endOfFile)
    return Result.succeed({ start: end, length, next: cursor })
  if (!starts.anchored) return noAnchor(path, chunk)
  const start = starts.at[0] ?? end
  return starts.at.length > 1
    ? ambiguous(path, chunk, starts.at)
    : Result.succeed({ start, length, next: start })
}

const noAnchor = (path: string, chunk: CodexChunk): Result.Result<never, PatchError> => {
  const anchors = chunk.anchors.map(quoteLine).join(" and below it ")
  const message = `line ${chunk.at} of the patch: ${anchors} is no whole line of ${quotePath(path)} below the chunk before`
  return refuse("no_match", message, path)
}

export const locateChunk = (
  path: string,
  target: Target,
  chunk: CodexChunk,
  cursor: number
): Result.Result<Place, PatchError> => {
  const starts = startsOf(target, chunk.anchors, cursor)
  if (starts.at.length === 0) return noAnchor(path, chunk)
  const oldOf = (length: number): ReadonlyArray<ByteString> =>
    chunk.lines
      .slice(0, length)
      .flatMap((line) => (line.kind === "add" ? [] : [withoutBom(target, line.text)]))
  const whole = chunk.lines.length
  const short = whole - chunk.blankTail
  if (oldOf(short).length === 0) return locateAddition(path, target, chunk, starts, short, cursor)
  for (const length of short < whole ? [whole, short] : [whole]) {
    const old = oldOf(length)
    for (const strict of [true, false]) {
      const numbers = strict ? target.exact : target.trailing()
      const lines = strict ? old : old.map(withoutTrailingBlanks)
      const places = candidates(target, chunk, lines, starts, cursor, numbers)
      const start = places[0]
      if (places.length > 1) return ambiguous(path, chunk, places)
      if (start !== undefined) return Result.succeed({ start, length, next: start + old.length })
    }
  }
  return missing(path, target, chunk, oldOf(short), cursor)
}
