/**
 * Text as messages quote it: one line, escaped, bounded.
 */
import { type ByteString, decodeLossy } from "./ByteString.ts"

export const quoteText = (text: string): string =>
  JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text)

/** A line of a file or a patch, without the "\n" that ends it. */
export const quoteLine = (line: ByteString): string => {
  const start = line.slice(0, 400)
  return quoteText(decodeLossy(start.endsWith("\n") ? start.slice(0, -1) : start))
}
