/**
 * The workspace's failures, made from those of the disk and of git.
 */
import { PlatformError } from "effect"
import { errnoOf, errnoWords, wordsOf } from "../../domain/Errno.ts"
import type { GitError } from "../../services/Git.ts"
import { WorkspaceError } from "../../services/Workspace.ts"

const reasons: Readonly<Record<string, WorkspaceError["reason"]>> = {
  ENOENT: "not_found",
  ENOTDIR: "not_found",
  EISDIR: "not_a_file",
  ELOOP: "refused_path",
  ENAMETOOLONG: "refused_path",
  EACCES: "unwritable",
  EPERM: "unwritable",
  EROFS: "unwritable",
  ENOSPC: "unwritable",
  EDQUOT: "unwritable"
}

/** A failed call on a path of the workspace. */
export const onDisk =
  (path: string) =>
  (cause: PlatformError.PlatformError): WorkspaceError => {
    return new WorkspaceError({
      reason: reasons[errnoOf(cause) ?? ""] ?? "failed",
      message: `${path} cannot be used: ${wordsOf(cause)}`,
      cause
    })
  }

/** The reason in words of ours, where the system gave it. */
const whyOf = (cause: unknown): string => {
  if (PlatformError.isPlatformError(cause)) return wordsOf(cause)
  if (!(cause instanceof Error)) return String(cause)
  const code = "code" in cause ? cause.code : undefined
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? errnoWords(code) : cause.message
}

/** A failure of ours to prepare or to record something. */
export const failed = (message: string, cause?: GitError | PlatformError.PlatformError): WorkspaceError =>
  new WorkspaceError({
    reason: "failed",
    message: cause === undefined ? message : `${message}: ${whyOf(cause)}`,
    ...(cause === undefined ? {} : { cause })
  })

/** A failed call of something that throws. */
export const thrown =
  (message: string) =>
  (cause: unknown): WorkspaceError =>
    new WorkspaceError({
      reason: "failed",
      message: `${message}: ${whyOf(cause)}`,
      cause
    })

export const refused = (message: string): WorkspaceError =>
  new WorkspaceError({ reason: "refused_path", message })
