/**
 * The system's codes of failed calls in words of ours: what follows a colon.
 */
import type { PlatformError } from "effect"

/** The system's own code of a failed call, such as "EACCES". */
export const errnoOf = (error: PlatformError.PlatformError): string | undefined => {
  const cause = error.reason.cause
  return typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined
}

const words: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied"],
  ["EBUSY", "it is in use"],
  ["EDQUOT", "the disk quota is used up"],
  ["EEXIST", "there is something already"],
  ["EFBIG", "no file may be that large"],
  ["EIO", "the disk fails"],
  ["EISDIR", "a directory is in the way"],
  ["ELOOP", "symbolic links are not followed here, or there are too many of them"],
  ["EMFILE", "too many open files"],
  ["ENAMETOOLONG", "the name is too long"],
  ["ENFILE", "too many open files"],
  ["ENOENT", "there is no such file or directory"],
  ["ENOSPC", "no space left on the device"],
  ["ENOTDIR", "something on this path is no directory"],
  ["ENOTEMPTY", "a directory with other files in it is in the way"],
  ["EPERM", "not permitted"],
  ["EROFS", "the disk is read-only"],
  ["ETXTBSY", "it is a program that is running"],
  ["EXDEV", "it lies on another disk"]
])

export const errnoWords = (code: string): string => words.get(code) ?? `the system says ${code}`

/** Why a call of the platform failed. */
export const wordsOf = (error: PlatformError.PlatformError): string => {
  const code = errnoOf(error)
  return code === undefined ? error.message : errnoWords(code)
}
