/**
 * The providers that looplane speaks to, as data. A row is all that a provider of a known protocol needs.
 */
import { Record } from "effect"

export interface Provider {
  readonly protocol: "openai-chat" | "anthropic"
  /** Where requests go when nobody says otherwise. */
  readonly base_url: string
  /** The environment variable of the key. */
  readonly key_env: string
  /** The environment variable of the base URL; null when there is none. */
  readonly url_env: string | null
  /** Sent with every request beside the conversation. */
  readonly extra_body: Readonly<Record<string, unknown>>
  /** The longest answer to ask for; null leaves it to the provider. */
  readonly max_tokens: number | null
  /** Put before the first user message, for models that read it there. */
  readonly first_user_prefix: string
  /** Whether its model ids may hold a slash, as those of gateways do: `anthropic/…` is then an id, not a provider. */
  readonly slashed_ids: boolean
  /** Whether a turn that called tools must come back with the reasoning that led to the calls. */
  readonly replay_reasoning: boolean
}

const chat = (base_url: string, key_env: string, rest: Partial<Provider> = {}): Provider => ({
  protocol: "openai-chat",
  base_url,
  key_env,
  url_env: null,
  extra_body: {},
  max_tokens: null,
  first_user_prefix: "",
  slashed_ids: true,
  replay_reasoning: false,
  ...rest
})

export const officialOpenAiHost = "api.openai.com"
export const officialAnthropicUrl = "https://api.anthropic.com"
/** What Anthropic asks every request to name. Large enough for a whole file, small enough for every current model. */
export const anthropicMaxTokens = 8192

export const providers = {
  "openai-compatible": chat(`https://${officialOpenAiHost}/v1`, "OPENAI_API_KEY", {
    url_env: "OPENAI_BASE_URL"
  }),
  anthropic: chat(officialAnthropicUrl, "ANTHROPIC_API_KEY", {
    protocol: "anthropic",
    url_env: "ANTHROPIC_BASE_URL",
    slashed_ids: false,
    max_tokens: anthropicMaxTokens
  }),
  // Small local models lose a tool loop in their own thoughts: they are asked not to think, in both ways they know.
  ollama: chat("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", {
    url_env: "OLLAMA_HOST",
    extra_body: { think: false },
    max_tokens: 4096,
    first_user_prefix: "/no_think\n"
  }),
  openrouter: chat("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
  // DeepSeek and Moonshot refuse a history whose tool calls come without the reasoning before them.
  deepseek: chat("https://api.deepseek.com", "DEEPSEEK_API_KEY", {
    replay_reasoning: true,
    slashed_ids: false
  }),
  groq: chat("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
  moonshotai: chat("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", {
    replay_reasoning: true,
    slashed_ids: false
  }),
  zai: chat("https://api.z.ai/api/coding/paas/v4", "ZAI_API_KEY", { slashed_ids: false }),
  xai: chat("https://api.x.ai/v1", "XAI_API_KEY", { slashed_ids: false }),
  "nvidia-nim": chat("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
  "opencode-zen": chat("https://opencode.ai/zen/v1", "OPENCODE_ZEN_API_KEY"),
  "ollama-cloud": chat("https://ollama.com/v1", "OLLAMA_CLOUD_API_KEY")
} as const
export type ProviderName = keyof typeof providers
/** In the order in which a message lists them. */
export const providerNames = Record.keys(providers)

/** Providers that are promised and not here yet. */
export const laterProviders: ReadonlyArray<string> = [
  "gemini",
  "workers-ai",
  "openai-codex",
  "openai-responses"
]

export const isProviderName = (name: string): name is ProviderName => Object.hasOwn(providers, name)
