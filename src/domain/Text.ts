/**
 * Text with an upper bound. Bounds are in UTF-8 bytes, cuts fall between characters, and what is missing is said.
 */

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

export const byteLength = (text: string): number => encoder.encode(text).length

/** A byte that continues a character: no cut may fall before it. */
const continues = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

const headEnd = (bytes: Uint8Array, limit: number): number => {
  let end = Math.max(0, Math.min(limit, bytes.length))
  while (end > 0 && continues(bytes[end])) end--
  return end
}

const tailStart = (bytes: Uint8Array, limit: number): number => {
  let start = bytes.length - Math.max(0, Math.min(limit, bytes.length))
  while (start < bytes.length && continues(bytes[start])) start++
  return start
}

/** Whether a text has at most so many bytes. Cheap answers first: a UTF-16 unit takes one to three bytes. */
export const fits = (text: string, maxBytes: number): boolean =>
  text.length * 3 <= maxBytes || (text.length <= maxBytes && byteLength(text) <= maxBytes)

/** The start of a text, at most `maxBytes` long. */
export const takeHead = (text: string, maxBytes: number): string => {
  if (fits(text, maxBytes)) return text
  const bytes = encoder.encode(text)
  return decoder.decode(bytes.subarray(0, headEnd(bytes, maxBytes)))
}

const marker = (omitted: number): string => `\n[${omitted} bytes omitted]\n`

/**
 * The text itself when it has at most `maxBytes`. Otherwise its head and its tail around a marker that states how many
 * bytes are missing. Never longer than `maxBytes`: a marker that does not fit is cut as well.
 */
export const boundText = (text: string, maxBytes: number): string => {
  if (fits(text, maxBytes)) return text
  const bytes = encoder.encode(text)
  const room = maxBytes - byteLength(marker(bytes.length))
  if (room <= 0) return takeHead(marker(bytes.length), maxBytes)
  const end = headEnd(bytes, Math.ceil(room / 2))
  const start = tailStart(bytes, room - end)
  return decoder.decode(bytes.subarray(0, end)) + marker(start - end) + decoder.decode(bytes.subarray(start))
}

/** Control and format characters, and what ends a line: a terminal obeys them in place of showing them. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** As JSON may write it. */
const escapeOf = (character: string): string => {
  const short = JSON.stringify(character).slice(1, -1)
  if (short !== character) return short
  return Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
  ).join("")
}

/** A text of any origin as one line: what would steer a terminal is written out. */
export const oneLine = (text: string): string => text.replaceAll(unseen, escapeOf)

/** A name or a path in a message: as it is, or quoted where something of it would not be seen. */
export const shownName = (name: string): string =>
  name.search(unseen) === -1 ? name : oneLine(JSON.stringify(name))

/** What a terminal obeys in place of showing it, and what makes it show text in another order than it is in. */
const controls = /\u001b\[[0-9;?]*[ -/]*[@-~]|[^\P{Cc}\n\t]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** The text without anything that could steer the terminal: models and repositories write it. */
export const printable = (text: string): string => text.replaceAll(controls, "")
