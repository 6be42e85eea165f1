/**
 * Bytes as a string: every character is one byte (0 to 255). Files are edited in this form, so that a byte nobody named
 * cannot change, whatever the encoding, while searching and slicing stay as fast as on strings.
 */
import { Result } from "effect"

export type ByteString = string

const CHUNK = 8192
const beyondAscii = /[^\u0000-\u007f]/

const isAscii = (bytes: Uint8Array): boolean => {
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] ?? 0) > 127) return false
  return true
}

export const fromBytes = (bytes: Uint8Array): ByteString => {
  // Most files; decoding them as UTF-8 is the same and many times faster.
  if (isAscii(bytes)) return new TextDecoder().decode(bytes)
  const parts: Array<string> = []
  for (let at = 0; at < bytes.length; at += CHUNK) {
    parts.push(String.fromCharCode(...bytes.subarray(at, at + CHUNK)))
  }
  return parts.join("")
}

export const toBytes = (text: ByteString): Uint8Array => {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}

/** The UTF-8 bytes of a text. Lone surrogates have none: check `isWellFormed` before. */
export const encode = (text: string): ByteString =>
  beyondAscii.test(text) ? fromBytes(new TextEncoder().encode(text)) : text

/** The text of UTF-8 bytes with its byte order mark kept, or undefined when they are not valid UTF-8. */
export const decodeBytes = (bytes: Uint8Array): string | undefined =>
  Result.getOrUndefined(
    Result.try(() => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))
  )

export const decode = (text: ByteString): string | undefined =>
  beyondAscii.test(text) ? decodeBytes(toBytes(text)) : text

/** For messages and names that only have to be shown: what is not UTF-8 becomes U+FFFD. */
export const decodeLossy = (text: ByteString): string =>
  beyondAscii.test(text) ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(toBytes(text)) : text

/** The byte order mark of UTF-8. */
export const BOM: ByteString = "\u00ef\u00bb\u00bf"
