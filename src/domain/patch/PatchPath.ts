/**
 * A path as a patch names it.
 */
import { Result } from "effect"
import { checkWorkspacePath, quotePath } from "../WorkspacePath.ts"
import { type ByteString, decode, decodeLossy } from "./ByteString.ts"
import { type PatchError, refuse } from "./PatchError.ts"

const checkPatchPath = (path: string): Result.Result<string, PatchError> => {
  if (path.split("/").includes("..")) {
    return refuse(
      "invalid_path",
      `${quotePath(path)} contains "..": name files relative to the workspace root`,
      path
    )
  }
  return Result.match(checkWorkspacePath(path), {
    onFailure: (message) => refuse("invalid_path", message, path),
    onSuccess: (normal) => Result.succeed(normal)
  })
}

/**
 * What `checkWorkspacePath` accepts, without any "..". File names need not be UTF-8; those that can be edited are.
 */
export const checkRawPath = (raw: ByteString): Result.Result<string, PatchError> => {
  const path = decode(raw)
  return path === undefined
    ? refuse(
        "invalid_path",
        `${quotePath(decodeLossy(raw))} is not valid UTF-8: such a name cannot be edited`
      )
    : checkPatchPath(path)
}
