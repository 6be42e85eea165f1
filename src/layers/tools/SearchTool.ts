/**
 * search_text: lines that contain a text, in files that are not ignored.
 */
import { Effect, Result, Schema } from "effect"
import * as PathRule from "../../domain/PathRule.ts"
import { checkWorkspacePath } from "../../domain/WorkspacePath.ts"
import type { Search, SearchResult } from "../../services/Search.ts"
import { defineTool } from "./Define.ts"
import { locateAny, ruleOf } from "./Place.ts"

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")))

const shown = ({ matches, truncated }: SearchResult, limit: number): string => {
  if (matches.length === 0) return "[no matches]"
  const lines = matches.map(({ line, path, text }) => `${path}:${line}:${text}`)
  if (truncated)
    lines.push(`[more than ${limit} matches: narrow the search with path, glob or a longer query]`)
  return lines.join("\n")
}

export const makeSearchText = (search: Search["Service"]) =>
  defineTool({
    name: "search_text",
    description:
      "Find the lines that contain a text, as path:line:text. Hidden files are searched; ignored, binary and very large" +
      " files are not. The query is literal unless regex is true, and never spans lines.",
    schema: Schema.Struct({
      query: Schema.String.check(Schema.isMinLength(1)).annotate({
        description: "Text, or regular expression, to find."
      }),
      path: Schema.optionalKey(
        Schema.String.annotate({
          description: 'Directory or file relative to the repository root. Default: ".", everything.'
        })
      ),
      glob: Schema.optionalKey(
        Schema.String.annotate({
          description:
            'Only files that match, such as "*.ts" (in any directory) or "src/**/*.ts" (from the repository root).' +
            ' A leading "!" excludes instead.'
        })
      ),
      regex: Schema.optionalKey(Schema.Boolean.annotate({ description: "Default: false." })),
      case_sensitive: Schema.optionalKey(Schema.Boolean.annotate({ description: "Default: true." }))
    }),
    effect: "read",
    concurrent: true,
    handler: Effect.fnUntraced(function* (args, context) {
      const { node, path } = yield* locateAny(args.path ?? ".", context)
      const rule = yield* ruleOf(context)
      const only = node._tag === "Directory" ? null : path
      const found = yield* search.search({
        root: context.workspace.root,
        directory: only === null ? (path === "." ? "" : path) : parentOf(only),
        query: args.query,
        regex: args.regex ?? false,
        case_sensitive: args.case_sensitive ?? true,
        glob: args.glob ?? null,
        limit: context.limits.max_search_results,
        accepts: (file) =>
          (only === null || file === only) &&
          Result.isSuccess(checkWorkspacePath(file)) &&
          PathRule.allows(rule, file)
      })
      return { ok: true, content: shown(found, context.limits.max_search_results) }
    }),
    preview: (args) => `search for ${JSON.stringify(args.query)} in ${args.path ?? "."}`
  })
