/**
 * Ignore files as ripgrep reads them: the last matching line of a file decides, a deeper file beats a higher one, and
 * `.rgignore` beats `.ignore` beats `.gitignore`, at whatever depth they lie. Names are matched as bytes: `?` and `[!a]`
 * stand for one byte, not for one character.
 */
import { Glob } from "effect"
import { encode } from "../../domain/patch/ByteString.ts"
import { anchoredGlob } from "./Query.ts"

/** Strongest first. */
export const ignoreFileNames = [".rgignore", ".ignore", ".gitignore"] as const
export type IgnoreFileName = (typeof ignoreFileNames)[number]

interface Rule {
  readonly glob: Glob.Glob
  readonly keeps: boolean
  readonly onlyDirectories: boolean
}

/** The rules of one ignore file, last line first, matched against paths relative to its directory. */
export type Rules = ReadonlyArray<Rule>

const parseLine = (text: string): Rule | undefined => {
  if (text.startsWith("#")) return undefined
  let line = text.endsWith("\\ ") ? text : text.trimEnd()
  const keeps = line.startsWith("!")
  if (keeps) line = line.slice(1)
  const onlyDirectories = line.endsWith("/")
  if (onlyDirectories) line = line.slice(0, -1)
  if (line === "") return undefined
  // `a/**` is about what is in `a`, not about `a`.
  const pattern = line.endsWith("/**") ? `${line}/*` : line
  return { glob: anchoredGlob(encode(pattern)), keeps, onlyDirectories }
}

export const parseIgnoreFile = (text: string): Rules =>
  text
    .replace(/^\ufeff/, "")
    .split("\n")
    .map(parseLine)
    .filter((rule) => rule !== undefined)
    .toReversed()

/** One directory's ignore files, and those of the directories above it. */
export interface Level {
  /** Relative to the root, "" or with a trailing slash. */
  readonly prefix: string
  readonly rules: Readonly<Record<IgnoreFileName, Rules>>
  readonly above: Level | undefined
}

const verdict = (rules: Rules, path: string, directory: boolean): "ignore" | "keep" | undefined => {
  for (const rule of rules) {
    if (rule.onlyDirectories && !directory) continue
    if (Glob.match(rule.glob, path)) return rule.keeps ? "keep" : "ignore"
  }
  return undefined
}

/** Whether an entry of the directory is left out. Its own parents are not asked: they were, on the way down. */
export const ignores = (level: Level, path: string, directory: boolean): boolean => {
  for (const name of ignoreFileNames) {
    for (let at: Level | undefined = level; at !== undefined; at = at.above) {
      const said = verdict(at.rules[name], encode(path.slice(at.prefix.length)), directory)
      if (said !== undefined) return said === "ignore"
    }
  }
  return false
}
