/**
 * Search by ripgrep. Nothing of the user's machine has a say: no configuration, no global or parent ignore files, no
 * `.git/info/exclude`, an empty environment.
 */
import { Effect, Fiber, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { boundText } from "../../domain/Text.ts"
import { Search, SearchError, type SearchQuery } from "../../services/Search.ts"
import { invalidPattern, limited, maxFileBytes, type PreparedQuery, prepareQuery, timedOut } from "./Query.ts"
import { makeRipgrepOutput } from "./RipgrepOutput.ts"

/** Longer than any line that is shown, so that ripgrep's own ending of a cut line never is. */
const maxColumns = 2000
const maxErrorBytes = 4096

/**
 * Excludes everything beside a directory. An including glob would bring ignored files back, so the complement of each
 * name is spelled out: for `src` that is `[!s]*`, `s`, `s[!r]*`, `sr`, `sr[!c]*`, `src?*`. A name that a glob cannot
 * spell is left to the path filter.
 */
export const globsBeside = (directory: string): ReadonlyArray<string> => {
  const globs: Array<string> = []
  let parent = ""
  for (const name of directory === "" ? [] : directory.split("/")) {
    if (!/^[A-Za-z0-9._-]+$/.test(name)) break
    for (let at = 0; at < name.length; at++) {
      const start = name.slice(0, at)
      if (at > 0) globs.push(`!${parent}/${start}`)
      globs.push(`!${parent}/${start}[!${name.charAt(at)}]*`)
    }
    globs.push(`!${parent}/${name}?*`)
    parent = `${parent}/${name}`
  }
  return globs
}

const argumentsOf = (query: PreparedQuery): ReadonlyArray<string> => [
  "--no-config",
  "--no-messages",
  "--no-require-git",
  "--no-ignore-global",
  "--no-ignore-exclude",
  "--no-ignore-parent",
  "--hidden",
  ...[...globsBeside(query.directory), "!.git"].flatMap((glob) => ["--glob", glob]),
  `--max-filesize=${maxFileBytes}`,
  `--max-columns=${maxColumns}`,
  "--max-columns-preview",
  // Read through a buffer, a file is judged binary by all of its bytes; mapped, by the first and the matching ones.
  "--no-mmap",
  "--crlf",
  "--sort=path",
  "--color=never",
  "--no-heading",
  "--with-filename",
  "--line-number",
  "--null",
  ...(query.regex ? [] : ["--fixed-strings"]),
  ...(query.case_sensitive ? ["--case-sensitive"] : ["--ignore-case"]),
  "--",
  query.query,
  // Without a path, and with a pipe as its input, ripgrep would read that for ever.
  "."
]

/** Exit 0 and 1 are answers. 2 without a word is too: some file could not be read, and that is not worth the rest. */
const judge = (query: PreparedQuery, exitCode: number, stderr: string): SearchError | undefined => {
  if (exitCode === 0 || exitCode === 1 || (exitCode === 2 && stderr === "")) return undefined
  const said = stderr.replace(/^rg: /, "").trim()
  return exitCode === 2 && query.regex
    ? invalidPattern(`the regular expression is not valid: ${said}`)
    : new SearchError({ reason: "failed", message: `ripgrep failed with exit code ${exitCode}: ${said}` })
}

/** Search with the ripgrep at a path. */
export const makeRipgrep = (binary: string) =>
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner

    /** Ends ripgrep, by closing its scope, as soon as there are more matches than wanted. */
    const run = Effect.fnUntraced(function* (query: PreparedQuery) {
      const handle = yield* spawner.spawn(
        ChildProcess.make(binary, argumentsOf(query), {
          cwd: query.root,
          env: {},
          stdin: "ignore",
          forceKillAfter: "500 millis"
        })
      )
      let stderr = ""
      const errors = yield* handle.stderr.pipe(
        Stream.decodeText(),
        Stream.runForEach((text) =>
          Effect.sync(() => {
            stderr = boundText(stderr + text, maxErrorBytes)
          })
        ),
        Effect.forkScoped
      )
      const output = makeRipgrepOutput(query.counts)
      yield* handle.stdout.pipe(
        Stream.runForEachWhile((chunk) =>
          Effect.sync(() => {
            output.push(chunk)
            return output.matches.length <= query.limit
          })
        )
      )
      if (output.matches.length <= query.limit) {
        output.end()
        yield* Fiber.join(errors)
        const error = judge(query, yield* handle.exitCode, stderr)
        if (error !== undefined) return yield* error
      }
      return limited(output.matches, query.limit)
    }, Effect.scoped)

    const search = Effect.fn("Search.search")(
      function* (query: SearchQuery) {
        const prepared = yield* Effect.fromResult(prepareQuery(query))
        return yield* run(prepared)
      },
      Effect.catchTag("PlatformError", (cause) =>
        Effect.fail(new SearchError({ reason: "failed", message: "ripgrep could not be run", cause }))
      ),
      timedOut
    )
    return Search.of({ search })
  })
