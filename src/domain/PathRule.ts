/**
 * Which paths a run may change: patterns over whole paths relative to the root, case-sensitive.
 *
 * `.` and `**` allow everything. A pattern without `*`, `?` or `[` allows that file, or everything below that directory.
 * In any other, `*`, `?` and `[...]` stay inside one segment, and only a segment that is `**` as a whole stands for any
 * number of directories.
 */
import { Result } from "effect"

type Segment = { readonly _tag: "Any" } | { readonly _tag: "One"; readonly matches: RegExp }

interface Pattern {
  readonly segments: ReadonlyArray<Segment>
  /** What lies below a match is allowed as well. */
  readonly prefix: boolean
}

export interface PathRule {
  readonly patterns: ReadonlyArray<Pattern>
}

const special = /[*?[]/

const escape = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")

/** The end of a character class that starts at `open`; -1 when it has none, and the bracket is a plain character. */
const classEnd = (text: string, open: number): number => {
  const first = text[open + 1] === "!" || text[open + 1] === "^" ? open + 2 : open + 1
  return text.indexOf("]", first + 1)
}

const classOf = (body: string): string => {
  const negated = body.startsWith("!") || body.startsWith("^")
  const members = (negated ? body.slice(1) : body).replace(/[\\\]^[&~|]/g, "\\$&")
  return `[${negated ? "^" : ""}${members}]`
}

/** A class such as `[z-a]` is no regular expression; then the pattern is refused. */
const compileSegment = (text: string): Result.Result<Segment, string> => {
  if (text === "**") return Result.succeed({ _tag: "Any" })
  let source = ""
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    const end = char === "[" ? classEnd(text, at) : -1
    if (char === "*") source += "[^/]*"
    else if (char === "?") source += "[^/]"
    else if (end > 0) {
      source += classOf(text.slice(at + 1, end))
      at = end
    } else source += escape(char)
  }
  return Result.try({
    try: (): Segment => ({ _tag: "One", matches: new RegExp(`^${source.replace(/(?:\[\^\/\]\*)+/g, "[^/]*")}$`, "su") }),
    catch: () => `the character class in ${JSON.stringify(text)} is not valid`
  })
}

const compileOne = (input: string): Result.Result<Pattern, string> => {
  const shown = JSON.stringify(input)
  const text = input
    .trim()
    .replaceAll("\\", "/")
    .replace(/^(?:\.\/+)+/, "")
    .replace(/\/+$/, "")
  if (input.trim() === "") return Result.fail("an allowed path is empty")
  if (input.trim().startsWith("/") || /^[A-Za-z]:/.test(text)) {
    return Result.fail(`allowed path ${shown} is absolute: give one relative to the repository`)
  }
  if (text.startsWith("~")) return Result.fail(`allowed path ${shown} starts with "~": give one relative to the repository`)
  const parts = text.split("/").filter((part) => part !== "" && part !== ".")
  if (parts.includes("..")) return Result.fail(`allowed path ${shown} contains ".."`)
  if (text.includes("\0")) return Result.fail(`allowed path ${shown} contains a NUL character`)
  if (parts.length === 0) return Result.succeed({ segments: [{ _tag: "Any" }], prefix: true })
  const segments: Array<Segment> = []
  for (const part of parts) {
    const segment = compileSegment(part)
    if (Result.isFailure(segment)) return Result.fail(segment.failure)
    // Two `**` in a row say no more than one, and would only make matching slow.
    if (segment.success._tag === "One" || segments.at(-1)?._tag !== "Any") segments.push(segment.success)
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

const segmentsOf = (path: string): ReadonlyArray<string> => path.split("/").filter((part) => part !== "" && part !== ".")

/**
 * The positions in a pattern that can be reached by reading the segments: a set instead of a search, so that no pattern
 * takes more than length times length steps.
 */
const reach = (pattern: Pattern, path: ReadonlyArray<string>, onStep: (reached: ReadonlySet<number>) => void) => {
  const close = (positions: Iterable<number>): Set<number> => {
    const all = new Set<number>()
    for (let position of positions) {
      all.add(position)
      while (pattern.segments[position]?._tag === "Any") all.add(++position)
    }
    return all
  }
  let reached = close([0])
  for (const part of path) {
    const next: Array<number> = []
    for (const position of reached) {
      const segment = pattern.segments[position]
      if (segment?._tag === "Any") next.push(position)
      else if (segment?._tag === "One" && segment.matches.test(part)) next.push(position + 1)
    }
    reached = close(next)
    onStep(reached)
  }
  return reached
}

/** Whether a path, as `checkWorkspacePath` returns it, may be changed. */
export const allows = (rule: PathRule, path: string): boolean =>
  rule.patterns.some((pattern) => {
    let below = false
    const reached = reach(pattern, segmentsOf(path), (positions) => {
      below ||= pattern.prefix && positions.has(pattern.segments.length)
    })
    return below || reached.has(pattern.segments.length)
  })

/** Whether a directory is allowed, or can hold something that is: then it may be listed. "" and "." are the root. */
export const allowsDirectory = (rule: PathRule, directory: string): boolean =>
  rule.patterns.some((pattern) => {
    const path = segmentsOf(directory)
    return path.length === 0 || allows({ patterns: [pattern] }, directory) || reach(pattern, path, () => undefined).size > 0
  })
