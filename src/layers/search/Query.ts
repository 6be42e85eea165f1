/**
 * What both ways of searching share: which files count, how a long line is shown, when a query is refused.
 */
import { Effect, Glob, Result } from "effect"
import { takeHead } from "../../domain/Text.ts"
import { SearchError, type SearchMatch, type SearchQuery, type SearchResult } from "../../services/Search.ts"

/** Of a matching line as it is shown, in UTF-8 bytes. */
const maxLineBytes = 500
/** Larger files are not searched. */
export const maxFileBytes = 10 * 1024 * 1024
const timeoutSeconds = 10

/**
 * A pattern with the anchoring of an ignore file: without a slash it names a file in any directory, with one it starts
 * at the root. Hidden names match like others.
 */
export const anchoredGlob = (pattern: string): Glob.Glob => {
  const bare = pattern.startsWith("/") ? pattern.slice(1) : pattern
  return Glob.make(pattern.includes("/") ? bare : `**/${bare}`, { dot: true })
}

const pathFilter = (query: SearchQuery): ((path: string) => boolean) => {
  const prefix = query.directory === "" ? "" : `${query.directory}/`
  const negated = query.glob?.startsWith("!") === true
  const glob = query.glob === null ? null : anchoredGlob(negated ? query.glob.slice(1) : query.glob)
  return (path) =>
    path.startsWith(prefix) && (glob === null || Glob.match(glob, path) !== negated) && query.accepts(path)
}

export interface PreparedQuery extends SearchQuery {
  /** Whether a file's matches count: below the directory, matched by the glob, accepted by the caller. */
  readonly counts: (path: string) => boolean
}

export const invalidPattern = (message: string): SearchError =>
  new SearchError({ reason: "invalid_pattern", message })

/** Refuses what no engine can look for line by line. */
export const prepareQuery = (query: SearchQuery): Result.Result<PreparedQuery, SearchError> => {
  if (query.query === "") return Result.fail(invalidPattern("the query is empty"))
  if (query.query.includes("\0")) return Result.fail(invalidPattern("the query contains a NUL character"))
  if (/[\r\n]/.test(query.query)) {
    return Result.fail(
      invalidPattern("the query contains a line break: search works line by line, so give one line")
    )
  }
  return Result.succeed({ ...query, counts: pathFilter(query) })
}

/** A line without the carriage returns that end it. */
export const withoutReturns = (line: string): string => {
  let end = line.length
  while (line.charCodeAt(end - 1) === 0x0d) end--
  return line.slice(0, end)
}

/** A line as it is shown: without its line ending, cut when it is long. */
export const shownLine = (text: string): string => {
  const line = withoutReturns(text)
  const head = takeHead(line, maxLineBytes)
  return head === line ? line : `${head} [line cut]`
}

/** At most `limit` of the matches that were found; engines look for one more to know that there are more. */
export const limited = (matches: ReadonlyArray<SearchMatch>, limit: number): SearchResult => ({
  matches: matches.slice(0, limit),
  truncated: matches.length > limit
})

/** Ends a search that takes too long. */
export const timedOut = <A, E, R>(search: Effect.Effect<A, E, R>): Effect.Effect<A, E | SearchError, R> =>
  search.pipe(
    Effect.timeoutOrElse({ duration: `${timeoutSeconds} seconds`, orElse: () => Effect.fail(tooSlow()) })
  )

export const tooSlow = (): SearchError =>
  new SearchError({
    reason: "timed_out",
    message: `the search took longer than ${timeoutSeconds} s: narrow it with a path, a glob or a simpler query`
  })
