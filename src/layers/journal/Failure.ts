/**
 * What went wrong on the disk, in one line that names the place.
 */
import { Effect, type PlatformError } from "effect"
import { StoreError } from "../../services/RunStore.ts"

const codeOf = (error: PlatformError.PlatformError): string | null => {
  const { cause } = error.reason
  return typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : null
}

const describe = (error: PlatformError.PlatformError): readonly [StoreError["reason"], string] => {
  switch (codeOf(error)) {
    case "ENOSPC":
      return ["no_space", "no space left on the device of"]
    case "EDQUOT":
      return ["no_space", "the disk quota is used up at"]
    case "EFBIG":
      return ["no_space", "no file may be that large:"]
    case "EROFS":
      return ["unwritable", "read-only file system at"]
    case "EACCES":
    case "EPERM":
      return ["unwritable", "no permission at"]
    case "EEXIST":
      return ["exists", "there is already a"]
    case "ENOENT":
      return ["not_found", "there is no"]
    case "ELOOP":
      return ["invalid", "symbolic links are not followed here:"]
    case "ENOTDIR":
      return ["invalid", "something on this path is no directory:"]
    case "EISDIR":
      return ["invalid", "a directory is in the place of the file"]
    case "ENAMETOOLONG":
      return ["invalid", "the name is too long:"]
    case "EMFILE":
    case "ENFILE":
      return ["unwritable", "too many open files, so there is no way to"]
    case "EIO":
      return ["unwritable", "the disk fails at"]
    default:
      return ["unwritable", `${codeOf(error) ?? error.reason._tag} at`]
  }
}

/** The store's word for a failure of the platform at `path`. */
const storeError = (path: string, error: PlatformError.PlatformError): StoreError => {
  const [reason, words] = describe(error)
  return new StoreError({ reason, path, message: `${words} ${path}`, cause: error })
}

export const failAt = (path: string) =>
  Effect.mapError((error: PlatformError.PlatformError) => storeError(path, error))

export const invalid = (path: string, message: string): StoreError =>
  new StoreError({ reason: "invalid", path, message })

export const damaged = (path: string, message: string): StoreError =>
  new StoreError({ reason: "damaged", path, message })

export const isTaken = (error: StoreError): boolean => error.reason === "exists"
