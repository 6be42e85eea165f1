/**
 * The workspace's failures, made from those of the disk and of git.
 */
import type { PlatformError } from "effect"
import type { GitError } from "../../services/Git.ts"
import { WorkspaceError } from "../../services/Workspace.ts"
import { errnoOf } from "../fs/Files.ts"

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

const words: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  ENOTDIR: "is below something that is not a directory",
  EISDIR: "is a directory",
  ELOOP: "goes through too many symbolic links",
  ENAMETOOLONG: "is too long a name",
  EACCES: "may not be touched (permission denied)",
  EPERM: "may not be touched (not permitted)",
  EROFS: "is on a read-only disk",
  ENOSPC: "does not fit: the disk is full",
  EDQUOT: "does not fit: the disk quota is used up"
}

/** A failed call on a path of the workspace. */
export const onDisk =
  (path: string) =>
  (cause: PlatformError.PlatformError): WorkspaceError => {
    const code = errnoOf(cause) ?? ""
    return new WorkspaceError({
      reason: reasons[code] ?? "failed",
      message: `${path} ${words[code] ?? `cannot be used: ${cause.message}`}`,
      cause
    })
  }

/** A failure of ours to prepare or to record something. */
export const failed = (message: string, cause?: GitError | PlatformError.PlatformError): WorkspaceError =>
  new WorkspaceError({
    reason: "failed",
    message: cause === undefined ? message : `${message}: ${cause.message}`,
    ...(cause === undefined ? {} : { cause })
  })

/** A failed call of something that throws. */
export const thrown =
  (message: string) =>
  (cause: unknown): WorkspaceError =>
    new WorkspaceError({
      reason: "failed",
      message: `${message}: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause
    })

export const refused = (message: string): WorkspaceError =>
  new WorkspaceError({ reason: "refused_path", message })
