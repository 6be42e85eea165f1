/**
 * Which paths a run may change: patterns over whole paths relative to the root, case-sensitive.
 *
 * `.` and `**` allow everything. A pattern without `*`, `?` or `[` allows that file, or everything below that directory.
 * In any other, `*`, `?` and `[...]` stay inside one segment, and only a segment that is `**` as a whole stands for any
 * number of directories.
 */
import { Result } from "effect"

type Element<A> = { readonly _tag: "Many" } | { readonly _tag: "One"; readonly matches: (item: A) => boolean }

interface Pattern {
  readonly segments: ReadonlyArray<Element<string>>
  /** What lies below a match is allowed as well. */
  readonly prefix: boolean
}

export interface PathRule {
  readonly patterns: ReadonlyArray<Pattern>
}

/**
 * The positions in a sequence of elements that can be reached by reading all items: a set instead of a search, so that no
 * pattern takes more than length times length steps. `onStep` sees the positions after each item.
 */
const reach = <A>(
  elements: ReadonlyArray<Element<A>>,
  items: Iterable<A>,
  onStep: (reached: ReadonlySet<number>) => void = () => undefined
): ReadonlySet<number> => {
  const close = (positions: Iterable<number>): Set<number> => {
    const all = new Set<number>()
    for (let position of positions) {
      all.add(position)
      while (elements[position]?._tag === "Many") all.add(++position)
    }
    return all
  }
  let reached = close([0])
  for (const item of items) {
    const next: Array<number> = []
    for (const position of reached) {
      const element = elements[position]
      if (element?._tag === "Many") next.push(position)
      else if (element?._tag === "One" && element.matches(item)) next.push(position + 1)
    }
    reached = close(next)
    onStep(reached)
  }
  return reached
}

const matchesAll = <A>(elements: ReadonlyArray<Element<A>>, items: Iterable<A>): boolean =>
  reach(elements, items).has(elements.length)

const special = /[*?[]/

/** Where a character class that starts at `open` ends; -1 when it never does, and the bracket is a plain character. */
const classEnd = (chars: ReadonlyArray<string>, open: number): number => {
  const negated = chars[open + 1] === "!" || chars[open + 1] === "^"
  return chars.indexOf("]", open + (negated ? 3 : 2))
}

const codeOf = (char: string): number => char.codePointAt(0) ?? 0

/** The test of a class's members, ranges included; undefined when a range runs backwards. */
const compileClass = (members: ReadonlyArray<string>): ((char: string) => boolean) | undefined => {
  const negated = members[0] === "!" || members[0] === "^"
  const rest = negated ? members.slice(1) : members
  const ranges: Array<readonly [low: number, high: number]> = []
  for (let at = 0; at < rest.length; at++) {
    const low = codeOf(rest[at] ?? "")
    const last = rest[at + 1] === "-" ? rest[at + 2] : undefined
    const high = last === undefined ? low : codeOf(last)
    if (high < low) return undefined
    ranges.push([low, high])
    if (last !== undefined) at += 2
  }
  return (char) => {
    const code = codeOf(char)
    return char !== "/" && ranges.some(([low, high]) => low <= code && code <= high) !== negated
  }
}

const compileSegment = (text: string): Result.Result<Element<string>, string> => {
  if (text === "**") return Result.succeed({ _tag: "Many" })
  const chars = Array.from(text)
  const elements: Array<Element<string>> = []
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at]
    const end = char === "[" ? classEnd(chars, at) : -1
    if (char === "*") {
      if (elements.at(-1)?._tag !== "Many") elements.push({ _tag: "Many" })
    } else if (char === "?") {
      elements.push({ _tag: "One", matches: () => true })
    } else if (end > 0) {
      const matches = compileClass(chars.slice(at + 1, end))
      if (matches === undefined) return Result.fail(`a range in ${JSON.stringify(text)} runs backwards`)
      elements.push({ _tag: "One", matches })
      at = end
    } else {
      elements.push({ _tag: "One", matches: (item) => item === char })
    }
  }
  return Result.succeed({ _tag: "One", matches: (segment) => matchesAll(elements, segment) })
}

const compileOne = (input: string): Result.Result<Pattern, string> => {
  const shown = JSON.stringify(input)
  const text = input
    .trim()
    .replaceAll("\\", "/")
    .replace(/^(?:\.\/+)+/, "")
    .replace(/(?<=[^/])\/+$/, "")
  if (input.trim() === "") return Result.fail("an allowed path is empty")
  if (text.startsWith("/") || /^[A-Za-z]:/.test(text) || /^[\\/]+$/.test(input.trim())) {
    return Result.fail(`allowed path ${shown} is absolute: give one relative to the repository`)
  }
  if (text.startsWith("~"))
    return Result.fail(`allowed path ${shown} starts with "~": give one relative to the repository`)
  const parts = text.split("/").filter((part) => part !== "" && part !== ".")
  if (parts.includes("..")) return Result.fail(`allowed path ${shown} contains ".."`)
  if (text.includes("\0")) return Result.fail(`allowed path ${shown} contains a NUL character`)
  if (parts.length === 0) return Result.succeed({ segments: [{ _tag: "Many" }], prefix: true })
  const segments: Array<Element<string>> = []
  for (const part of parts) {
    const segment = compileSegment(part)
    if (Result.isFailure(segment)) return Result.fail(segment.failure)
    // Two `**` in a row say no more than one, and would only make matching slow.
    if (segment.success._tag === "One" || segments.at(-1)?._tag !== "Many") segments.push(segment.success)
  }
  return Result.succeed({ segments, prefix: !special.test(text) })
}

/** The rule of some patterns, or one line that says which of them is refused. No pattern allows nothing. */
export const compile = (patterns: ReadonlyArray<string>): Result.Result<PathRule, string> => {
  const compiled: Array<Pattern> = []
  for (const pattern of patterns) {
    const result = compileOne(pattern)
    if (Result.isFailure(result)) return Result.fail(result.failure)
    compiled.push(result.success)
  }
  return Result.succeed({ patterns: compiled })
}

const segmentsOf = (path: string): ReadonlyArray<string> =>
  path.split("/").filter((part) => part !== "" && part !== ".")

/** Whether a path, as `checkWorkspacePath` returns it, may be changed. */
export const allows = (rule: PathRule, path: string): boolean =>
  rule.patterns.some((pattern) => {
    let below = false
    const reached = reach(pattern.segments, segmentsOf(path), (positions) => {
      below ||= pattern.prefix && positions.has(pattern.segments.length)
    })
    return below || reached.has(pattern.segments.length)
  })

/** Whether a directory is allowed, or can hold something that is: then it may be listed. "" and "." are the root. */
export const allowsDirectory = (rule: PathRule, directory: string): boolean =>
  rule.patterns.some((pattern) => {
    const path = segmentsOf(directory)
    return (
      path.length === 0 ||
      allows({ patterns: [pattern] }, directory) ||
      reach(pattern.segments, path).size > 0
    )
  })
