import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { runCli, type CliOptions, type CliResult } from "../support/Cli.ts"
import { assertUntouched, processCheck, snapshotTree } from "../support/Leaks.ts"
import {
  startModelServer,
  turn,
  type ModelServer,
  type Script,
  type ToolCallSpec
} from "../support/ModelServer.ts"
import { assertReplays } from "../support/replay.ts"
import { gitEnvironment, type Repo } from "../support/Repo.ts"
import { isRecord } from "../support/wire/types.ts"

export type ProviderName = "openai-compatible" | "anthropic" | "ollama"

const keys: Readonly<Record<ProviderName, Readonly<Record<string, string>>>> = {
  "openai-compatible": { OPENAI_API_KEY: "x" },
  anthropic: { ANTHROPIC_API_KEY: "x" },
  ollama: {}
}

/** How a run against the scripted server is called. */
export const providerArgs = (server: ModelServer, provider: ProviderName = "openai-compatible") => [
  "--provider",
  provider,
  "--api-url",
  provider === "anthropic" ? server.url : `${server.url}/v1`,
  "--model",
  "m"
]

export interface Ran extends AsyncDisposable {
  readonly result: CliResult
  readonly server: ModelServer
  /** stdout as the result object. */
  readonly json: Readonly<Record<string, unknown>>
  readonly artifact: (key: string) => string
  readonly readArtifact: (key: string) => string
  /** The run's events in order: their types. */
  readonly eventTypes: () => ReadonlyArray<string>
  readonly events: () => ReadonlyArray<Readonly<Record<string, unknown>>>
}

const artifactsOf = (json: Readonly<Record<string, unknown>>) =>
  isRecord(json["artifacts"]) ? json["artifacts"] : {}

/**
 * Runs `exec` on a repository against a scripted model and checks what every run owes: the repository untouched,
 * nothing left behind, the script served without a broken history.
 */
export const execOn = async (
  repo: Repo,
  script: Script,
  args: ReadonlyArray<string>,
  options: {
    readonly provider?: ProviderName
    readonly cli?: Partial<CliOptions>
    readonly prompt?: string
    readonly directory?: string
  } = {}
): Promise<Ran> => {
  const provider = options.provider ?? "openai-compatible"
  const server = await startModelServer(script)
  const before = snapshotTree(repo.root)
  const result = await runCli(
    [
      "exec",
      options.prompt ?? "Fix add.",
      "-C",
      options.directory ?? repo.root,
      ...providerArgs(server, provider),
      ...args
    ],
    { cwd: repo.root, ...options.cli, env: { ...keys[provider], ...options.cli?.env } }
  )
  assertUntouched(before, snapshotTree(repo.root))
  if (processCheck) assert.deepStrictEqual(result.leftovers(), [])
  assert.deepStrictEqual(server.violations, [])
  const json =
    result.stdout.trimStart().startsWith("{") && !result.stdout.includes("\n{") ? result.json() : {}
  // A run that announced a result has a journal that nobody else wrote to.
  if (isRecord(json["artifacts"]))
    await assertReplays(join(result.home.env["XDG_STATE_HOME"] ?? "", "looplane", "runs"))
  const artifact = (key: string) => {
    const file = artifactsOf(json)[key]
    assert.isString(file, `no artifact ${key}; stderr:\n${result.stderr}`)
    return String(file)
  }
  const readArtifact = (key: string) => readFileSync(artifact(key), "utf8")
  const events = () =>
    readArtifact("events")
      .trimEnd()
      .split("\n")
      .map((line): Readonly<Record<string, unknown>> => {
        const value: unknown = JSON.parse(line)
        return isRecord(value) ? value : {}
      })
  return {
    result,
    server,
    json,
    artifact,
    readArtifact,
    events,
    eventTypes: () => events().map((event) => String(event["event_type"])),
    [Symbol.asyncDispose]: async () => {
      await server.close()
      await result[Symbol.asyncDispose]()
    }
  }
}

/** The eight artifacts that every run that ended leaves, as files that exist. */
export const assertComplete = (ran: Ran) => {
  for (const key of [
    "request",
    "session",
    "events",
    "checkpoint",
    "verification",
    "patch",
    "test_log",
    "result"
  ]) {
    assert.isTrue(existsSync(ran.artifact(key)), key)
  }
}

/** Applies a run's patch to its source, so that a test can look at what the user would get. */
export const applyPatch = (repo: Repo, patch: string) =>
  execFileSync("git", ["-C", repo.root, "apply", patch], { env: gitEnvironment(repo.root) })

/** Runs the package's tests the way the user would; the exit code. */
export const runTests = (directory: string): number => {
  try {
    execFileSync(process.execPath, ["--test"], {
      cwd: directory,
      env: { PATH: process.env["PATH"] ?? "" },
      stdio: "ignore"
    })
    return 0
  } catch {
    return 1
  }
}

/** A turn that only calls tools. */
export const calls = (...toolCalls: ReadonlyArray<ToolCallSpec>) => turn({ toolCalls })
/** The final answer. */
export const says = (text: string) => turn({ text })
export const call = (name: string, args: Readonly<Record<string, unknown>>): ToolCallSpec => ({
  name,
  arguments: args
})
export const inRepo = (repo: Repo, path: string) => join(repo.root, path)
/** A check that `addFix` turns green, as cheap as a process can be: for tests of what happens around checks. */
export const checkArgs = [
  "--check",
  "grep -q 'left + right' src/add.js",
  "--no-baseline",
  "--unsafe-local-exec"
]
/** The repository's own tests, before and after. */
export const testArgs = ["--check", "node --test", "--unsafe-local-exec"]
/** Commands run on this machine with nothing around them, whatever it has. */
export const uncontained = ["--no-sandbox-checks", "--unsafe-local-exec"]
/** The body of the run's request number `at`, as text. */
export const bodyOf = (ran: Ran, at: number): string => String(ran.server.calls.at(at)?.rawBody ?? "")
