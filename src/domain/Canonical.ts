/**
 * One text for one JSON value: keys sorted by their UTF-16 units, two blanks of indentation, a newline at the end. Two
 * values are the same exactly when their texts are, so a digest of the text is one of the value. `jq -S .` writes the
 * same bytes for everything that looplane keeps in this form.
 */
import { isRecord } from "./Json.ts"

const byUnits = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

const write = (value: unknown, indent: string): string => {
  const inner = `${indent}  `
  const block = (open: string, items: ReadonlyArray<string>, close: string): string =>
    items.length === 0 ? open + close : `${open}\n${inner}${items.join(`,\n${inner}`)}\n${indent}${close}`
  if (Array.isArray(value))
    return block(
      "[",
      value.map((item) => write(item, inner)),
      "]"
    )
  // What has no JSON text is left out of objects and is null elsewhere, as JSON.stringify has it.
  if (!isRecord(value)) return JSON.stringify(value) ?? "null"
  const keys = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .toSorted(byUnits)
  return block(
    "{",
    keys.map((key) => `${JSON.stringify(key)}: ${write(value[key], inner)}`),
    "}"
  )
}

/** Recursive: a value that is nested some thousand levels deep throws a RangeError, as JSON.stringify does. */
export const canonical = (value: unknown): string => `${write(value, "")}\n`

const at = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`)

/** Where two JSON values differ first, as `checks[0].verdict`; null when they are the same. */
export const firstDifference = (left: unknown, right: unknown, path = ""): string | null => {
  if (Array.isArray(left) && Array.isArray(right)) {
    for (let index = 0; index < Math.max(left.length, right.length); index++) {
      const found = firstDifference(left[index], right[index], `${path}[${index}]`)
      if (found !== null) return found
    }
    return null
  }
  if (isRecord(left) && isRecord(right)) {
    for (const key of [...new Set([...Object.keys(left), ...Object.keys(right)])].toSorted(byUnits)) {
      const found = firstDifference(left[key], right[key], at(path, key))
      if (found !== null) return found
    }
    return null
  }
  return Object.is(left, right) || (left === 0 && right === 0) ? null : path
}
