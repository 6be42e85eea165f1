/**
 * Branded identifiers. A brand is earned by decoding: nothing else makes one.
 */
import { Schema } from "effect"

/** One safe path segment, so that a run's directory can be named after it. */
export const RunId = Schema.String.check(
  Schema.isPattern(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}$/, {
    expected: "one path segment of A-Z a-z 0-9 . _ -"
  })
).pipe(Schema.brand("RunId"))
export type RunId = typeof RunId.Type

/** A full commit id: 40 hex digits, or 64 in a SHA-256 repository. */
export const CommitId = Schema.String.check(
  Schema.isPattern(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, { expected: "a full commit id" })
).pipe(Schema.brand("CommitId"))
export type CommitId = typeof CommitId.Type

/** A git tree id in looplane's own store: the state of a workspace. */
export const TreeId = Schema.String.check(
  Schema.isPattern(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, { expected: "a full tree id" })
).pipe(Schema.brand("TreeId"))
export type TreeId = typeof TreeId.Type

/** The provider's id of a tool call, or ours when it sent none. Unique in one run. */
export const ToolCallId = Schema.String.check(Schema.isNonEmpty()).pipe(Schema.brand("ToolCallId"))
export type ToolCallId = typeof ToolCallId.Type

/** The SHA-256 of some exact bytes, as 64 hex digits. */
export const Digest = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, { expected: "64 hex digits" })
).pipe(Schema.brand("Digest"))
export type Digest = typeof Digest.Type
