/**
 * Files of plain unified diffs: the header is a "---" and a "+++" line.
 */
import { Result } from "effect"
import type { ByteString } from "./ByteString.ts"
import type { DiffKind, PatchText } from "./Diff.ts"
import { finishFile, malformed, type ReadFile } from "./DiffHeader.ts"
import { readHunks } from "./DiffHunks.ts"
import {
  DEV_NULL,
  dropPrefix,
  hasDefaultPrefix,
  havePrefixes,
  isEpoch,
  type MarkedName,
  markedName
} from "./DiffNames.ts"
import type { PatchError } from "./PatchError.ts"
import { quoteLine } from "./Quote.ts"

/** A file that begins with "---" and "+++", as `diff -u` and models write it. */
export const readPlainFile = (text: PatchText, at: number): Result.Result<ReadFile, PatchError> =>
  Result.gen(function* () {
    const minus = markedName(text.header(at)?.slice(4) ?? "", true)
    const plus = markedName(text.header(at + 1)?.slice(4) ?? "", true)
    if (minus === undefined || plus === undefined) return yield* malformed(at, "a file name is missing")
    const created = minus.name === DEV_NULL || isEpoch(minus.stamp)
    const deleted = plus.name === DEV_NULL || (!created && isEpoch(plus.stamp))
    if (minus.name === DEV_NULL && plus.name === DEV_NULL)
      return yield* malformed(at, "both names are /dev/null")
    const { name: path, prefixed } = yield* plainName(at, minus, plus)
    const { hunks, next } = yield* readHunks(text, at + 2)
    if (hunks.length === 0) {
      return yield* malformed(at + 2, 'after "+++" a hunk must follow, starting like "@@ -12,5 +12,6 @@"')
    }
    const kind: DiffKind = created ? "create" : deleted ? "delete" : "modify"
    const oldPath = created ? undefined : path
    const newPath = deleted ? undefined : path
    const modes = { oldMode: undefined, newMode: undefined }
    return yield* finishFile(
      { kind, oldPath, newPath, ...modes, hunks, binary: false, plain: true, prefixed },
      at,
      next
    )
  })

interface BareName {
  readonly name: ByteString
  readonly prefixed: boolean
}

const plainName = (at: number, minus: MarkedName, plus: MarkedName): Result.Result<BareName, PatchError> => {
  if (minus.name === DEV_NULL) return Result.succeed(single(plus.name))
  if (plus.name === DEV_NULL) return Result.succeed(single(minus.name))
  const prefixed = havePrefixes(minus.name, plus.name)
  const oldName = prefixed ? dropPrefix(minus.name) : minus.name
  const newName = prefixed ? dropPrefix(plus.name) : plus.name
  if (oldName === newName || oldName === `${newName}.orig`) return Result.succeed({ name: newName, prefixed })
  const names = `${quoteLine(oldName)} and ${quoteLine(newName)}`
  return malformed(
    at,
    `the names ${names} differ: for a rename write "diff --git", "rename from" and "rename to"`
  )
}

const single = (name: ByteString): BareName => {
  const prefixed = hasDefaultPrefix(name)
  return { name: prefixed ? dropPrefix(name) : name, prefixed }
}
