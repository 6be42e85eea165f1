/**
 * What went wrong on the disk, in one line that names the place.
 */
import { Effect, PlatformError } from "effect"
import { errnoOf, wordsOf } from "../../domain/Errno.ts"
import { shownName } from "../../domain/Text.ts"
import { StoreError } from "../../services/RunStore.ts"

const reasons: Readonly<Record<string, StoreError["reason"]>> = {
  ENOSPC: "no_space",
  EDQUOT: "no_space",
  EFBIG: "no_space",
  EEXIST: "exists",
  ENOENT: "not_found",
  ELOOP: "invalid",
  ENOTDIR: "invalid",
  EISDIR: "invalid",
  ENAMETOOLONG: "invalid"
}

/** The store's word for a failure of the platform at `path`. */
const storeError = (path: string, error: PlatformError.PlatformError): StoreError =>
  new StoreError({
    reason: reasons[errnoOf(error) ?? ""] ?? "unwritable",
    path,
    message: `${wordsOf(error)}: ${shownName(path)}`,
    cause: error
  })

export const failAt = (path: string) =>
  Effect.mapError((error: PlatformError.PlatformError) => storeError(path, error))

/** Why a file says nothing, for a list of what a bundle lacks. */
export const whyOf = (error: StoreError): string =>
  PlatformError.isPlatformError(error.cause) ? wordsOf(error.cause) : error.message

export const invalid = (path: string, message: string): StoreError =>
  new StoreError({ reason: "invalid", path, message })

export const damaged = (path: string, message: string): StoreError =>
  new StoreError({ reason: "damaged", path, message })

export const isTaken = (error: StoreError): boolean => error.reason === "exists"
