/**
 * Finds out which checks a repository has, from its base commit alone.
 */
import { Effect, Result, Schema } from "effect"
import type { CommitId } from "../domain/Ids.ts"
import { Git } from "../services/Git.ts"

const maxManifestBytes = 1_000_000

const Package = Schema.fromJsonString(
  Schema.Struct({
    scripts: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
    packageManager: Schema.optionalKey(Schema.String)
  })
)

/** What `npm init` writes where no test exists yet. */
const placeholderScript = /no test specified/

const runners: ReadonlyArray<readonly [file: string, run: string]> = [
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["bun.lock", "bun run"],
  ["package-lock.json", "npm"]
]

const scriptChecks = (text: string, files: ReadonlySet<string>): ReadonlyArray<string> => {
  const decoded = Schema.decodeUnknownResult(Package)(text)
  if (Result.isFailure(decoded)) return []
  const scripts = decoded.success.scripts ?? {}
  const runner = runners.find(([file]) => files.has(file))?.[1] ?? "npm"
  return Object.entries(scripts).flatMap(([name, script]) => {
    if (typeof script !== "string" || placeholderScript.test(script)) return []
    if (name === "test") return [`${runner} test`]
    return name === "typecheck" || name === "lint" ? [`${runner === "npm" ? "npm run" : runner} ${name}`] : []
  })
}

/** Other ecosystems: a file that is there, and the command that goes with it. */
const byFile: ReadonlyArray<readonly [file: RegExp, command: string]> = [
  [/^(pytest\.ini|conftest\.py|tests\/.*\.py|test_[^/]*\.py)$/, "python3 -m pytest -q"],
  [/^Cargo\.toml$/, "cargo test"],
  [/^go\.mod$/, "go test ./..."]
]

/** Command lines that the repository itself seems to test with, likeliest first; empty when it says nothing. */
export const proposeChecks = Effect.fn("ProposeChecks.proposeChecks")(function* (
  root: string,
  commit: CommitId,
  subdirectory: string
) {
  const git = yield* Git
  const prefix = subdirectory === "" ? "" : `${subdirectory}/`
  const paths = (yield* git.paths(root, commit))
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length))
  const files = new Set(paths)
  const read = (name: string) =>
    files.has(name)
      ? Effect.map(git.file(root, commit, prefix + name, maxManifestBytes), (bytes) =>
          bytes === null ? "" : new TextDecoder().decode(bytes)
        )
      : Effect.succeed("")
  const manifest = yield* read("package.json")
  const makefile = yield* read("Makefile")
  return [
    ...(manifest === "" ? [] : scriptChecks(manifest, files)),
    ...byFile.flatMap(([file, command]) => (paths.some((path) => file.test(path)) ? [command] : [])),
    ...(/^test\s*:/m.test(makefile) ? ["make test"] : [])
  ]
})
