/**
 * Why an edit was refused. Every refusal goes back to the model, so the message says what to do next.
 */
import { Result, Schema } from "effect"

export const PatchReason = Schema.Literals([
  /** No patch, or one that touches no file; an empty text to search for. */
  "empty",
  /** Breaks the format's grammar. */
  "malformed",
  /** Ends in the middle. */
  "truncated",
  /** A hunk's header and its body disagree about the number of lines. */
  "counts",
  "invalid_path",
  "not_found",
  "exists",
  /** A directory, a device, or something behind a symlink. */
  "not_a_file",
  /** The text or the context does not occur. */
  "no_match",
  /** It occurs in several places. */
  "ambiguous",
  "no_change",
  /** The file or the patch carries binary data. */
  "binary",
  /** Not valid UTF-8 or UTF-16. */
  "encoding",
  "too_large",
  /** Legal in the format, never done here: symlinks, gitlinks, combined diffs. */
  "unsupported",
  /** Two parts of one patch contradict each other. */
  "conflict"
])
export type PatchReason = typeof PatchReason.Type

export class PatchError extends Schema.TaggedError<PatchError>()("PatchError", {
  reason: PatchReason,
  /** The workspace path that the refusal is about, where there is one. */
  path: Schema.optionalKey(Schema.String),
  message: Schema.String
}) {}

/** A failed result, for `return yield* refuse(...)` and `return refuse(...)` alike. */
export const refuse = (
  reason: PatchReason,
  message: string,
  path?: string
): Result.Result<never, PatchError> =>
  Result.fail(new PatchError(path === undefined ? { reason, message } : { reason, path, message }))
