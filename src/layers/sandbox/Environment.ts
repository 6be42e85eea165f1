/**
 * What foreign processes may inherit. Everything is left out unless it is named here: no credential, no loader option
 * (NODE_OPTIONS, LD_PRELOAD) and no git variable can come through.
 */
import { Context } from "effect"

/** The environment of the host, replaced in tests. */
export const HostEnvironment = Context.Reference<Readonly<Record<string, string | undefined>>>(
  "looplane/layers/HostEnvironment",
  { defaultValue: () => process.env }
)

const inherited = ["LANG", "LC_ALL", "LC_CTYPE", "PATH", "SYSTEMROOT", "TEMP", "TERM", "TMP", "TMPDIR", "TZ"]

/** The environment of a command that the task or the model named. */
export const scrubbedEnvironment = (
  host: Readonly<Record<string, string | undefined>>
): Record<string, string> => {
  const environment: Record<string, string> = {}
  for (const name of inherited) {
    const value = host[name]
    if (value !== undefined) environment[name] = value
  }
  return {
    ...environment,
    GIT_ASKPASS: "/usr/bin/false",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    // A stale .pyc after an equal-sized edit within one second would test the old code.
    PYTHONDONTWRITEBYTECODE: "1"
  }
}

/**
 * PATH for looplane's own programs (git, bwrap): without entries that depend on where a process stands, and without what
 * package managers put there for a project. A repository must never be able to bring one of them.
 */
export const absolutePath = (host: Readonly<Record<string, string | undefined>>): string =>
  (host["PATH"] ?? "/usr/local/bin:/usr/bin:/bin")
    .split(":")
    .filter((entry) => entry.startsWith("/") && !entry.split("/").includes("node_modules"))
    .join(":")
