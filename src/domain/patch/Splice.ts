/**
 * Putting replaced runs of lines back between the lines that nobody named.
 */
import type { ByteString } from "./ByteString.ts"

/** The lines from `start` on, `count` of them, become `lines`. */
export interface Splice {
  readonly start: number
  readonly count: number
  readonly lines: ReadonlyArray<ByteString>
}

/**
 * The text with the splices done, which must not overlap; those at one place keep their order. `join` gets a line
 * without "\n" at its end that another follows, and gives what stands there instead, or undefined to refuse.
 */
export const spliceLines = (
  lines: ReadonlyArray<ByteString>,
  splices: ReadonlyArray<Splice>,
  join: (line: ByteString) => ByteString | undefined
): ByteString | undefined => {
  const pieces: Array<ByteString> = []
  const put = (line: ByteString): boolean => {
    const last = pieces.at(-1)
    if (last !== undefined && !last.endsWith("\n")) {
      const joined = join(last)
      if (joined === undefined) return false
      pieces[pieces.length - 1] = joined
    }
    pieces.push(line)
    return true
  }
  let at = 0
  const sorted = splices.map((splice, order) => ({ splice, order }))
  sorted.sort((left, right) => left.splice.start - right.splice.start || left.order - right.order)
  for (const { splice } of sorted) {
    for (; at < splice.start; at++) if (!put(lines[at] ?? "")) return undefined
    for (const line of splice.lines) if (!put(line)) return undefined
    at += splice.count
  }
  for (; at < lines.length; at++) if (!put(lines[at] ?? "")) return undefined
  return pieces.join("")
}
