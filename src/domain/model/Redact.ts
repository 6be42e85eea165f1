/**
 * Text of a server, made fit for a message: one line, bounded, without secrets, markup or terminal control.
 */
const maxMessageChars = 500

/** Stands for what is not repeated. */
export const mask = "[redacted]"

const secretShapes: ReadonlyArray<RegExp> = [
  /\bBearer\s+[^\s"',;]{4,}/gi,
  /\b(?:sk|rk|pk|gsk|xai|nvapi|hf|ghp|key)[-_][A-Za-z0-9*_-]{6,}/g,
  /\bAIza[\w-]{10,}/g,
  /\b(?:authorization|(?:x-)?api[-_ ]?key)["']?\s*[:=]\s*["']?[^\s"',;}]+/gi
]

/** The text without the key itself and without anything shaped like a credential. */
export const redact = (text: string, secret: string | null): string => {
  const known = secret === null || secret === "" ? text : text.replaceAll(secret, mask)
  return secretShapes.reduce((all, shape) => all.replace(shape, mask), known)
}

/** A shorter key could be any word of a text. */
export const minKeyChars = 8

/** The text without the key where it stands whole, and otherwise as it is. */
export const withoutKey = (text: string, key: string): string =>
  key.length < minKeyChars ? text : text.replaceAll(key, mask)

/** One printable line of at most `max` characters. */
export const oneLine = (text: string, max = maxMessageChars): string => {
  const line = text
    // oxlint-disable-next-line no-control-regex -- terminal control is what is taken out
    .replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "")
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim()
  if (line.length <= max) return line
  // The last character goes whole: the cut may have split its pair.
  return `${Array.from(line.slice(0, max)).slice(0, -1).join("")}…`
}

export const looksLikeHtml = (body: string): boolean =>
  /^\s*(?:<!doctype html|<html|<\?xml|<head|<body)/i.test(body)

/** What a web page says in its title, or in its first heading. */
export const htmlTitle = (body: string): string => {
  const found = /<(title|h1)\b[^>]*>([^<]*)</i.exec(body)
  return found?.[2]?.trim() ?? ""
}
