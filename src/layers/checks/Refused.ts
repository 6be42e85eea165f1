/**
 * What a command was refused by its sandbox, as far as its own output tells: neither is a fault of the code that is
 * checked, so it is said.
 */
import type { SandboxKind } from "../../domain/SandboxRule.ts"
import type { Network } from "../../domain/Task.ts"

/** Node, Python and libc, when a UNIX socket cannot be made. */
const unixSocket =
  /(?:listen|connect) EPERM[^\n]*[/\\]|PermissionError: \[Errno 1\][^\n]*\n?[^\n]*socket|socket\([^\n)]*\)[^\n]*Operation not permitted/

/** Names that could not be looked up, and hosts that could not be reached. */
const network =
  /\b(?:EAI_AGAIN|ENETUNREACH|EHOSTUNREACH)\b|Temporary failure in name resolution|Could not resolve host/

export const refusedBySandbox = (
  output: string,
  kind: SandboxKind,
  reach: Network
): { readonly hint: string; readonly decisive: boolean } | null => {
  if (kind !== "bubblewrap" && kind !== "landlock") return null
  if (unixSocket.test(output))
    return {
      hint: "it wanted a UNIX socket, and the sandbox has none: see docs/sandbox.md",
      decisive: true
    }
  return reach === "none" && network.test(output)
    ? { hint: "it asked for the network, which it does not have: --check-network host", decisive: false }
    : null
}
