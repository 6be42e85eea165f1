/**
 * Applying a "*** Begin Patch" patch to the overlay: every chunk goes to the one place that its lines fit, and the lines
 * it does not change keep their bytes, endings included.
 */
import { Result } from "effect"
import { quotePath } from "../WorkspacePath.ts"
import { BOM, type ByteString, decode, fromBytes, toBytes } from "./ByteString.ts"
import type { CodexChunk, CodexOperation } from "./CodexPatch.ts"
import { locateChunk, type Target, targetOf, withoutBom } from "./CodexSearch.ts"
import { checkParents, type Overlay, requireFile, requireFree } from "./FileSet.ts"
import { endingOf, splitAnyLines, splitLines } from "./Lines.ts"
import { type PatchError, refuse } from "./PatchError.ts"
import { checkRawPath } from "./PatchPath.ts"
import { type Splice, spliceLines } from "./Splice.ts"

/** The ending that most lines have; of equally frequent ones, the one met first. */
const usualEnding = (lines: ReadonlyArray<ByteString>): string => {
  const counts = new Map<string, number>()
  for (const line of lines) {
    const ending = endingOf(line)
    if (ending !== "") counts.set(ending, (counts.get(ending) ?? 0) + 1)
  }
  let usual = "\n"
  let most = 0
  for (const [ending, count] of counts) {
    if (count > most) {
      usual = ending
      most = count
    }
  }
  return usual
}

const spliceOf = (
  target: Target,
  chunk: CodexChunk,
  start: number,
  length: number,
  ending: string
): Splice => {
  const lines: Array<ByteString> = []
  let at = start
  for (const line of chunk.lines.slice(0, length)) {
    if (line.kind === "add") lines.push(withoutBom(target, line.text) + ending)
    else if (line.kind === "context") lines.push(target.lines[at++] ?? "")
    else at++
  }
  return { start, count: at - start, lines }
}

const applyChunks = (
  path: string,
  target: Target,
  chunks: ReadonlyArray<CodexChunk>
): Result.Result<ByteString, PatchError> =>
  Result.gen(function* () {
    const ending = usualEnding(target.lines)
    const splices: Array<Splice> = []
    let cursor = 0
    for (const chunk of chunks) {
      const place = yield* locateChunk(path, target, chunk, cursor)
      const splice = spliceOf(target, chunk, place.start, place.length, ending)
      splices.push(splice)
      cursor = place.next
    }
    return spliceLines(target.lines, splices, (line) => (endingOf(line) === "" ? line + ending : line)) ?? ""
  })

const update = (
  path: string,
  content: ByteString,
  chunks: ReadonlyArray<CodexChunk>
): Result.Result<ByteString, PatchError> =>
  Result.gen(function* () {
    if (chunks.length === 0) return content
    if (content.includes("\0"))
      return yield* refuse("binary", `${quotePath(path)} is binary: it contains NUL bytes`, path)
    if (decode(content) === undefined) {
      return yield* refuse(
        "encoding",
        `${quotePath(path)} is not valid UTF-8: use a unified diff on its ASCII lines`,
        path
      )
    }
    const mark = content.startsWith(BOM) ? BOM : ""
    const text = content.slice(mark.length)
    const plain = applyChunks(path, targetOf(splitLines(text), mark !== ""), chunks)
    // Where a lone "\r" ends lines too, the model saw more lines than there are "\n".
    const retry = Result.isFailure(plain) && plain.failure.reason === "no_match" && /\r(?!\n)/.test(text)
    const other = retry ? applyChunks(path, targetOf(splitAnyLines(text), mark !== ""), chunks) : plain
    return mark + (yield* Result.isSuccess(other) ? other : plain)
  })

/** Applies one operation to the overlay. An existing file is never overwritten by a new or a moved one. */
export const applyCodexOperation = (
  overlay: Overlay,
  operation: CodexOperation
): Result.Result<void, PatchError> =>
  Result.gen(function* () {
    const path = yield* checkRawPath(operation.path)
    yield* checkParents(overlay, path)
    switch (operation._tag) {
      case "Add": {
        yield* requireFree(overlay, path)
        if (operation.content.includes("\0")) {
          return yield* refuse("binary", `${quotePath(path)}: a patch cannot write NUL bytes`, path)
        }
        return overlay.write(path, toBytes(operation.content), false)
      }
      case "Delete": {
        yield* requireFile(overlay.current(path), path)
        return overlay.remove(path)
      }
      case "Update": {
        const moveTo = operation.moveTo === undefined ? path : yield* checkRawPath(operation.moveTo)
        const file = yield* requireFile(overlay.current(path), path)
        const before = fromBytes(file.bytes)
        const after = yield* update(path, before, operation.chunks)
        if (moveTo !== path) {
          yield* checkParents(overlay, moveTo)
          yield* requireFree(overlay, moveTo)
          overlay.remove(path)
        }
        return overlay.write(moveTo, after === before ? file.bytes : toBytes(after), file.executable)
      }
    }
  })
