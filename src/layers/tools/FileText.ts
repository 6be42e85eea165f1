/**
 * A file's bytes as a model reads them: lines that end in "\n" whatever the file uses, without a byte order mark, which
 * is how replace_text and apply_patch look at the file too.
 */
import { byteLength, boundText } from "../../domain/Text.ts"

export interface ShownText {
  /** Without their endings. */
  readonly lines: ReadonlyArray<string>
  readonly finalNewline: boolean
  /** Whether the bytes are valid UTF-8; if not, some characters are U+FFFD. */
  readonly valid: boolean
}

/** The text of a file, or undefined when it is binary: it holds a NUL. */
export const shownText = (bytes: Uint8Array): ShownText | undefined => {
  if (bytes.includes(0)) return undefined
  const decoded = decode(bytes)
  const text = decoded.text.includes("\n")
    ? decoded.text.replaceAll("\r\n", "\n")
    : decoded.text.replaceAll("\r", "\n")
  const finalNewline = text.endsWith("\n")
  const lines = text === "" ? [] : (finalNewline ? text.slice(0, -1) : text).split("\n")
  return { lines, finalNewline, valid: decoded.valid }
}

const decode = (bytes: Uint8Array): { readonly text: string; readonly valid: boolean } => {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), valid: true }
  } catch {
    return { text: new TextDecoder("utf-8").decode(bytes), valid: false }
  }
}

/** Room for the notes below a page. */
const noteBytes = 400

const invalidNote = "[not valid UTF-8: some bytes are shown as U+FFFD, and replace_text cannot edit the file]"

/** As many of the wanted lines as fit, with a note when some are missing. Undefined when the file ends before `offset`. */
export const pageOf = (
  { finalNewline, lines, valid }: ShownText,
  range: { readonly offset?: number; readonly limit?: number },
  maxBytes: number
): string | undefined => {
  if (lines.length === 0) return "[the file is empty]"
  const first = (range.offset ?? 1) - 1
  if (first >= lines.length) return undefined
  const wanted = Math.min(lines.length, first + (range.limit ?? lines.length))
  let room = Math.max(0, maxBytes - noteBytes)
  let end = first
  for (; end < wanted; end++) {
    room -= byteLength(lines[end] ?? "") + 1
    if (room < 0) break
  }
  const cut = end === first
  const shown = cut
    ? boundText(lines[first] ?? "", Math.max(0, maxBytes - noteBytes))
    : lines.slice(first, end).join("\n")
  const last = cut ? first + 1 : end
  const notes = [
    ...(cut ? [`[line ${last} is too long to be shown whole]`] : []),
    ...(first > 0 || last < lines.length
      ? [
          `[lines ${first + 1}-${last} of ${lines.length}${last < lines.length ? `; go on with offset ${last + 1}` : ""}]`
        ]
      : []),
    ...(valid ? [] : [invalidNote])
  ]
  if (notes.length === 0) return finalNewline ? `${shown}\n` : shown
  return [shown, ...notes].join("\n")
}

const signatures: ReadonlyArray<readonly [string, string]> = [
  ["\x89PNG", "PNG image"],
  ["\xff\xd8\xff", "JPEG image"],
  ["GIF8", "GIF image"],
  ["%PDF", "PDF document"],
  ["PK\x03\x04", "ZIP archive"],
  ["\x1f\x8b", "gzip data"],
  ["\x7fELF", "ELF program"],
  ["\0asm", "WebAssembly module"],
  ["SQLite format 3", "SQLite database"],
  ["\xff\xfe", "UTF-16 text"],
  ["\xfe\xff", "UTF-16 text"]
]

/** The size of a binary file, and its kind where its first bytes tell. */
export const describeBinary = (bytes: Uint8Array): string => {
  const start = String.fromCharCode(...bytes.subarray(0, 16))
  const kind = signatures.find(([signature]) => start.startsWith(signature))?.[1]
  return `${kind === undefined ? "" : `${kind}, `}${bytes.length} bytes`
}
