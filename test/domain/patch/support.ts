import { Result, TextDiff } from "effect"
import { encode } from "../../../src/domain/patch/ByteString.ts"
import type { FileChange, FileNode, ReadNode } from "../../../src/domain/patch/FileSet.ts"
import { splitLines } from "../../../src/domain/patch/Lines.ts"
import { planPatch, type PatchLimits } from "../../../src/domain/patch/Patch.ts"
import type { PatchError } from "../../../src/domain/patch/PatchError.ts"
import { parentsOf } from "../../../src/domain/WorkspacePath.ts"

/** A tree of files and symlinks; directories are there because something lies in them. */
export type Tree = ReadonlyMap<string, FileNode>

export const limits = { max_patch_bytes: 1_000_000, max_patch_lines: 4000, max_changed_files: 50 }

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

export const file = (content: string | Uint8Array, executable = false): FileNode => ({
  _tag: "File",
  bytes: typeof content === "string" ? utf8(content) : content,
  executable
})

export const treeOf = (files: Readonly<Record<string, string | Uint8Array | FileNode>>): Tree =>
  new Map(
    Object.entries(files).map(([path, content]) => [
      path,
      typeof content === "string" || content instanceof Uint8Array ? file(content) : content
    ])
  )

export const readerOf = (tree: Tree): ReadNode => {
  const directories = new Set([...tree.keys()].flatMap((path) => parentsOf(path)))
  return (path) => tree.get(path) ?? (directories.has(path) ? { _tag: "Directory" } : undefined)
}

export const withChanges = (tree: Tree, changes: ReadonlyArray<FileChange>): Tree => {
  const after = new Map(tree)
  for (const change of changes) {
    if (change._tag === "Delete") after.delete(change.path)
    else after.set(change.path, file(change.bytes, change.executable))
  }
  return after
}

const shownFile = (bytes: Uint8Array): string => {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")
  return JSON.stringify(text)
}

/** A tree as plain data that assertions can compare and print: bytes as characters. */
export const shown = (tree: Tree): Record<string, string> =>
  Object.fromEntries(
    [...tree]
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([path, node]) => {
        if (node._tag === "File") return [path, `${node.executable ? "x " : ""}${shownFile(node.bytes)}`]
        return [path, node._tag === "Symlink" ? `-> ${node.target}` : node._tag]
      })
  )

/** Reads a patch and applies it. */
export const applyPatch = (
  patch: string,
  read: ReadNode,
  within: PatchLimits = limits
): Result.Result<ReadonlyArray<FileChange>, PatchError> =>
  Result.flatMap(planPatch(patch, within), (plan) => plan.apply(read))

/** The tree after a patch, or the reason of the refusal. */
export const patched = (tree: Tree, patch: string): Record<string, string> | string =>
  Result.match(applyPatch(patch, readerOf(tree)), {
    onFailure: (error: PatchError) => error.reason,
    onSuccess: (changes) => shown(withChanges(tree, changes))
  })

export const refusal = (tree: Tree, patch: string): PatchError | undefined => {
  const result = applyPatch(patch, readerOf(tree))
  return Result.isFailure(result) ? result.failure : undefined
}

const letters: Readonly<Record<string, string>> = {
  "\x07": "a",
  "\b": "b",
  "\f": "f",
  "\n": "n",
  "\r": "r",
  "\t": "t",
  "\v": "v",
  '"': '"',
  "\\": "\\"
}

/** A name as git writes it into a header: quoted when a reader could mistake it. */
const renderName = (path: string): string => {
  const raw = encode(path)
  if (!/[\u0000-\u001f"\\\u007f-\u00ff]/.test(raw)) return raw
  const body = Array.from(raw, (byte) => {
    const letter = letters[byte]
    if (letter !== undefined) return `\\${letter}`
    const code = byte.charCodeAt(0)
    return code < 32 || code > 126 ? `\\${code.toString(8).padStart(3, "0")}` : byte
  })
  return `"${body.join("")}"`
}

const NO_NEWLINE = "\\ No newline at end of file\n"

/** One file's part of a git diff, with so many lines of context, or "" when nothing differs. */
export const renderDiff = (
  path: string,
  before: string | undefined,
  after: string | undefined,
  context = 3
): string => {
  if (before === after) return ""
  const edits = TextDiff.diff(splitLines(before ?? ""), splitLines(after ?? ""))
  const lines = edits.flatMap((edit) =>
    edit.items.map((text) => ({ mark: { Equal: " ", Insert: "+", Delete: "-" }[edit._tag], text }))
  )
  const near = lines.map((_, at) =>
    lines.slice(Math.max(0, at - context), at + context + 1).some(({ mark }) => mark !== " ")
  )
  const hunks: Array<string> = []
  let oldLine = 1
  let newLine = 1
  for (let at = 0; at < lines.length;) {
    const body: Array<string> = []
    const oldStart = oldLine
    const newStart = newLine
    for (; near[at] === true; at++) {
      const { mark, text } = lines[at] ?? { mark: " ", text: "" }
      body.push(text.endsWith("\n") ? mark + text : `${mark}${text}\n${NO_NEWLINE}`)
      if (mark !== "+") oldLine++
      if (mark !== "-") newLine++
    }
    if (body.length > 0) {
      const range = (start: number, end: number) => `${end === start ? start - 1 : start},${end - start}`
      hunks.push(`@@ -${range(oldStart, oldLine)} +${range(newStart, newLine)} @@\n${body.join("")}`)
    } else {
      at++
      oldLine++
      newLine++
    }
  }
  const name = (prefix: string): string => renderName(`${prefix}/${path}`)
  const tab = path.includes(" ") ? "\t" : ""
  const mode =
    before === undefined ? "new file mode 100644\n" : after === undefined ? "deleted file mode 100644\n" : ""
  const marks =
    hunks.length === 0
      ? ""
      : `--- ${before === undefined ? "/dev/null" : name("a") + tab}\n+++ ${after === undefined ? "/dev/null" : name("b") + tab}\n`
  return `diff --git ${name("a")} ${name("b")}\n${mode}${marks}${hunks.join("")}`
}
