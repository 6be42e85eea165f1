/**
 * The bytes of an answer without the key that was sent, wherever a server repeats it.
 */
import { isRecord, parse } from "../../domain/Json.ts"
import { mask, minKeyChars } from "../../domain/model/Redact.ts"

interface Edit {
  readonly from: number
  readonly to: number
  readonly by: string
}

/** A text and where its pieces end. */
interface Cut {
  readonly text: string
  readonly ends: ReadonlyArray<number>
}

/** Deeper JSON is dropped from an event that must be changed: nothing of it is read either. */
const maxDepth = 100

/** The edited text. A piece that ended within an edit ends behind it. `edits` are in order and apart. */
const edited = ({ ends, text }: Cut, edits: ReadonlyArray<Edit>): Cut => {
  const parts: Array<string> = []
  const moved: Array<number> = []
  let at = 0
  let length = 0
  let next = 0
  for (const { by, from, to } of [...edits, { from: text.length, to: text.length, by: "" }]) {
    for (; next < ends.length && (ends[next] ?? 0) <= from; next++)
      moved.push(length + (ends[next] ?? 0) - at)
    parts.push(text.slice(at, from), by)
    length += from - at + by.length
    at = to
    for (; next < ends.length && (ends[next] ?? 0) <= to; next++) moved.push(length)
  }
  return { text: parts.join(""), ends: moved }
}

const endsOf = (lengths: ReadonlyArray<number>): ReadonlyArray<number> => {
  let end = 0
  return lengths.map((length) => (end += length))
}

const partsOf = ({ ends, text }: Cut): ReadonlyArray<string> =>
  ends.map((end, at) => text.slice(ends[at - 1] ?? 0, end))

/** The key as it is and as JSON may spell it. */
const spellings = (key: string): RegExp => {
  const chars = Array.from(key, (char) => {
    const code = char.charCodeAt(0).toString(16).padStart(2, "0")
    const escaped = '"\\/'.includes(char) ? `|\\\\\\x${code}` : ""
    return `(?:\\x${code}${escaped}|\\\\u00(?:${code}|${code.toUpperCase()}))`
  })
  return new RegExp(chars.join(""), "g")
}

/** The key wherever the text holds it. */
const whole = (text: string, key: RegExp): ReadonlyArray<Edit> =>
  Array.from(text.matchAll(key), ({ 0: found, index }) => ({
    from: index,
    to: index + found.length,
    by: mask
  }))

/** The beginning of the key where the text breaks off in the middle of it. */
const begun = (text: string, key: string): ReadonlyArray<Edit> => {
  for (let length = key.length - 1; length >= minKeyChars; length--)
    if (text.endsWith(key.slice(0, length)))
      return [{ from: text.length - length, to: text.length, by: mask }]
  return []
}

/** Looking for every spelling takes longer than to see that there can be none. */
const mayHold = (text: string, key: string): boolean =>
  /["\\/]/.test(key) || text.includes(key) || text.includes("\\u00")

const hiding = (cut: Cut, key: string, spelled: RegExp, open: boolean): Cut => {
  const after = mayHold(cut.text, key) ? edited(cut, whole(cut.text, spelled)) : cut
  const rest = open ? begun(after.text, key) : []
  return rest.length === 0 ? after : edited(after, rest)
}

/** The value with each of its strings replaced; `path` says where in the value a string is. */
const mapTexts = (
  value: unknown,
  replace: (path: string, text: string) => string,
  path = "",
  depth = 0
): unknown => {
  if (typeof value === "string") return replace(path, value)
  if (depth > maxDepth) return null
  const inner = (each: unknown, name: string | number) =>
    mapTexts(each, replace, `${path}/${name}`, depth + 1)
  if (Array.isArray(value)) return value.map(inner)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inner(each, name)]))
}

const utf8 = (latin1: string) => Buffer.from(latin1, "latin1").toString("utf8")
const latin1 = (text: string) => Buffer.from(text, "utf8").toString("latin1")

/** A key that is spread over several events: what one place of them says is read as one text. */
const spread = (cut: Cut, key: string, spelled: RegExp, open: boolean): Cut => {
  const events = Array.from(cut.text.matchAll(/^data:([^\r\n]*)/gm), ({ 0: line, 1: data = "", index }) => ({
    from: index + line.length - data.length,
    to: index + line.length,
    value: parse(utf8(data))
  }))
  const said = new Map<string, Array<string>>()
  for (const { value } of events)
    mapTexts(value, (path, text) => {
      const texts = said.get(path)
      if (texts === undefined) said.set(path, [text])
      else texts.push(text)
      return text
    })
  const hidden = new Map(
    Array.from(said, ([path, texts]) => {
      const joined = { text: texts.join(""), ends: endsOf(texts.map((text) => text.length)) }
      return [path, partsOf(hiding(joined, key, spelled, open)).values()] as const
    })
  )
  const edits = events.flatMap(({ from, to, value }) => {
    let changed = false
    const after = mapTexts(value, (path, text) => {
      const next = hidden.get(path)?.next().value ?? text
      changed ||= next !== text
      return next
    })
    return changed ? [{ from, to, by: ` ${latin1(JSON.stringify(after))}` }] : []
  })
  return edited(cut, edits)
}

/**
 * The body of the pieces and their lengths, without the key: it is masked as it stands and as JSON spells it, across
 * pieces, and, when `heard` says that the events together held it, across events too. `open`: the body broke off.
 */
export const unkeyed = (
  pieces: ReadonlyArray<Uint8Array>,
  key: string,
  { heard, open }: { readonly heard: boolean; readonly open: boolean }
): { readonly body: Uint8Array; readonly pieces: ReadonlyArray<number> } => {
  const body = Buffer.concat(pieces)
  const lengths = pieces.map((piece) => piece.length)
  if (key.length < minKeyChars) return { body, pieces: lengths }
  const before = { text: body.toString("latin1"), ends: endsOf(lengths) }
  const spelled = spellings(key)
  const after = hiding(before, key, spelled, true)
  const { ends, text } = heard ? spread(after, key, spelled, open) : after
  if (text === before.text) return { body, pieces: lengths }
  return {
    body: Buffer.from(text, "latin1"),
    pieces: ends.map((end, at) => end - (ends[at - 1] ?? 0)).filter((length) => length > 0)
  }
}

/** JSON, or what should have been it, without the key, masked in the same places as where it stands in a body. */
export const unkeyedJson = (json: string, key: string): string =>
  key.length >= minKeyChars && mayHold(json, key) ? json.replaceAll(spellings(key), mask) : json

/** Whether anything that a value says holds the key, or the beginning of it. */
export const holdsKey = (value: unknown, key: string): boolean => {
  if (key.length < minKeyChars) return false
  try {
    return JSON.stringify(value).includes(JSON.stringify(key.slice(0, minKeyChars)).slice(1, -1))
  } catch {
    // Too deep to be read as text: it is looked at piece by piece.
    return true
  }
}
