/**
 * Text of any length in a place of a fixed width.
 */

/** One line of at most `width` characters. */
export const clip = (text: string, width: number): string => {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`
}
