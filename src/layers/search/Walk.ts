/**
 * Search without ripgrep, for machines that have no binary of it: the same files, in the same order, with the same
 * lines. It differs where a regular expression uses what only ripgrep's engine knows (refused), where invalid UTF-8
 * meets `.` (here one replacement character), where a lone carriage return ends a file, and where the first NUL of a
 * binary file comes after the limit was reached.
 */
import { createContext, Script } from "node:vm"
import { Effect, FileSystem, Option } from "effect"
import { Search, type SearchError, type SearchMatch, type SearchQuery } from "../../services/Search.ts"
import { ignoreFileNames, ignores, type Level, parseIgnoreFile } from "./IgnoreRules.ts"
import { compilePattern } from "./Pattern.ts"
import { limited, maxFileBytes, prepareQuery, shownLine, timedOut, tooSlow, withoutReturns } from "./Query.ts"

/** What the walk needs to know of a place. Anything that cannot be read counts as absent. */
export interface Tree {
  readonly entries: (directory: string) => Effect.Effect<ReadonlyArray<Entry>>
  /** Undefined for what is no regular file or larger than `max_bytes`. */
  readonly read: (path: string, max_bytes: number) => Effect.Effect<Uint8Array | undefined>
}
export interface Entry {
  readonly name: string
  readonly kind: "file" | "directory"
}

/** Of one file's lines against one expression: some expressions take for ever on some lines. */
const fileTimeoutMillis = 1000

const byName = (left: Entry, right: Entry): number =>
  Buffer.compare(Buffer.from(left.name), Buffer.from(right.name))

/** The text of a file as ripgrep sees it: by its byte order mark, else UTF-8. Undefined for a binary file. */
const textOf = (bytes: Uint8Array): string | undefined => {
  const [first, second] = bytes
  const encoding =
    first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8"
  const text = new TextDecoder(encoding).decode(bytes)
  return text.includes("\0") ? undefined : text
}

const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  return lines.map(withoutReturns)
}

/**
 * Tells which lines match. A carriage return inside a line ends what an expression can see, as under ripgrep's `--crlf`.
 * Runs in a context of its own, because only there can an expression be stopped.
 */
const makeMatcher = (pattern: RegExp): ((lines: ReadonlyArray<string>) => ReadonlyArray<number>) => {
  const sandbox: { lines: ReadonlyArray<string>; found: Array<number>; readonly pattern: RegExp } = {
    lines: [],
    found: [],
    pattern
  }
  const context = createContext(sandbox)
  const script = new Script(
    "for (let i = 0; i < lines.length; i++)" +
      " if (lines[i].split('\\r').some((part) => pattern.test(part))) found.push(i)"
  )
  return (lines) => {
    sandbox.lines = lines
    sandbox.found = []
    script.runInContext(context, { timeout: fileTimeoutMillis })
    return sandbox.found
  }
}

/** Searches a tree. */
export const searchTree = Effect.fn("Search.walk")(function* (tree: Tree, query: SearchQuery) {
  const prepared = yield* Effect.fromResult(prepareQuery(query))
  const match = makeMatcher(yield* Effect.fromResult(compilePattern(prepared)))
  const matches: Array<SearchMatch> = []
  const done = (): boolean => matches.length > query.limit
  const wanted = query.directory === "" ? [] : query.directory.split("/")

  const searchFile = Effect.fnUntraced(function* (path: string) {
    if (!prepared.counts(path)) return
    const bytes = yield* tree.read(path, maxFileBytes)
    const text = bytes === undefined ? undefined : textOf(bytes)
    if (text === undefined) return
    const lines = linesOf(text)
    const found = yield* Effect.try({ try: () => match(lines), catch: tooSlow })
    for (const at of found) matches.push({ path, line: at + 1, text: shownLine(lines[at] ?? "") })
  })

  const readLevel = Effect.fnUntraced(function* (
    prefix: string,
    above: Level | undefined,
    entries: ReadonlyArray<Entry>
  ) {
    const rules = { ".rgignore": noRules, ".ignore": noRules, ".gitignore": noRules }
    for (const name of ignoreFileNames) {
      if (!entries.some((entry) => entry.name === name && entry.kind === "file")) continue
      const bytes = yield* tree.read(prefix + name, maxFileBytes)
      if (bytes !== undefined) rules[name] = parseIgnoreFile(new TextDecoder().decode(bytes))
    }
    return { prefix, above, rules }
  })

  const visit = (
    directory: string,
    depth: number,
    above: Level | undefined
  ): Effect.Effect<void, SearchError> =>
    Effect.gen(function* () {
      const prefix = directory === "" ? "" : `${directory}/`
      const entries = yield* tree.entries(directory)
      const level: Level = yield* readLevel(prefix, above, entries)
      const inside = wanted[depth]
      for (const { kind, name } of entries.toSorted(byName)) {
        if (done()) return
        if (name === ".git" || (inside !== undefined && name !== inside)) continue
        const path = prefix + name
        if (ignores(level, path, kind === "directory")) continue
        yield* kind === "directory" ? visit(path, depth + 1, level) : searchFile(path)
      }
    })

  yield* visit("", 0, undefined)
  return limited(matches, query.limit)
}, timedOut)

const noRules = parseIgnoreFile("")

/** A directory on disk. Symlinks are not followed. */
const diskTree = (fs: FileSystem.FileSystem, root: string): Tree => {
  const at = (path: string): string => (path === "" ? root : `${root}/${path}`)
  return {
    entries: (directory) =>
      fs.readDirectoryEntries(at(directory)).pipe(
        Effect.map((entries) =>
          entries.flatMap(({ name, type }): ReadonlyArray<Entry> =>
            type === "File"
              ? [{ name, kind: "file" }]
              : type === "Directory"
                ? [{ name, kind: "directory" }]
                : []
          )
        ),
        Effect.orElseSucceed((): ReadonlyArray<Entry> => [])
      ),
    read: (path, max_bytes) =>
      fs.stat(at(path)).pipe(
        Effect.flatMap((info) =>
          info.type === "File" && info.size <= max_bytes ? fs.readFile(at(path)) : Effect.undefined
        ),
        Effect.option,
        Effect.map(Option.getOrUndefined)
      )
  }
}

export const makeWalk = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return Search.of({ search: (query) => searchTree(diskTree(fs, query.root), query) })
})
