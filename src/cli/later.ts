/**
 * What users of the reference system know and this version does not have yet: each is answered in one line.
 */

/** Commands by their first word, and the feature that brings them. */
const commands: ReadonlyMap<string, string> = new Map([
  ["config", "editing the configuration (until then: edit config.json, see docs/configuration.md)"],
  ["auth", "stored credentials (until then: set the provider's environment variable)"],
  ["doctor", "the checks of this machine's set-up"],
  ["models", "the listing of models"],
  ["evals", "the evals"],
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

const known: ReadonlyArray<string> = ["exec", "resume", "apply", "sessions", "receipt", "replay", "bundle"]

/** How many letters must be put in, taken out or changed to make one word of another (Levenshtein). */
const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [i, letter] of from.split("").entries()) {
    const next = [i + 1]
    for (const [j, other] of to.split("").entries())
      next.push(
        Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1))
      )
    row = next
  }
  return row[to.length] ?? 0
}

/** The line for a lone word that was probably meant as a command; null for a prompt. A run for it would cost money. */
export const mistypedCommand = (word: string): string | null => {
  if (!/^[a-z-]{3,}$/.test(word) || known.includes(word)) return null
  const meant = known.find((name) => distance(word, name) <= (name.length > 5 ? 2 : 1))
  return meant === undefined
    ? null
    : `there is no command ${word}; did you mean ${meant}? To use the word as a prompt, put -- before it`
}

interface GivenFlags {
  readonly dangerous: boolean
  readonly editRealRepo: boolean
  readonly autoReview: boolean
  readonly experimentalSubscription: boolean
  readonly denyTool: ReadonlyArray<string>
  readonly dialect: "auto" | "xml" | "native"
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
  if (!given.toolCalling)
    return "--no-tool-calling leaves nothing to work with: choose a model that can call tools"
  return null
}
