/**
 * Finding a text in a text: every place, in time that no input can make quadratic, and a hint when there is none.
 */
import { quoteText } from "./Quote.ts"
import { findRuns } from "./Lines.ts"

/** Up to here the engine's own search is at worst a small factor from linear, and on real texts far faster. */
const SHORT = 256

const unitsOf = (text: string): Uint16Array => {
  const units = new Uint16Array(text.length)
  for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at)
  return units
}

/** Every place where the text begins, overlapping ones too, at most `limit`. */
export const findTexts = (text: string, wanted: string, limit: number): ReadonlyArray<number> => {
  if (wanted.length > SHORT) return findRuns(unitsOf(text), unitsOf(wanted), 0, limit)
  const found: Array<number> = []
  for (let at = text.indexOf(wanted); at >= 0 && found.length < limit; at = text.indexOf(wanted, at + 1)) {
    found.push(at)
  }
  return found
}

/** Every place where the text begins, from the left, none overlapping the one before. */
export const separateTexts = (text: string, wanted: string): ReadonlyArray<number> => {
  const found: Array<number> = []
  let free = 0
  for (const at of findTexts(text, wanted, Infinity)) {
    if (at < free) continue
    found.push(at)
    free = at + wanted.length
  }
  return found
}

/** What to tell about a text that does not occur: the place that looks most like it, and where that differs. */
export const nearMiss = (text: string, wanted: string): string => {
  const wantedLines = wanted.split("\n")
  const skipped = wantedLines.findIndex((line) => line.trim() !== "")
  if (skipped < 0) return ": it is blank"
  const sought = wantedLines.slice(skipped)
  if (sought.at(-1) === "") sought.pop()
  const first = (sought[0] ?? "").trim()
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  let best = { at: -1, run: 0 }
  let tried = 0
  for (let at = 0; at < lines.length && tried < 100; at++) {
    if (lines[at]?.trim() !== first) continue
    tried++
    let run = 1
    while (run < sought.length && lines[at + run]?.trim() === sought[run]?.trim()) run++
    if (run > best.run) best = { at, run }
    if (run === sought.length) break
  }
  if (best.at < 0) {
    const inside = lines.findIndex((line) => first.length > 3 && line.includes(first))
    return inside < 0
      ? ": read the file again and copy the text exactly"
      : `: its first line is part of line ${inside + 1}, what follows differs`
  }
  if (best.run === sought.length) {
    return `: line ${best.at + 1} differs from it only in blanks at the start or end of lines. Copy them exactly`
  }
  const there = lines[best.at + best.run]
  const found =
    there === undefined ? "the file ends" : `line ${best.at + best.run + 1} is ${quoteText(there)}`
  return `: it begins like line ${best.at + 1}, but ${found} where it says ${quoteText(sought[best.run] ?? "")}`
}
