/**
 * What stands in the user's tree at the paths of a patch.
 */
import { Effect, FileSystem, Path } from "effect"
import type { PatchedPath, SurveyedPath } from "../../domain/Apply.ts"
import { parentsOf, quotePath } from "../../domain/WorkspacePath.ts"
import type { GitLocation } from "../git/GitDirectory.ts"
import { displayName, git, splitNul } from "../git/GitBinary.ts"
import { infoAt } from "../fs/Files.ts"
import { nodeAt } from "../workspace/Contained.ts"
import { refused } from "./Fault.ts"
import { noAttributes, readAttributes, type Settings } from "./Settings.ts"
import { maxFileBytes } from "./Standing.ts"

/** Files of a directory that a patch may clear away. */
const maxInside = 10_000

/**
 * The nearest thing above a path that keeps files from being there: null when there is none, the path of a file when
 * there is. Everything else is refused: what lies behind it is not this repository's.
 */
const obstacleAbove = Effect.fnUntraced(function* (root: string, path: string) {
  const join = (yield* Path.Path).join
  for (const parent of parentsOf(path)) {
    const info = yield* infoAt(join(root, parent))
    if (info === undefined) return null
    if (info.type === "File") return parent
    if (info.type !== "Directory") {
      return yield* refused(
        `${quotePath(path)} is not applied: ${quotePath(parent)} is ${info.type === "SymbolicLink" ? "a symbolic link" : "no directory"} in your tree`
      )
    }
    if ((yield* infoAt(join(root, parent, ".git"))) !== undefined) {
      return yield* refused(
        `${quotePath(path)} is not applied: ${quotePath(parent)} is a repository of its own, or a submodule`
      )
    }
  }
  return null
})

/** The files below a directory; null when there is anything else, or too much. */
const filesInside = Effect.fnUntraced(function* (root: string, directory: string) {
  const fs = yield* FileSystem.FileSystem
  const join = (yield* Path.Path).join
  const files: Array<string> = []
  const queue = [directory]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const entries = yield* fs.readDirectoryEntries(join(root, next))
    if (entries.length === 0 || files.length > maxInside) return null
    for (const entry of entries) {
      const at = `${next}/${entry.name}`
      if (entry.name === ".git") return null
      if (entry.type === "Directory") queue.push(at)
      else if (entry.type === "File" || entry.type === "SymbolicLink") files.push(at)
      else return null
    }
  }
  return files
})

/** What the index says of paths that git is not to look at. */
const marksIn = Effect.fnUntraced(function* (location: GitLocation, root: string) {
  const listed = yield* git({
    cwd: root,
    args: [`--git-dir=${location.git_dir}`, `--work-tree=${root}`, "ls-files", "-v", "-z"]
  })
  const marks = new Map<string, NonNullable<SurveyedPath["mark"]>>()
  for (const line of splitNul(listed)) {
    // Lower case is git's sign for assume-unchanged.
    if (/^[Ss] /.test(line)) marks.set(displayName(line.slice(2)), "skip-worktree")
    else if (/^[a-z] /.test(line)) marks.set(displayName(line.slice(2)), "assume-unchanged")
  }
  return marks
})

export const survey = Effect.fnUntraced(function* (
  location: GitLocation,
  root: string,
  settings: Settings,
  patched: ReadonlyArray<PatchedPath>
) {
  const attributes = yield* readAttributes(
    location,
    root,
    patched.map((each) => each.path)
  )
  const marks = yield* marksIn(location, root)
  return yield* Effect.forEach(
    patched,
    Effect.fnUntraced(function* (each: PatchedPath) {
      const obstacle = yield* obstacleAbove(root, each.path)
      const now =
        obstacle === null
          ? yield* nodeAt(root, each.path, maxFileBytes).pipe(
              Effect.mapError((error) => refused(error.message, error))
            )
          : undefined
      const said = attributes.get(each.path) ?? noAttributes
      const conversions = (["filter", "working-tree-encoding"] as const).filter(
        (name) => said[name] !== "unspecified" && said[name] !== "unset"
      )
      const [conversion] = conversions.map((name) => `${name}=${said[name]}`)
      const surveyed: SurveyedPath = {
        ...each,
        now,
        obstacle,
        inside: now?._tag === "Directory" ? yield* filesInside(root, each.path) : null,
        rules: {
          text: said.text,
          eol: said.eol,
          autocrlf: settings.get("core.autocrlf") ?? null,
          core_eol: settings.get("core.eol") ?? null
        },
        conversion: conversion ?? null,
        modes: !/^(?:false|no|off|0)$/i.test(settings.get("core.filemode") ?? "true"),
        mark: marks.get(each.path) ?? null
      }
      return surveyed
    }),
    { concurrency: 8 }
  )
})
