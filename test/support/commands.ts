import type { SandboxCommand } from "../../src/services/Sandbox.ts"

/** A command in a directory, with nothing else to write to and no network. */
export const commandIn = (
  root: string,
  argv: SandboxCommand["argv"],
  options: Partial<SandboxCommand> = {}
): SandboxCommand => ({
  argv,
  place: { root, at: root, writable: [], layers: [] },
  directory: "",
  env: {},
  network: "none",
  timeout_ms: 30_000,
  max_output_bytes: 100_000,
  ...options
})
