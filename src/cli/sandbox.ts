/**
 * The flags of everything that runs commands, and what they come to.
 */
import { Option } from "effect"
import { Flag } from "effect/cli"
import { realpathSync } from "node:fs"
import { basename, dirname, join, sep } from "node:path"
import type { SandboxRequest } from "../layers/Live.ts"

export const sandboxFlags = {
  sandboxChecks: Flag.Boolean("sandbox-checks").pipe(
    Flag.withDescription(
      "Insist on the sandbox: refuse where nothing proves that it holds; --no-sandbox-checks goes without, and needs --unsafe-local-exec (default: the sandbox where it holds)"
    ),
    Flag.optional
  ),
  sandboxBackend: Flag.Literals("sandbox-backend", ["auto", "bubblewrap", "landlock"]).pipe(
    Flag.withDescription("What contains commands (default: the first that proves itself)"),
    Flag.optional
  ),
  checkNetwork: Flag.Literals("check-network", ["none", "host"]).pipe(
    Flag.withDescription(
      "What checks reach of the network: none but their own loopback, or this machine's (default: none, or as configured)"
    ),
    Flag.optional
  ),
  setupNetwork: Flag.Literals("setup-network", ["none", "host"]).pipe(
    Flag.withDescription(
      "The same for --setup, which may have to download (default: none, or as configured)"
    ),
    Flag.optional
  ),
  unsafeLocalExec: Flag.Boolean("unsafe-local-exec").pipe(
    Flag.withDescription(
      "Where no sandbox holds, run checks and set-up on this machine with nothing around them: for repositories that you trust"
    ),
    Flag.withDefault(false)
  )
} as const

interface SandboxInput {
  readonly sandboxChecks: Option.Option<boolean>
  readonly sandboxBackend: Option.Option<"auto" | "bubblewrap" | "landlock">
  readonly unsafeLocalExec: boolean
}

/** What npm and npx put on PATH to start looplane is not the user's. */
const ownPrograms = (): ReadonlyArray<string> => {
  const script = process.argv[1]
  if (script === undefined) return []
  try {
    const root = dirname(dirname(realpathSync(script)))
    const around = dirname(root)
    const fetched = basename(around) === "node_modules" && around.includes(`${sep}_npx${sep}`)
    return [join(root, "node_modules", ".bin"), ...(fetched ? [join(around, ".bin")] : [])]
  } catch {
    // Started from something that is no file: then there is nothing of ours either.
    return []
  }
}

export const sandboxRequest = (
  input: SandboxInput,
  runRoot: string,
  repository?: string
): SandboxRequest => ({
  ...(repository === undefined ? {} : { repository }),
  sandbox_checks: Option.getOrNull(input.sandboxChecks),
  unsafe_local_exec: input.unsafeLocalExec,
  backend: Option.getOrNull(input.sandboxBackend),
  runRoot,
  ownPrograms: ownPrograms()
})

/** Those of the flags that were given. */
export const sandboxWords = (input: SandboxInput): ReadonlyArray<string> => [
  ...Option.match(input.sandboxChecks, {
    onNone: () => [],
    onSome: (on) => [on ? "--sandbox-checks" : "--no-sandbox-checks"]
  }),
  ...(Option.isSome(input.sandboxBackend) ? ["--sandbox-backend"] : []),
  ...(input.unsafeLocalExec ? ["--unsafe-local-exec"] : [])
]
