/**
 * Tools that change files: replace_text, create_file, apply_patch.
 *
 * None asks for a read beforehand. The text to replace, or the context of a patch, must occur in the file exactly as
 * given and in one place only, so an edit made from a stale or guessed view does not match and is refused, while an
 * edit made from search results or from an earlier diff needs no further read.
 */
import { Effect, Result, Schema } from "effect"
import type { FileChange, FileNode } from "../../domain/patch/FileSet.ts"
import { pathsOf, planPatch } from "../../domain/patch/Patch.ts"
import { replaceText } from "../../domain/patch/Replace.ts"
import { byteLength } from "../../domain/Text.ts"
import { quotePath } from "../../domain/WorkspacePath.ts"
import type { ToolContext } from "../../services/Tools.ts"
import { defineTool, refuse } from "./Define.ts"
import { applyEdit } from "./Edit.ts"
import { locateFile, locateNew, readRegular, requireAllowed } from "./Place.ts"

const path = Schema.String.annotate({ description: "File relative to the repository root." })

const prefixed = (prefix: string, text: string): string =>
  text
    .split("\n")
    .map((line) => `${prefix}${line}`)
    .join("\n")

/** Untracked files may be edited as well; a symlink is followed to the file that it names, inside the workspace. */
export const replaceTextTool = defineTool({
  name: "replace_text",
  description:
    "Replace a piece of a file by another. old_text must occur in the file exactly once, character for character" +
    " (add surrounding lines until it does), or set replace_all. Line endings and everything else stay as they are.",
  schema: Schema.Struct({
    path,
    old_text: Schema.String.check(Schema.isMinLength(1)).annotate({
      description: "The text as it is in the file."
    }),
    new_text: Schema.String.annotate({ description: 'The text to put in its place; "" deletes it.' }),
    replace_all: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "Replace every occurrence. Default: false."
      })
    )
  }),
  effect: "modify",
  concurrent: false,
  handler: Effect.fnUntraced(function* (args, context) {
    const { limits } = context
    if (byteLength(args.old_text) + byteLength(args.new_text) > limits.max_patch_bytes) {
      return yield* refuse(`old_text and new_text have more than ${limits.max_patch_bytes} bytes together`)
    }
    const meant = yield* locateFile(args.path, context)
    const file = yield* readRegular(meant, args.path, context)
    const bytes = yield* Effect.fromResult(
      replaceText({
        path: args.path,
        bytes: file.bytes,
        oldText: args.old_text,
        newText: args.new_text,
        all: args.replace_all ?? false
      })
    )
    const change: FileChange = { _tag: "Write", path: meant, bytes, executable: file.executable }
    return yield* applyEdit([change], new Map([[meant, file]]), context)
  }),
  preview: (args) =>
    [`edit ${args.path}`, prefixed("- ", args.old_text), prefixed("+ ", args.new_text)].join("\n")
})

export const createFile = defineTool({
  name: "create_file",
  description:
    "Create a text file that does not exist yet, with its directories. It never overwrites: use replace_text or" +
    " apply_patch on a file that exists.",
  schema: Schema.Struct({
    path,
    content: Schema.String.annotate({ description: "The whole text of the file." })
  }),
  effect: "modify",
  concurrent: false,
  handler: Effect.fnUntraced(function* (args, context) {
    if (args.content.includes("\0"))
      return yield* refuse("the content contains a NUL character: only text can be written")
    if (!args.content.isWellFormed()) return yield* refuse("the content contains half of a surrogate pair")
    const meant = yield* locateNew(args.path, context)
    if (yield* isTaken(meant, context)) {
      return yield* refuse(`${quotePath(args.path)} exists already: edit it with replace_text or apply_patch`)
    }
    const bytes = new TextEncoder().encode(args.content)
    return yield* applyEdit([{ _tag: "Write", path: meant, bytes, executable: false }], new Map(), context)
  }),
  preview: (args) => [`create ${args.path}`, prefixed("+ ", args.content)].join("\n")
})

const isTaken = (at: string, { limits, workspace }: ToolContext) =>
  workspace.read(at, limits.max_read_bytes).pipe(
    Effect.map((node) => node !== undefined),
    Effect.catchIf(
      (error) => error.reason === "too_large",
      () => Effect.succeed(true)
    )
  )

export const applyPatchTool = defineTool({
  name: "apply_patch",
  description:
    "Change, create, delete or rename several files at once: either everything applies or nothing does. Takes the" +
    ' "*** Begin Patch" format or a git unified diff. Context lines must be copied from the files.',
  schema: Schema.Struct({
    patch: Schema.String.check(Schema.isMinLength(1)).annotate({ description: "The whole patch." })
  }),
  effect: "modify",
  concurrent: false,
  handler: Effect.fnUntraced(function* ({ patch }, context) {
    const { limits, workspace } = context
    const plan = yield* Effect.fromResult(planPatch(patch, limits))
    yield* requireAllowed(plan.paths, context)
    const nodes = new Map<string, FileNode>()
    for (const at of plan.nodes) {
      const node = yield* workspace.read(at, limits.max_read_bytes)
      if (node !== undefined) nodes.set(at, node)
    }
    const changes = yield* Effect.fromResult(plan.apply((at) => nodes.get(at)))
    return yield* applyEdit(changes, nodes, context)
  }),
  preview: ({ patch }) =>
    Result.match(pathsOf(patch), {
      onFailure: () => `apply a patch\n${patch}`,
      onSuccess: (paths) => `apply a patch to ${paths.join(", ")}\n${patch}`
    })
})
