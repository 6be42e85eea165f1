/**
 * Reading JSON that nobody promised anything about: a value of another shape reads as absent, never as a failure.
 */
export type JsonRecord = Readonly<Record<string, unknown>>

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value as an object; an empty one when it is none. */
export const record = (value: unknown): JsonRecord => (isRecord(value) ? value : {})

export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The value as a string; "" when it is none. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** A token count; null when it is no whole number from zero. */
export const count = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null

/** The parsed text; undefined, which is no JSON value, when it does not parse. */
export const parse = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
