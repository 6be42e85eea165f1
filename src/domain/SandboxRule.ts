/**
 * Where commands run: what was proved, what was asked for, and what follows. One table, pure and total.
 */
import { Schema } from "effect"

/** `host` contains nothing, `none` starts nothing. */
export const SandboxKind = Schema.Literals(["bubblewrap", "landlock", "host", "none"])
export type SandboxKind = typeof SandboxKind.Type

/** What somebody may ask for. */
export const SandboxBackend = Schema.Literals(["auto", "bubblewrap", "landlock"])
export type SandboxBackend = typeof SandboxBackend.Type

export interface SandboxWish {
  /** `--sandbox-checks`: true, `--no-sandbox-checks`: false, neither: null. */
  readonly sandbox_checks: boolean | null
  readonly unsafe_local_exec: boolean
}

/** A backend that proved itself here, or why none did. */
export type SandboxProof =
  | { readonly _tag: "Proved"; readonly kind: Exclude<SandboxKind, "host" | "none"> }
  | { readonly _tag: "NotProved"; readonly reason: string; readonly remedy: string }

export type SandboxChoice =
  | { readonly _tag: "Contained"; readonly kind: Exclude<SandboxKind, "host" | "none"> }
  | { readonly _tag: "Host" }
  /** Nothing can run: one line that says why, and what to do. */
  | { readonly _tag: "Refused"; readonly message: string }

/** Whether it matters what can be proved. */
export const needsProof = ({ sandbox_checks }: SandboxWish): boolean => sandbox_checks !== false

const refusedChoice = (message: string): SandboxChoice => ({ _tag: "Refused", message })

/**
 * | proved | asked for                                       | then      |
 * |--------|-------------------------------------------------|-----------|
 * | yes    | anything but `--no-sandbox-checks`              | contained |
 * | no     | `--sandbox-checks`                              | refused   |
 * | no     | `--unsafe-local-exec` without `--sandbox-checks`| host      |
 * | no     | nothing                                         | refused   |
 * | any    | `--no-sandbox-checks --unsafe-local-exec`       | host      |
 * | any    | `--no-sandbox-checks` alone                     | refused   |
 *
 * `proof` is asked for only when `needsProof`.
 */
export const chooseSandbox = (wish: SandboxWish, proof: SandboxProof | null): SandboxChoice => {
  if (proof === null || wish.sandbox_checks === false) {
    return wish.unsafe_local_exec
      ? { _tag: "Host" }
      : refusedChoice(
          "--no-sandbox-checks runs commands on this machine with nothing around them: add --unsafe-local-exec if you trust this repository, or leave it out"
        )
  }
  if (proof._tag === "Proved") return { _tag: "Contained", kind: proof.kind }
  if (wish.sandbox_checks === null && wish.unsafe_local_exec) return { _tag: "Host" }
  const without =
    wish.sandbox_checks === true ? "" : ", or add --unsafe-local-exec if you trust this repository"
  return refusedChoice(`commands cannot be contained here: ${proof.reason}: ${proof.remedy}${without}`)
}
