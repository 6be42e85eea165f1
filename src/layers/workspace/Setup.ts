/**
 * The user's set-up commands: once, in the workspace, before anything else looks at it.
 */
import { Effect, FileSystem, Path } from "effect"
import { type CommandPlace, Sandbox } from "../../services/Sandbox.ts"
import type { Network } from "../../domain/Task.ts"
import { WorkspaceError } from "../../services/Workspace.ts"

const timeoutMs = 1_800_000
const maxOutputBytes = 64 * 1024
const shownLines = 20

/** Private directories for a command's home, cache and temporary files. */
export const taskEnvironment = Effect.fnUntraced(function* (at: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directories = { HOME: "home", TMPDIR: "tmp", XDG_CACHE_HOME: "cache", XDG_CONFIG_HOME: "config" }
  const environment: Record<string, string> = {}
  for (const [name, directory] of Object.entries(directories)) {
    const made = path.join(at, directory)
    yield* fs.makeDirectory(made, { recursive: true, mode: 0o700 })
    environment[name] = made
  }
  return environment
})

const unsuccessful = (argv: ReadonlyArray<string>, why: string, output: string) => {
  const last = output.trimEnd().split("\n").slice(-shownLines).join("\n")
  return new WorkspaceError({
    reason: "setup_failed",
    message: `set-up command ${JSON.stringify(argv.join(" "))} ${why}${last === "" ? "" : `\n${last}`}`
  })
}

/** Runs the commands in order and stops at the first that fails. */
export const runSetup = Effect.fnUntraced(function* (
  commands: ReadonlyArray<readonly [string, ...ReadonlyArray<string>]>,
  place: CommandPlace,
  environment: Readonly<Record<string, string>>,
  network: Network
) {
  const sandbox = yield* Sandbox
  for (const argv of commands) {
    const result = yield* sandbox
      .run({
        argv,
        place,
        directory: "",
        env: environment,
        network,
        timeout_ms: timeoutMs,
        max_output_bytes: maxOutputBytes
      })
      .pipe(
        Effect.catchTag("SandboxError", (error) =>
          Effect.fail(unsuccessful(argv, `could not run: ${error.message}`, ""))
        )
      )
    if (result.timed_out) return yield* unsuccessful(argv, "did not end in 30 minutes", result.output)
    if (result.exit_code !== 0)
      return yield* unsuccessful(argv, `failed (exit ${result.exit_code})`, result.output)
  }
})
