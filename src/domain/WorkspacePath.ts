/**
 * What a path given by a model, a patch or a tool call may look like before any disk is asked: relative to the workspace
 * root, inside it, and nowhere near a git directory. Containment through symlinks is the workspace's own business.
 */
import { Result } from "effect"
import { byteLength } from "./Text.ts"

/** Linux's own limits, in bytes of UTF-8. Refusing here gives a clean answer where the kernel would give ENAMETOOLONG. */
const MAX_PATH_BYTES = 4096
const MAX_SEGMENT_BYTES = 255

/** Code points that HFS+ drops from names, so that ".g<U+200C>it" opens ".git" there. */
const ignoredByHfs = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

const controlCharacter = /[\u0000-\u0008\u000a-\u001f\u007f]/

/** A path as it is shown in messages: quoted, escaped, one line, bounded. */
export const quotePath = (path: string): string =>
  JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)

/**
 * Whether a segment opens a git directory on any file system: other case, trailing dots and blanks (Windows), an NTFS
 * stream or short name, characters that HFS+ ignores. Judged on every platform, because a tree travels.
 */
export const isGitSegment = (segment: string): boolean => {
  const stream = segment.indexOf(":")
  const name = (stream < 0 ? segment : segment.slice(0, stream)).replace(ignoredByHfs, "").toLowerCase()
  let end = name.length
  while (end > 0 && (name[end - 1] === "." || name[end - 1] === " ")) end--
  const bare = name.slice(0, end)
  return bare === ".git" || /^git~\d{1,6}$/.test(bare)
}

const check = (input: string, directory: boolean): Result.Result<string, string> => {
  const shown = quotePath(input)
  if (input === "") return Result.fail("the path is empty: give one relative to the workspace root")
  if (input.includes("\0")) return Result.fail(`${shown} contains a NUL character`)
  if (!input.isWellFormed()) return Result.fail(`${shown} is not valid Unicode`)
  if (controlCharacter.test(input)) return Result.fail(`${shown} contains a control character`)
  if (input.includes("\\")) return Result.fail(`${shown} contains a backslash: separate directories with "/"`)
  if (input.startsWith("/") || /^[A-Za-z]:/.test(input) || /^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(input)) {
    return Result.fail(`${shown} is absolute: give a path relative to the workspace root`)
  }
  if (input.startsWith("~")) return Result.fail(`${shown} starts with "~": home directories are out of reach`)
  if (byteLength(input) > MAX_PATH_BYTES)
    return Result.fail(`${shown} is longer than ${MAX_PATH_BYTES} bytes`)
  const segments: Array<string> = []
  for (const segment of input.split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment === "..") {
      if (segments.pop() === undefined) return Result.fail(`${shown} leads out of the workspace`)
      continue
    }
    if (isGitSegment(segment))
      return Result.fail(`${shown} leads into a git directory, which tools never touch`)
    if (byteLength(segment) > MAX_SEGMENT_BYTES) {
      return Result.fail(`${shown} has a name longer than ${MAX_SEGMENT_BYTES} bytes`)
    }
    segments.push(segment)
  }
  const last = input.slice(input.lastIndexOf("/") + 1)
  if (!directory && segments.length === 0) return Result.fail(`${shown} is the workspace itself, not a file`)
  if (!directory && (last === "" || last === "." || last === "..")) {
    return Result.fail(`${shown} names a directory: give the path of a file`)
  }
  const first = segments[0]
  if (first !== undefined && first.startsWith("~")) {
    return Result.fail(`${shown} starts with "~": home directories are out of reach`)
  }
  return Result.succeed(segments.length === 0 ? "." : segments.join("/"))
}

/**
 * The normalised form of a file's path ("./a//b/../c" is "a/c"), or one line for the model that says why it is refused.
 */
export const checkWorkspacePath = (input: string): Result.Result<string, string> => check(input, false)

/** As `checkWorkspacePath`, for a directory: "." is the workspace itself and a trailing slash is fine. */
export const checkWorkspaceDirectory = (input: string): Result.Result<string, string> => check(input, true)

/** The directories above a normalised path, outermost first: "a/b/c" has "a" and "a/b". */
export const parentsOf = (path: string): ReadonlyArray<string> => {
  const parents: Array<string> = []
  for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
    parents.push(path.slice(0, slash))
  }
  return parents
}
