/**
 * Text of any length and any origin, made fit for a terminal.
 */

/** What a terminal obeys in place of showing it, and what makes it show text in another order than it is in. */
const controls = /\u001b\[[0-9;?]*[ -/]*[@-~]|[^\P{Cc}\n\t]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** The text without anything that could steer the terminal: models and repositories write it. */
export const printable = (text: string): string => text.replaceAll(controls, "")

/** One line of at most `width` characters. */
export const clip = (text: string, width: number): string => {
  const line = printable(text.replaceAll(/\s+/g, " ")).trim()
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`
}
