/**
 * Text of any length and any origin, made fit for a terminal.
 */

import { printable } from "../../domain/Text.ts"

export { printable }

/** One line of at most `width` characters. */
export const clip = (text: string, width: number): string => {
  const line = printable(text.replaceAll(/\s+/g, " ")).trim()
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`
}
