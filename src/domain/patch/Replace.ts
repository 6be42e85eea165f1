/**
 * Exact replacement of a text in a file, as the model asks for it: it sees lines and never their endings, so endings,
 * byte order mark and everything outside the named text stay as the file has them.
 */
import { Result } from "effect"
import { quotePath } from "../WorkspacePath.ts"
import { decodeBytes } from "./ByteString.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { findTexts, nearMiss, separateTexts } from "./TextSearch.ts"

export interface ReplaceRequest {
  /** For messages only. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly oldText: string
  readonly newText: string
  /** Every occurrence instead of exactly one. */
  readonly all: boolean
}

/** A file as the model sees it, every line ending a "\n", and the way back to the real text. */
interface View {
  readonly text: string
  /** Of an offset in the view, the offset in the file. */
  readonly origin: (offset: number) => number
  readonly normalise: (argument: string) => string
}

const toLf = (text: string): string => text.replaceAll("\r\n", "\n")

const viewOf = (text: string): View => {
  if (!text.includes("\n")) {
    // Without any "\n", "\r" is what ends the lines (old Macintosh files), or there are none.
    const normalise = (argument: string): string => toLf(argument).replaceAll("\r", "\n")
    return { text: text.replaceAll("\r", "\n"), origin: (offset) => offset, normalise }
  }
  if (!text.includes("\r\n")) return { text, origin: (offset) => offset, normalise: toLf }
  const dropped: Array<number> = []
  for (let at = text.indexOf("\r\n"); at >= 0; at = text.indexOf("\r\n", at + 2))
    dropped.push(at - dropped.length)
  const origin = (offset: number): number => {
    let low = 0
    let high = dropped.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((dropped[middle] ?? Infinity) < offset) low = middle + 1
      else high = middle
    }
    return offset + low
  }
  return { text: toLf(text), origin, normalise: toLf }
}

/** The ending that lines put in at a place take: that of the lines they replace, else of the line they stand in. */
const endingAround = (text: string, start: number, end: number): string => {
  if (!text.includes("\n")) return text.includes("\r") ? "\r" : "\n"
  const next = text.indexOf("\n", start)
  const at = next >= 0 ? next : text.lastIndexOf("\n", end)
  return text[at - 1] === "\r" ? "\r\n" : "\n"
}

/** How many characters of whole lines the two texts share at their start, and how many after that at their end. */
const sharedLines = (oldText: string, newText: string): readonly [number, number] => {
  const shorter = Math.min(oldText.length, newText.length)
  let head = 0
  for (let at = 0; at < shorter && oldText[at] === newText[at]; at++) if (oldText[at] === "\n") head = at + 1
  let tail = 0
  for (let back = 1; back <= shorter - head; back++) {
    if (oldText[oldText.length - back] !== newText[newText.length - back]) break
    const startsLine = (text: string): boolean =>
      text.length - back === head || text[text.length - back - 1] === "\n"
    if (startsLine(oldText) && startsLine(newText)) tail = back
  }
  return [head, tail]
}

const replaceSpans = (
  text: string,
  view: View,
  starts: ReadonlyArray<number>,
  oldText: string,
  newText: string
) => {
  const [head, tail] = sharedLines(oldText, newText)
  const middle = newText.slice(head, newText.length - tail)
  const pieces: Array<string> = []
  let done = 0
  for (const start of starts) {
    const from = view.origin(start + head)
    const to = view.origin(start + oldText.length - tail)
    const inserted = view.text === text ? middle : middle.replaceAll("\n", endingAround(text, from, to))
    pieces.push(text.slice(done, from), inserted)
    done = to
  }
  pieces.push(text.slice(done))
  return pieces.join("")
}

/** The arguments as they are, in a file without "\r" or with arguments that name their line endings themselves. */
const literally = (text: string): View => ({
  text,
  origin: (offset) => offset,
  normalise: (argument) => argument
})

const chooseView = (text: string, { all, oldText }: ReplaceRequest): View => {
  if (!text.includes("\r")) return oldText.includes("\r") ? viewOf(text) : literally(text)
  // A caller that spells out "\r\n" may tell apart what looks alike in a file of mixed endings.
  if (!all && oldText.includes("\r\n") && findTexts(text, oldText, 2).length === 1) {
    return findTexts(viewOf(text).text, toLf(oldText), 2).length === 1 ? viewOf(text) : literally(text)
  }
  return viewOf(text)
}

const checkArguments = ({ path, oldText, newText }: ReplaceRequest): Result.Result<void, PatchError> => {
  if (oldText === "") {
    return refuse(
      "empty",
      "the text to replace is empty: give a text of the file, or create a new file",
      path
    )
  }
  for (const argument of [oldText, newText]) {
    if (argument.includes("\0"))
      return refuse("binary", "a NUL character cannot be searched for or written", path)
    if (!argument.isWellFormed())
      return refuse("encoding", "the text contains half of a surrogate pair", path)
  }
  if (oldText === newText) return refuse("no_change", "the old text and the new text are the same", path)
  return Result.void
}

const textOf = ({ path, bytes }: ReplaceRequest): Result.Result<string, PatchError> => {
  if (bytes.includes(0)) return refuse("binary", `${quotePath(path)} is binary: it contains NUL bytes`, path)
  const text = decodeBytes(bytes)
  if (text === undefined) {
    return refuse("encoding", `${quotePath(path)} is not valid UTF-8: replacing text would damage it`, path)
  }
  return Result.succeed(text)
}

/**
 * The file's bytes with the text replaced. Fails when the text does not occur exactly once, or, with `all`, at all.
 * The texts are literal. Line endings in them stand for those of the place they go to; a lone "\r" is a character.
 */
export const replaceText = (request: ReplaceRequest): Result.Result<Uint8Array, PatchError> =>
  Result.gen(function* () {
    yield* checkArguments(request)
    const text = yield* textOf(request)
    const { path, all } = request
    const view = chooseView(text, request)
    const oldText = view.normalise(request.oldText)
    const newText = view.normalise(request.newText)
    const starts = all ? separateTexts(view.text, oldText) : findTexts(view.text, oldText, 2)
    if (starts.length === 0) {
      const hint = nearMiss(view.text, oldText)
      return yield* refuse(
        "no_match",
        `the text to replace does not occur in ${quotePath(path)}${hint}`,
        path
      )
    }
    if (!all && starts.length > 1) {
      const places = separateTexts(view.text, oldText)
      const count = Math.max(2, places.length)
      return yield* refuse(
        "ambiguous",
        `the text to replace occurs ${count} times in ${quotePath(path)}, at ${linesOf(view.text, places)}: ` +
          "add surrounding lines until it is unique, or replace all occurrences",
        path
      )
    }
    const after = replaceSpans(text, view, starts, oldText, newText)
    if (after === text) return yield* refuse("no_change", `${quotePath(path)} already reads like that`, path)
    return new TextEncoder().encode(after)
  })

const linesOf = (text: string, places: ReadonlyArray<number>): string => {
  const numbers: Array<number> = []
  let line = 1
  let at = 0
  for (const place of places.slice(0, 10)) {
    for (let next = text.indexOf("\n", at); next >= 0 && next < place; next = text.indexOf("\n", at)) {
      line++
      at = next + 1
    }
    if (numbers.at(-1) !== line) numbers.push(line)
  }
  return `line${numbers.length === 1 ? "" : "s"} ${numbers.join(", ")}${places.length > 10 ? " and more" : ""}`
}
