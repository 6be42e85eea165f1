/**
 * Lines that keep their endings, and the search for runs of lines in linear time.
 */
import type { ByteString } from "./ByteString.ts"

/** Splits after every "\n". Joined again the pieces are the text; only the last may lack an ending. */
export const splitLines = (text: ByteString): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let start = 0
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
    lines.push(text.slice(start, end + 1))
    start = end + 1
  }
  if (start < text.length) lines.push(text.slice(start))
  return lines
}

/** As `splitLines`, where a lone "\r" ends a line too. */
export const splitAnyLines = (text: ByteString): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 10 || (unit === 13 && text.charCodeAt(at + 1) !== 10)) {
      lines.push(text.slice(start, at + 1))
      start = at + 1
    }
  }
  if (start < text.length) lines.push(text.slice(start))
  return lines
}

/** The ending of a line: "\r\n", "\n", a lone "\r", or nothing. */
export const endingOf = (line: string): string => {
  if (line.endsWith("\r\n")) return "\r\n"
  if (line.endsWith("\n")) return "\n"
  return line.endsWith("\r") ? "\r" : ""
}

export const bodyOf = (line: string): string => line.slice(0, line.length - endingOf(line).length)

/** Without blanks at the end. Not `trimEnd`: in bytes, the last one of "à" looks like a no-break space. */
export const withoutTrailingBlanks = (text: ByteString): string => {
  let end = text.length
  while (end > 0 && isBlank(text.charCodeAt(end - 1))) end--
  return end === text.length ? text : text.slice(0, end)
}

export const withoutBlanks = (text: ByteString): string => {
  const cut = withoutTrailingBlanks(text)
  let start = 0
  while (start < cut.length && isBlank(cut.charCodeAt(start))) start++
  return cut.slice(start)
}

const isBlank = (unit: number): boolean => unit === 32 || (unit >= 9 && unit <= 13)

/** Gives equal lines equal numbers, so that comparing two lines costs the same however long they are. */
export interface LineNumbers {
  /** The numbers of the lines that were given at the start. */
  readonly all: Int32Array
  /** The numbers of other lines: -1 for one that does not occur. */
  readonly of: (lines: ReadonlyArray<string>) => Int32Array
}

export const numberLines = (lines: ReadonlyArray<string>): LineNumbers => {
  const known = new Map<string, number>()
  const all = new Int32Array(lines.length)
  lines.forEach((line, index) => {
    const number = known.get(line) ?? known.size
    if (number === known.size) known.set(line, number)
    all[index] = number
  })
  return { all, of: (others) => Int32Array.from(others, (line) => known.get(line) ?? -1) }
}

/** Whether the run stands at exactly this place. */
export const matchesAt = (text: ArrayLike<number>, run: ArrayLike<number>, at: number): boolean => {
  if (at < 0 || at + run.length > text.length) return false
  for (let index = 0; index < run.length; index++) if (text[at + index] !== run[index]) return false
  return true
}

/**
 * Every place from `from` on where the run begins, overlapping ones too, at most `limit` (Knuth, Morris and Pratt: a
 * file of equal lines must not cost lines times lines). An empty run stands nowhere.
 */
export const findRuns = (
  text: ArrayLike<number>,
  run: ArrayLike<number>,
  from: number,
  limit: number
): ReadonlyArray<number> => {
  const found: Array<number> = []
  const length = run.length
  if (length === 0 || text.length - from < length) return found
  const border = new Int32Array(length)
  for (let index = 1, known = 0; index < length; index++) {
    while (known > 0 && run[index] !== run[known]) known = border[known - 1] ?? 0
    if (run[index] === run[known]) known++
    border[index] = known
  }
  for (let at = from, matched = 0; at < text.length && found.length < limit; at++) {
    while (matched > 0 && text[at] !== run[matched]) matched = border[matched - 1] ?? 0
    if (text[at] === run[matched]) matched++
    if (matched === length) {
      found.push(at - length + 1)
      matched = border[matched - 1] ?? 0
    }
  }
  return found
}
