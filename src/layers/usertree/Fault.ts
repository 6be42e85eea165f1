/**
 * Failures of the user's tree, and the hook by which tests stop an apply at any step of it.
 */
import { Context, Effect, type PlatformError } from "effect"
import { wordsOf } from "../../domain/Errno.ts"
import type { GitError } from "../../services/Git.ts"
import type { StoreError } from "../../services/RunStore.ts"
import { UserTreeError } from "../../services/UserTree.ts"
import type { WorkspaceError } from "../../services/Workspace.ts"

/** Called with the name of every step before it is taken. */
export const ApplySteps = Context.Reference<(step: string) => Effect.Effect<void>>(
  "looplane/layers/usertree/ApplySteps",
  { defaultValue: () => () => Effect.void }
)

export const reached = Effect.fnUntraced(function* (step: string) {
  yield* (yield* ApplySteps)(step)
})

const errorOf =
  (reason: UserTreeError["reason"]) =>
  (message: string, cause?: unknown): UserTreeError =>
    new UserTreeError({ reason, message, ...(cause === undefined ? {} : { cause }) })

export const refused = errorOf("refused")
export const failed = errorOf("failed")

export type Cause = GitError | PlatformError.PlatformError | StoreError | UserTreeError | WorkspaceError

/** What went wrong in words of ours; a failure that is ours already stays what it is. */
export const explained =
  (reason: UserTreeError["reason"], what: string) =>
  (cause: Cause): UserTreeError =>
    cause._tag === "UserTreeError"
      ? cause
      : errorOf(reason)(`${what}: ${cause._tag === "PlatformError" ? wordsOf(cause) : cause.message}`, cause)
