/**
 * File names in the headers of unified diffs: git's quoting, its a/ and b/ prefixes, time stamps after the name.
 */
import type { ByteString } from "./ByteString.ts"

const escapes: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  '"': '"',
  "\\": "\\"
}

/** The name of a C-quoted string at the start of the text, and what follows it; undefined when it is not one. */
const unquote = (text: ByteString): { readonly name: ByteString; readonly rest: ByteString } | undefined => {
  let name = ""
  for (let at = 1; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === '"') return { name, rest: text.slice(at + 1) }
    if (character !== "\\") {
      name += character
      continue
    }
    const octal = text.slice(at + 1, at + 4)
    const escape = escapes[text.charAt(at + 1)]
    if (escape !== undefined) {
      name += escape
      at++
    } else if (/^[0-3][0-7]{2}$/.test(octal)) {
      name += String.fromCharCode(Number.parseInt(octal, 8))
      at += 3
    } else {
      return undefined
    }
  }
  return undefined
}

/** The name on a "rename from" line and its like: quoted or not, without prefix. */
export const unmarkedName = (text: ByteString): ByteString | undefined => {
  if (!text.startsWith('"')) return text === "" ? undefined : text
  const quoted = unquote(text)
  return quoted === undefined || quoted.rest !== "" ? undefined : quoted.name
}

export interface MarkedName {
  readonly name: ByteString
  /** What follows the name after a tab or, in plain diffs, after a blank: a time stamp, or nothing. */
  readonly stamp: string
}

const stampAfterBlank =
  /[ \t](\d{2,4}-\d{1,2}-\d{1,2} \d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?: [+-]\d{2}:?\d{2})?)$/

/** The name on a "---" or "+++" line. Git ends a name with blanks by a tab; `plain` diffs put a time stamp there. */
export const markedName = (text: ByteString, plain: boolean): MarkedName | undefined => {
  if (text.startsWith('"')) {
    const quoted = unquote(text)
    return quoted === undefined ? undefined : { name: quoted.name, stamp: quoted.rest.trim() }
  }
  const tab = text.indexOf("\t")
  if (tab >= 0) return named(text.slice(0, tab), text.slice(tab + 1).trim())
  const stamp = plain ? stampAfterBlank.exec(text.slice(-48)) : null
  return stamp === null
    ? named(text, "")
    : named(text.slice(0, text.length - stamp[0].length), stamp[1] ?? "")
}

const named = (name: ByteString, stamp: string): MarkedName | undefined =>
  name === "" ? undefined : { name, stamp }

/**
 * Whether a time stamp is 1 January 1970 in UTC, by which tools other than git say that the file is not there. Only
 * whole minutes count, as for git.
 */
export const isEpoch = (stamp: string): boolean => {
  const parts = /^(1969-12-31|1970-01-01) (\d{2}):(\d{2}):00(?:\.0{1,9})? ([+-])(\d{2}):?(\d{2})$/.exec(stamp)
  if (parts === null) return false
  const minutes = (hours: string | undefined, rest: string | undefined) => Number(hours) * 60 + Number(rest)
  const zone = minutes(parts[5], parts[6]) * (parts[4] === "-" ? -1 : 1)
  return minutes(parts[2], parts[3]) - zone === (parts[1] === "1969-12-31" ? 24 * 60 : 0)
}

/**
 * The prefixes that git puts before names: its default, those of `diff.mnemonicPrefix`, and the same reversed. Other
 * first directories belong to the name: people and models write diffs without prefixes too, and dropping a real
 * directory, as `git apply` does, would edit another file.
 */
const prefixes = new Set([
  "a b",
  "b a",
  "a a",
  "b b",
  "i w",
  "w i",
  "c i",
  "i c",
  "c w",
  "w c",
  "o w",
  "w o",
  "1 2",
  "2 1"
])

const prefixOf = (name: ByteString): string => name.slice(0, Math.max(0, name.indexOf("/")))

export const havePrefixes = (oldName: ByteString, newName: ByteString): boolean =>
  prefixes.has(`${prefixOf(oldName)} ${prefixOf(newName)}`)

/** Of a single name, the other being /dev/null: only the default prefixes are beyond doubt. */
export const hasDefaultPrefix = (name: ByteString): boolean =>
  prefixOf(name) === "a" || prefixOf(name) === "b"

export const dropPrefix = (name: ByteString): ByteString => name.slice(name.indexOf("/") + 1)

export const DEV_NULL = "/dev/null"

export interface NamePair {
  readonly oldName: ByteString
  readonly newName: ByteString
}

/**
 * Every way to read what follows "diff --git " as two names. Unquoted names may contain blanks, so there may be several;
 * the other header lines decide.
 */
export const gitNamePairs = (text: ByteString): ReadonlyArray<NamePair> => {
  if (text.startsWith('"')) {
    const first = unquote(text)
    const second =
      first !== undefined && first.rest.startsWith(" ") ? unmarkedName(first.rest.slice(1)) : undefined
    return first === undefined || second === undefined ? [] : [{ oldName: first.name, newName: second }]
  }
  const pairs: Array<NamePair> = []
  for (let blank = text.indexOf(" "); blank >= 0; blank = text.indexOf(" ", blank + 1)) {
    const newName = unmarkedName(text.slice(blank + 1))
    if (blank > 0 && newName !== undefined) pairs.push({ oldName: text.slice(0, blank), newName })
  }
  return pairs
}
