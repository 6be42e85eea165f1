/**
 * When a server wants to be asked again, from whatever it said: headers, fields of the body, a sentence.
 */
import { count, isRecord, list, record, text, type JsonRecord } from "../Json.ts"

export type Headers = Readonly<Record<string, string>>

const unitMs: ReadonlyArray<readonly [RegExp, number]> = [
  [/^(?:ms|millis)/, 1],
  [/^s/, 1_000],
  [/^m/, 60_000],
  [/^h/, 3_600_000],
  [/^d/, 86_400_000]
]

const span = String.raw`\d+(?:\.\d+)?\s*(?:milliseconds?|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b`
const spanOf = new RegExp(String.raw`(\d+(?:\.\d+)?)\s*([a-z]+)`, "gi")
const glued = String.raw`(?:\d+(?:\.\d+)?(?:ms|[smhd]))+\b`
const durationText = String.raw`(?:${glued}|${span}(?:[\s,]*(?:and\s+)?${span})*)`
const wholeDuration = new RegExp(String.raw`^\s*${durationText}\s*$`, "i")
const announced = new RegExp(
  String.raw`\b(?:retry|try again|resets?|available|wait)\b[^.;\d]{0,40}?(${durationText})`,
  "i"
)

const sumDuration = (duration: string): number => {
  let total = 0
  for (const [, amount = "", unit = ""] of duration.matchAll(spanOf)) {
    const factor = unitMs.find(([shape]) => shape.test(unit.toLowerCase()))?.[1] ?? 0
    total += Number(amount) * factor
  }
  return total
}

/** `12h34m16s`, `1.5s`, `350ms`, `2 minutes` in milliseconds; null for anything else. */
export const parseDuration = (duration: string): number | null =>
  wholeDuration.test(duration) ? sumDuration(duration) : null

/** A duration that a sentence announces ("try again in 20s", "reset after 12h34m16s"). */
export const announcedDelay = (sentence: string): number | null => {
  const found = announced.exec(sentence)
  return found?.[1] === undefined ? null : sumDuration(found[1])
}

const number = (value: string | undefined): number | null =>
  value !== undefined && /^\s*[+-]?\d+(?:\.\d+)?\s*$/.test(value) ? Number(value) : null

const httpDate = (value: string | undefined): number | null => {
  if (value === undefined || !/^\s*(?:[a-z]{3,9},|\d{4}-\d{2}-\d{2})/i.test(value)) return null
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : at
}

const fromNow = (ms: number) => Math.max(0, ms)

/** Epoch milliseconds, epoch seconds or a number of seconds, told apart by size. */
const untilReset = (value: number, nowMs: number): number =>
  fromNow(value > 1e11 ? value - nowMs : value > 1e9 ? value * 1_000 - nowMs : value * 1_000)

export interface Hint {
  /** Milliseconds from the answer, never negative, not bounded. */
  readonly delay_ms: number
  /** False for a date that only our own clock places: a clock that jumped must not look like a spent quota. */
  readonly certain: boolean
}

const certain = (ms: number | null): Hint | null =>
  ms === null || !Number.isFinite(ms) ? null : { delay_ms: fromNow(ms), certain: true }

/** `retry-after-ms`, else `retry-after` in seconds, else as a date. */
export const retryAfter = (headers: Headers, nowMs: number): Hint | null => {
  const ms = number(headers["retry-after-ms"])
  if (ms !== null) return certain(ms)
  const value = headers["retry-after"]
  const seconds = number(value)
  if (seconds !== null) return certain(seconds * 1_000)
  const date = httpDate(value)
  // The server's own clock, where it shows it, makes the difference independent of ours.
  const serverNow = httpDate(headers["date"])
  if (date !== null) return { delay_ms: fromNow(date - (serverNow ?? nowMs)), certain: serverNow !== null }
  return value === undefined ? null : certain(parseDuration(value))
}

/** When a used-up limit comes back, from the rate-limit headers; null while something remains. */
export const limitReset = (headers: Headers, nowMs: number): Hint | null => {
  const remaining = number(headers["x-ratelimit-remaining"] ?? headers["ratelimit-remaining"])
  if (remaining === null || remaining > 0) return null
  const value = headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"]
  const reset = number(value)
  if (reset !== null) return certain(untilReset(reset, nowMs))
  const date = httpDate(value)
  return date === null ? null : { delay_ms: fromNow(date - nowMs), certain: false }
}

const lowerKeys = (headers: JsonRecord): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))

/** A hint in an error object: `resets_at`, `resets_in_seconds`, `retry_after`, `RetryInfo`, or the headers it quotes. */
export const bodyHint = (error: JsonRecord, nowMs: number): Hint | null => {
  const at = count(error["resets_at"]) ?? count(error["reset_at"])
  if (at !== null) return certain(untilReset(at, nowMs))
  const atDate = httpDate(text(error["resets_at"]) || text(error["reset_at"]))
  if (atDate !== null) return { delay_ms: fromNow(atDate - nowMs), certain: true }
  for (const [key, factor] of [
    ["retry_after_ms", 1],
    ["resets_in_seconds", 1_000],
    ["retry_after_seconds", 1_000],
    ["retry_after", 1_000]
  ] as const) {
    const value = error[key]
    if (typeof value === "number" && Number.isFinite(value)) return certain(value * factor)
  }
  for (const detail of list(error["details"])) {
    const delay = isRecord(detail) ? parseDuration(text(detail["retryDelay"])) : null
    if (delay !== null) return certain(delay)
  }
  const quoted = record(error["metadata"])["headers"]
  if (!isRecord(quoted)) return null
  const headers = lowerKeys(quoted)
  return retryAfter(headers, nowMs) ?? limitReset(headers, nowMs)
}
