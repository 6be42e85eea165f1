/**
 * Where toolchains keep what checks need. Data, so that a new one is a new row. What is named here is shown read-only, at
 * its own path, and its variable is set: inside, HOME is another one.
 */
export interface ToolchainRow {
  /** The variable by which its programs find the place; null when none does. */
  readonly variable: string | null
  /** Where it lies without the variable, relative to the user's home; null: only the variable says. */
  readonly usual: string | null
  /** Files with credentials in it, relative to the place. */
  readonly credentials: ReadonlyArray<string>
  /** Files, and directories of such, that may have some: masked when their text looks like it. */
  readonly settings: ReadonlyArray<string>
}

const row = (
  variable: string | null,
  usual: string | null,
  credentials: ReadonlyArray<string> = [],
  settings: ReadonlyArray<string> = []
): ToolchainRow => ({ variable, usual, credentials, settings })

export const toolchainTable: ReadonlyArray<ToolchainRow> = [
  // JavaScript
  row("NVM_DIR", ".nvm"),
  row("FNM_DIR", ".local/share/fnm"),
  row("N_PREFIX", "n"),
  row("VOLTA_HOME", ".volta"),
  row("COREPACK_HOME", ".cache/node/corepack"),
  row("PNPM_HOME", ".local/share/pnpm"),
  row("BUN_INSTALL", ".bun"),
  row("DENO_DIR", ".cache/deno"),
  row(null, ".deno"),
  row("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"),
  row("PUPPETEER_CACHE_DIR", ".cache/puppeteer"),
  row("CYPRESS_CACHE_FOLDER", ".cache/Cypress"),
  // Python
  row("PYENV_ROOT", ".pyenv"),
  row("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
  row("UV_TOOL_DIR", ".local/share/uv/tools"),
  row("PIPX_HOME", ".local/share/pipx"),
  row("CONDA_PREFIX", null),
  row("CONDA_ROOT", "miniconda3"),
  row("VIRTUAL_ENV", null),
  // Rust
  row("RUSTUP_HOME", ".rustup"),
  row("CARGO_HOME", ".cargo", ["credentials", "credentials.toml"], ["config", "config.toml"]),
  // Go
  row("GOROOT", null),
  row("GOMODCACHE", "go/pkg/mod"),
  // Java and its relatives
  row("JAVA_HOME", null),
  row("SDKMAN_DIR", ".sdkman"),
  row("GRADLE_USER_HOME", ".gradle", ["gradle.properties"], ["init.gradle", "init.gradle.kts", "init.d"]),
  row(null, ".m2", ["settings.xml", "settings-security.xml"]),
  row("COURSIER_CACHE", ".cache/coursier"),
  // Others
  row("ASDF_DATA_DIR", ".asdf"),
  row("MISE_DATA_DIR", ".local/share/mise"),
  row("RBENV_ROOT", ".rbenv"),
  row("GEM_HOME", ".gem", ["credentials"]),
  row("DOTNET_ROOT", ".dotnet"),
  row("NUGET_PACKAGES", ".nuget/packages"),
  row("PUB_CACHE", ".pub-cache", ["credentials.json"]),
  row("FLUTTER_ROOT", null),
  row("ANDROID_HOME", null),
  row("OPAMROOT", ".opam"),
  row("GHCUP_INSTALL_BASE_PREFIX", null),
  row(null, ".ghcup"),
  row("STACK_ROOT", ".stack"),
  row("MIX_HOME", ".mix"),
  row("HEX_HOME", ".hex", ["hex.config"])
]

/** Files of the system that no command of a task has business with, whoever runs it. */
export const systemCredentials: ReadonlyArray<string> = [
  "/etc/shadow",
  "/etc/shadow-",
  "/etc/gshadow",
  "/etc/gshadow-",
  "/etc/krb5.keytab",
  "/etc/ssh/ssh_host_dsa_key",
  "/etc/ssh/ssh_host_ecdsa_key",
  "/etc/ssh/ssh_host_ed25519_key",
  "/etc/ssh/ssh_host_rsa_key"
]
