/**
 * What users of the reference system know and this version does not have yet: each is answered in one line.
 */

/** Commands by their first word, and the feature that brings them. */
const commands: ReadonlyMap<string, string> = new Map([
  ["config", "editing the configuration (until then: edit config.json, see docs/configuration.md)"],
  ["auth", "stored credentials (until then: set the provider's environment variable)"],
  ["policy", "permission rules"],
  ["plugin", "plugins"],
  ["backend", "external coding CLIs as runtimes"],
  ["gateway", "the model gateway"],
  ["conversation-server", "the conversation server"],
  ["export-otel", "the OpenTelemetry export"],
  ["cloudflare", "the remote control plane"]
])

/** The line for a command that comes later; null when the word is none of them. */
export const laterCommand = (word: string): string | null => {
  const feature = commands.get(word)
  return feature === undefined
    ? null
    : `"${word}" is not in this version: it comes with ${feature}. To use the word as a prompt, put -- before it`
}

interface GivenFlags {
  readonly dangerous: boolean
  readonly editRealRepo: boolean
  readonly autoReview: boolean
  readonly experimentalSubscription: boolean
  readonly denyTool: ReadonlyArray<string>
  readonly dialect: "auto" | "xml" | "native"
  readonly sandboxChecks: boolean | undefined
  readonly toolCalling: boolean
}

/** The line for the first flag whose feature comes later; null when none was given. */
export const laterFlag = (given: GivenFlags): string | null => {
  const line = (flag: string, feature: string) => `${flag} is not in this version: it comes with ${feature}`
  if (given.editRealRepo) return line("--edit-real-repo", "editing the real tree; until then: looplane apply")
  if (given.dangerous)
    return line("--dangerous", "permission rules; edits inside the clone need no answer already")
  if (given.denyTool.length > 0) return line("--deny-tool", "permission rules")
  if (given.autoReview) return line("--auto-review", "the reviewer lane")
  if (given.experimentalSubscription) return line("--experimental-subscription", "the openai-codex provider")
  if (given.dialect === "xml")
    return line("--dialect xml", "the in-band dialect for models without tool calls")
  if (given.sandboxChecks === true) {
    return line("--sandbox-checks", "the sandbox; until then checks need --unsafe-local-exec")
  }
  if (!given.toolCalling)
    return "--no-tool-calling leaves nothing to work with: choose a model that can call tools"
  return null
}
