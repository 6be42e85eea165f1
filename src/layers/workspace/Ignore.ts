/**
 * The ignore rules of a tree as one list of patterns. The `.gitignore` files of a work tree are in the agent's hands;
 * these are not: git is given this list and told to read no other.
 */
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { byBytes } from "../git/GitBinary.ts"

export interface IgnoreFile {
  /** The directory that holds it, "" for the root. */
  readonly directory: ByteString
  readonly content: ByteString
}

const escapeGlob = (text: ByteString): ByteString => text.replace(/[\\*?[\]]/g, "\\$&")

const lines = (content: ByteString): ReadonlyArray<ByteString> =>
  content
    .replace(/^\u00ef\u00bb\u00bf/, "")
    .split("\n")
    .map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line))
    .filter((line) => line !== "" && !line.startsWith("#") && !line.includes("\0"))

/** A pattern of one directory as a pattern of the root. */
const anchor = (directory: ByteString, line: ByteString): ByteString => {
  if (directory === "") return line
  const negated = line.startsWith("!")
  const pattern = negated ? line.slice(1) : line
  const slash = pattern.indexOf("/")
  const anchored = slash >= 0 && slash < pattern.trimEnd().length - 1
  const below = anchored ? pattern.replace(/^\//, "") : `**/${pattern}`
  return `${negated ? "!" : ""}/${escapeGlob(directory)}/${below}`
}

/**
 * One list with the meaning that the files have together: a deeper file speaks after, and so over, the ones above it.
 * `first` are patterns that every file overrides. A directory whose name holds a line break cannot be written in such a
 * list: its rules are dropped, so its files are recorded rather than hidden.
 */
export const excludesOf = (files: ReadonlyArray<IgnoreFile>, first: ByteString): ByteString => {
  const depth = (directory: ByteString): number => (directory === "" ? 0 : directory.split("/").length)
  const ordered = files
    .filter((file) => !/[\n\r]/.test(file.directory))
    .toSorted((a, b) => depth(a.directory) - depth(b.directory) || byBytes(a.directory, b.directory))
  const patterns = [
    ...lines(first),
    ...ordered.flatMap((file) => lines(file.content).map((line) => anchor(file.directory, line)))
  ]
  return patterns.map((pattern) => `${pattern}\n`).join("")
}
