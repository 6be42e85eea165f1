/**
 * Ripgrep's regular expressions in JavaScript's engine. What both write alike, or what can be rewritten, means the same;
 * what only one of them knows is refused, so that a query never finds something else than ripgrep would.
 */
import { Result } from "effect"
import type { SearchError } from "../../services/Search.ts"
import { invalidPattern, type PreparedQuery } from "./Query.ts"

const word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
/** Ripgrep's classes are Unicode's, JavaScript's are ASCII's. */
const classes: Readonly<Record<string, { readonly alone: string; readonly inSet: string | undefined }>> = {
  d: { alone: "\\p{Nd}", inSet: "\\p{Nd}" },
  D: { alone: "\\P{Nd}", inSet: "\\P{Nd}" },
  w: { alone: `[${word}]`, inSet: word },
  W: { alone: `[^${word}]`, inSet: undefined },
  b: { alone: `(?:(?<=[${word}])(?![${word}])|(?<![${word}])(?=[${word}]))`, inSet: undefined },
  B: { alone: `(?:(?<=[${word}])(?=[${word}])|(?<![${word}])(?![${word}]))`, inSet: undefined },
  a: { alone: "\\x07", inSet: "\\x07" }
}
/** Escapes that both engines know by the same letter. */
const sharedEscape = /^[sStrfvux]/

const escapeLiteral = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

const unsupported = (what: string): SearchError =>
  invalidPattern(`the regular expression is not valid here: ${what} is not supported`)

/** The escape that starts at `at` (a backslash), rewritten. */
const rewriteEscape = (source: string, at: number, inSet: boolean): Result.Result<string, SearchError> => {
  const char = String.fromCodePoint(source.codePointAt(at + 1) ?? 0)
  if (at + 1 >= source.length)
    return Result.fail(invalidPattern("the regular expression ends in a lone backslash"))
  const known = Object.hasOwn(classes, char) ? classes[char] : undefined
  if (known !== undefined) {
    const text = inSet ? known.inSet : known.alone
    return text === undefined ? Result.fail(unsupported(`"\\${char}" in a set`)) : Result.succeed(text)
  }
  if (char === "n") return Result.fail(invalidPattern("the query contains \\n: search works line by line"))
  if (sharedEscape.test(char)) return Result.succeed(`\\${char}`)
  if (/[A-Za-z0-9]/.test(char)) return Result.fail(unsupported(`"\\${char}"`))
  return Result.succeed(/[\\^$.*+?()[\]{}|/-]/.test(char) && (inSet || char !== "-") ? `\\${char}` : char)
}

/** `\pL` is `\p{L}`, and `\x{41}` is `\u{41}`. */
const rewriteNamed = (escape: string): string => {
  if (/^\\[xu]/.test(escape)) return `\\u${escape.slice(2)}`
  return escape.includes("{") ? escape : `${escape.slice(0, 2)}{${escape.slice(2)}}`
}

/** A group's opening: ripgrep's names and flags, and nothing that looks around. */
const rewriteGroup = (source: string, at: number): Result.Result<string, SearchError> => {
  const opening = /^\((?:\?(?::|P?<(?![=!])|[a-z-]*[:)]?|.?))?/s.exec(source.slice(at))?.[0] ?? "("
  if (opening === "(" || opening === "(?:") return Result.succeed(opening)
  if (opening === "(?P<" || opening === "(?<") return Result.succeed("(?<")
  if (/^\(\?[ims]*(?:-[ims]+)?:$/.test(opening)) return Result.succeed(opening)
  return Result.fail(unsupported(`"${opening}"`))
}

const rewrite = (source: string): Result.Result<string, SearchError> =>
  Result.gen(function* () {
    let out = ""
    let inSet = false
    for (let at = 0; at < source.length; at++) {
      const char = source.charAt(at)
      if (char === "\\") {
        const named = /^\\(?:[pP](?:\{[^}]*\}|.)|[xu]\{[0-9A-Fa-f]+\})/u.exec(source.slice(at))?.[0]
        if (named !== undefined) {
          out += rewriteNamed(named)
          at += named.length - 1
          continue
        }
        out += yield* rewriteEscape(source, at, inSet)
        at += String.fromCodePoint(source.codePointAt(at + 1) ?? 0).length
      } else if (inSet) {
        if (
          char === "[" ||
          source.startsWith("&&", at) ||
          source.startsWith("--", at) ||
          source.startsWith("~~", at)
        ) {
          return yield* Result.fail(unsupported("a set inside a set"))
        }
        if (char === "]") inSet = false
        out += char
      } else if (char === "[") {
        inSet = true
        const opening = /^\[\^?\]?/.exec(source.slice(at))?.[0] ?? "["
        out += opening.endsWith("]") ? `${opening.slice(0, -1)}\\]` : opening
        at += opening.length - 1
      } else if (char === "(") {
        const opening = yield* rewriteGroup(source, at)
        out += opening
        at += (source.startsWith("(?P<", at) ? 4 : opening.length) - 1
      } else if (char === "]" || char === "}") {
        out += `\\${char}`
      } else if (char === ".") {
        out += "[^]"
      } else if (char === "{") {
        const count = /^\{\d+(?:,\d*)?\}/.exec(source.slice(at))?.[0]
        if (count === undefined) return yield* Result.fail(unsupported('a bare "{" (write "\\{")'))
        out += count
        at += count.length - 1
      } else {
        out += char
      }
    }
    return out
  })

const build = (source: string, flags: string): Result.Result<RegExp, SearchError> =>
  Result.try({
    try: () => new RegExp(source, flags),
    catch: (cause) =>
      invalidPattern(`the regular expression is not valid: ${cause instanceof Error ? cause.message : ""}`)
  })

/** What a line is tested with. */
export const compilePattern = (query: PreparedQuery): Result.Result<RegExp, SearchError> => {
  if (!query.regex) return build(escapeLiteral(query.query), query.case_sensitive ? "u" : "iu")
  const leading = /^\(\?i\)/.exec(query.query)
  const source = leading === null ? query.query : query.query.slice(leading[0].length)
  const flags = query.case_sensitive && leading === null ? "u" : "iu"
  return Result.flatMap(rewrite(source), (pattern) => build(pattern, flags))
}
