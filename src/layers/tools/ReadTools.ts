/**
 * Tools that only look: list_files, read_file, git_diff.
 */
import { Effect, Schema } from "effect"
import * as PathRule from "../../domain/PathRule.ts"
import { quotePath } from "../../domain/WorkspacePath.ts"
import { defineTool, NoArguments, refuse } from "./Define.ts"
import { describeBinary, pageOf, shownText } from "./FileText.ts"
import { locateAny, locateFile, readRegular, ruleOf } from "./Place.ts"

/** What lies directly in a directory, each subdirectory with the number of files below it. */
const overview = (directory: string, paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  const prefix = directory === "." ? 0 : directory.length + 1
  const counts = new Map<string, number>()
  for (const path of paths) {
    const slash = path.indexOf("/", prefix)
    const name = slash < 0 ? path : path.slice(0, slash + 1)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts].map(([name, count]) =>
    name.endsWith("/") ? `${name} (${count} ${count === 1 ? "file" : "files"})` : name
  )
}

const listing = (directory: string, paths: ReadonlyArray<string>, limit: number): string => {
  if (paths.length === 0) return "[no files]"
  if (paths.length <= limit) return paths.join("\n")
  const lines = overview(directory, paths)
  const note = `[${paths.length} files, more than ${limit}: directories are counted, not listed; give one as path]`
  return lines.length <= limit
    ? [...lines, note].join("\n")
    : [...lines.slice(0, limit), `[${lines.length - limit} more entries are not shown]`, note].join("\n")
}

export const listFiles = defineTool({
  name: "list_files",
  description:
    "List the files below a directory, one path a line, relative to the repository root. Ignored files are left out." +
    " When there are too many, directories are shown with their number of files.",
  schema: Schema.Struct({
    path: Schema.optionalKey(
      Schema.String.annotate({
        description: 'Directory relative to the repository root. Default: ".", the root.'
      })
    )
  }),
  effect: "read",
  concurrent: true,
  handler: Effect.fnUntraced(function* (args, context) {
    const { node, path } = yield* locateAny(args.path ?? ".", context)
    if (node._tag !== "Directory") return { ok: true, content: path }
    const rule = yield* ruleOf(context)
    const paths = (yield* context.workspace.list(path)).filter((file) => PathRule.allows(rule, file))
    return { ok: true, content: listing(path, paths, context.limits.max_list_files) }
  }),
  preview: (args) => `list files below ${args.path ?? "."}`
})

const Positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

export const readFile = defineTool({
  name: "read_file",
  description:
    "Read a text file. The text comes as it is, without line numbers, so that any piece of it can be used as old_text of" +
    " replace_text; line endings are shown as \\n. A last line in [brackets] is a note, not part of the file: it tells" +
    " when only some lines are shown and how to go on.",
  schema: Schema.Struct({
    path: Schema.String.annotate({ description: "File relative to the repository root." }),
    offset: Schema.optionalKey(
      Positive.annotate({ description: "First line to read, counted from 1. Default: 1." })
    ),
    limit: Schema.optionalKey(
      Positive.annotate({ description: "Number of lines to read. Default: all that fit." })
    )
  }),
  effect: "read",
  concurrent: true,
  handler: Effect.fnUntraced(function* (args, context) {
    const { bytes } = yield* readRegular(yield* locateFile(args.path, context), args.path, context)
    const text = shownText(bytes)
    if (text === undefined) {
      return { ok: false, content: `${quotePath(args.path)} is a binary file: ${describeBinary(bytes)}` }
    }
    const page = pageOf(text, args, context.limits.max_tool_output_bytes)
    if (page === undefined) {
      return yield* refuse(`${quotePath(args.path)} has only ${text.lines.length} lines`)
    }
    return { ok: true, content: page }
  }),
  preview: (args) =>
    `read ${args.path}${args.offset === undefined && args.limit === undefined ? "" : ` from line ${args.offset ?? 1}`}`
})

export const gitDiff = defineTool({
  name: "git_diff",
  description: "Show everything you changed so far as one unified diff against the base commit.",
  schema: NoArguments,
  effect: "read",
  concurrent: true,
  handler: Effect.fnUntraced(function* (_, { workspace }) {
    const { patch } = yield* workspace.diff(yield* workspace.tree)
    return { ok: true, content: patch.length === 0 ? "[no changes]" : new TextDecoder().decode(patch) }
  }),
  preview: () => "show the changes made so far"
})
