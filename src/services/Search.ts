/**
 * Text search over a directory, respecting ignore files.
 */
import { Context, type Effect, Schema } from "effect"

export class SearchError extends Schema.TaggedError<SearchError>()("SearchError", {
  reason: Schema.Literals(["invalid_pattern", "timed_out", "failed"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export interface SearchQuery {
  readonly root: string
  /** Relative to root: where to look; "" is everywhere. */
  readonly directory: string
  readonly query: string
  readonly regex: boolean
  readonly case_sensitive: boolean
  /** Anchored as in an ignore file: with a slash at the root, without one in any directory; `*` does not cross `/`; a
   * leading `!` turns it round. */
  readonly glob: string | null
  /** Which files may be seen, by path relative to root; asked before a match counts towards the limit. */
  readonly accepts: (path: string) => boolean
  readonly limit: number
}

export interface SearchMatch {
  readonly path: string
  /** 1-based. */
  readonly line: number
  readonly text: string
}

export interface SearchResult {
  /** Sorted by path, then line. */
  readonly matches: ReadonlyArray<SearchMatch>
  readonly truncated: boolean
}

export class Search extends Context.Service<
  Search,
  { readonly search: (query: SearchQuery) => Effect.Effect<SearchResult, SearchError> }
>()("looplane/services/Search") {}
