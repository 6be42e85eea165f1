/**
 * The failures of the in-memory file system, by the names that POSIX gives them.
 */
import { Data, Effect, PlatformError } from "effect"

const meanings = {
  EACCES: ["PermissionDenied", "permission denied"],
  EBADF: ["Unknown", "bad file descriptor"],
  EBUSY: ["Busy", "resource busy or locked"],
  EDQUOT: ["Unknown", "disk quota exceeded"],
  EEXIST: ["AlreadyExists", "file already exists"],
  EINVAL: ["Unknown", "invalid argument"],
  EIO: ["Unknown", "i/o error"],
  EISDIR: ["BadResource", "illegal operation on a directory"],
  ELOOP: ["BadResource", "too many symbolic links encountered"],
  ENAMETOOLONG: ["Unknown", "name too long"],
  ENOENT: ["NotFound", "no such file or directory"],
  ENOSPC: ["Unknown", "no space left on device"],
  ENOTDIR: ["BadResource", "not a directory"],
  ENOTEMPTY: ["Unknown", "directory not empty"],
  EPERM: ["PermissionDenied", "operation not permitted"],
  EROFS: ["Unknown", "read-only file system"],
  ERR_FS_CP_DIR_TO_NON_DIR: ["Unknown", "cannot overwrite a non-directory with a directory"],
  ERR_FS_CP_EINVAL: ["Unknown", "invalid source or destination"],
  ERR_FS_CP_NON_DIR_TO_DIR: ["Unknown", "cannot overwrite a directory with a non-directory"],
  ERR_FS_EISDIR: ["Unknown", "path is a directory"]
} as const satisfies Record<string, readonly [PlatformError.SystemErrorTag, string]>

export type ErrnoCode = keyof typeof meanings

/** Thrown inside the synchronous core and turned into a `PlatformError` by `attempt`: it never leaves this folder. */
export class Errno extends Data.TaggedError("Errno")<{ readonly code: ErrnoCode }> {
  override get message(): string {
    return `${this.code}: ${meanings[this.code][1]}`
  }
}

export const raise = (code: ErrnoCode): never => {
  throw new Errno({ code })
}

/** The error that the platform's own file system reports for this code; its cause carries the `code`. */
export const platformError = (
  method: string,
  pathOrDescriptor: string | number,
  errno: Errno
): PlatformError.PlatformError =>
  PlatformError.systemError({
    _tag: meanings[errno.code][0],
    module: "FileSystem",
    method,
    pathOrDescriptor,
    cause: errno
  })

/** Runs one step of the synchronous core. */
export const attempt = <A>(
  method: string,
  pathOrDescriptor: string | number,
  step: (now: number) => A
): Effect.Effect<A, PlatformError.PlatformError> =>
  Effect.clockWith((clock) =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(step(clock.currentTimeMillisUnsafe()))
      } catch (error) {
        return error instanceof Errno
          ? Effect.fail(platformError(method, pathOrDescriptor, error))
          : Effect.die(error)
      }
    })
  )
