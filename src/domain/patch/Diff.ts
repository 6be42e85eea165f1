/**
 * A unified diff as data.
 */
import type { ByteString } from "./ByteString.ts"

export interface DiffLine {
  readonly kind: "context" | "remove" | "add"
  /** With its ending; without one when the file ends there. */
  readonly text: ByteString
}

export interface DiffHunk {
  /** As in the header: 1-based; the line before the gap when the count is 0. */
  readonly oldStart: number
  readonly oldCount: number
  readonly newCount: number
  readonly lines: ReadonlyArray<DiffLine>
  /** The line of the patch that the header is on, from 1. */
  readonly at: number
}

export type DiffKind = "modify" | "create" | "delete" | "rename" | "copy"

export interface DiffFile {
  readonly kind: DiffKind
  /** Without prefix, as bytes; undefined for a file that is created. Not checked: applying checks. */
  readonly oldPath: ByteString | undefined
  /** Undefined for a file that is deleted. */
  readonly newPath: ByteString | undefined
  /** Octal, as git writes them; undefined where the patch does not say. */
  readonly oldMode: string | undefined
  readonly newMode: string | undefined
  readonly hunks: ReadonlyArray<DiffHunk>
  /** Binary content, given or only mentioned: there are no hunks then. */
  readonly binary: boolean
  /** Without a `diff --git` line. */
  readonly plain: boolean
  /** The names came with prefixes such as a/ and b/, which are dropped. */
  readonly prefixed: boolean
  readonly additions: number
  readonly deletions: number
  /** The line of the patch that the file begins on, from 1. */
  readonly at: number
}

/** The patch's lines with a way to see one as a header: without its ending. */
export interface PatchText {
  readonly lines: ReadonlyArray<ByteString>
  readonly header: (at: number) => ByteString | undefined
}
