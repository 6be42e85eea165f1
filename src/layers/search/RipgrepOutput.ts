/**
 * Reads ripgrep's `path NUL line : text LF` stream, whatever is in the path, and forgets the matches of a file that
 * turns out to be binary.
 */
import { decodeBytes } from "../../domain/patch/ByteString.ts"
import type { SearchMatch } from "../../services/Search.ts"
import { shownLine } from "./Query.ts"

const NUL = 0
const COLON = 0x3a
const LF = 0x0a

const textDecoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** Written after a file's matches when a NUL follows them. Without a NUL of its own it glues to the next path. */
const binaryNotice =
  /^.*: WARNING: stopped searching binary file after match \(found "\\0" byte around offset \d+\)\n/s

export interface RipgrepOutput {
  /** Takes the next bytes. */
  readonly push: (chunk: Uint8Array) => void
  /** The output is complete. */
  readonly end: () => void
  readonly matches: ReadonlyArray<SearchMatch>
}

const concat = (left: Uint8Array, right: Uint8Array): Uint8Array => {
  if (left.length === 0) return right
  const whole = new Uint8Array(left.length + right.length)
  whole.set(left)
  whole.set(right, left.length)
  return whole
}

/** Collects matches of files for which `counts` holds. */
export const makeRipgrepOutput = (counts: (path: string) => boolean): RipgrepOutput => {
  const matches: Array<SearchMatch> = []
  let pending: Uint8Array = new Uint8Array()
  let raw = ""

  const dropCurrentFile = (): void => {
    const path = raw.replace(/^\.\//, "")
    while (matches.at(-1)?.path === path) matches.pop()
  }

  const withoutNotice = (text: string): string => {
    if (!text.startsWith(`${raw}: WARNING: `)) return text
    const notice = binaryNotice.exec(text)
    if (notice === null) return text
    dropCurrentFile()
    return text.slice(notice[0].length)
  }

  const take = (path: string | undefined, line: number, text: Uint8Array): void => {
    // A name that is not UTF-8: no path of ours can say it.
    if (path === undefined) return
    raw = withoutNotice(path)
    const relative = raw.replace(/^\.\//, "")
    if (counts(relative)) matches.push({ path: relative, line, text: shownLine(textDecoder.decode(text)) })
  }

  return {
    matches,
    push: (chunk) => {
      const buffer = concat(pending, chunk)
      let start = 0
      for (;;) {
        const nul = buffer.indexOf(NUL, start)
        const colon = nul < 0 ? -1 : buffer.indexOf(COLON, nul)
        const end = colon < 0 ? -1 : buffer.indexOf(LF, colon)
        if (end < 0) break
        const line = Number.parseInt(textDecoder.decode(buffer.subarray(nul + 1, colon)), 10)
        take(decodeBytes(buffer.subarray(start, nul)), line, buffer.subarray(colon + 1, end))
        start = end + 1
      }
      pending = buffer.slice(start)
    },
    end: () => {
      withoutNotice(textDecoder.decode(pending))
    }
  }
}
