/**
 * The arguments of a tool call, as the text that a model wrote.
 */
import { Result } from "effect"
import { isRecord, parse, type JsonRecord } from "../Json.ts"

/** Larger texts are not repaired: a repair reads them several times. */
const maxRepairChars = 262_144
/** Deeper values are refused, so that nothing that walks them runs out of stack. */
export const maxDepth = 100

/** How deep the brackets outside of strings nest. */
const depthOf = (json: string): number => {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (quoted) {
      if (char === "\\") at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === "{" || char === "[") deepest = Math.max(deepest, ++depth)
    else if (char === "}" || char === "]") depth--
  }
  return deepest
}

const unfenced = (json: string): string => /^```(?:json)?\s*([\s\S]*?)\s*```$/.exec(json)?.[1] ?? json

const asObject = (value: unknown): JsonRecord | undefined => {
  if (value === null) return {}
  // Some models write the object as a string that holds it.
  const inner = typeof value === "string" ? parse(value) : value
  return isRecord(inner) ? inner : undefined
}

/**
 * The object that the text means: nothing and `null` mean no arguments. Fails with the text itself when it is no JSON
 * object.
 */
export const parseArguments = (json: string): Result.Result<JsonRecord, string> => {
  const trimmed = unfenced(json.trim())
  if (trimmed === "") return Result.succeed({})
  if (depthOf(trimmed) > maxDepth) return Result.fail(json)
  const object = asObject(parse(trimmed))
  return object === undefined ? Result.fail(json) : Result.succeed(object)
}

/** A repair of broken JSON: returns JSON, or throws when it finds none. */
export type Repair = (json: string) => string

/** Whether a repair may be tried: only a text that has both its ends, since what was cut off cannot be guessed. */
export const isRepairable = (json: string): boolean => {
  const trimmed = unfenced(json.trim())
  const whole = trimmed.startsWith("{") && trimmed.endsWith("}")
  return whole && trimmed.length <= maxRepairChars && depthOf(trimmed) <= maxDepth
}

/** `parseArguments` with one try at a repair, which must end in an object too. */
export const repairArguments = (json: string, repair: Repair): Result.Result<JsonRecord, string> => {
  const plain = parseArguments(json)
  if (Result.isSuccess(plain) || !isRepairable(json)) return plain
  const repaired = Result.try({ try: () => repair(unfenced(json.trim())), catch: () => json })
  return Result.flatMap(repaired, (fixed) => Result.mapError(parseArguments(fixed), () => json))
}
