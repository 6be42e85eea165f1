import { assert, describe, it } from "@effect/vitest"
import { chooseSandbox, needsProof, type SandboxProof } from "../../src/domain/SandboxRule.ts"

const proved: SandboxProof = { _tag: "Proved", kind: "bubblewrap" }
const unproved: SandboxProof = { _tag: "NotProved", reason: "no bwrap", remedy: "install it" }

type Row = readonly [
  asked: string,
  sandbox_checks: boolean | null,
  unsafe_local_exec: boolean,
  whenProved: string,
  whenNot: string
]

/** The whole of it: what docs/sandbox.md shows. */
const table: ReadonlyArray<Row> = [
  ["nothing", null, false, "Contained", "Refused"],
  ["--unsafe-local-exec", null, true, "Contained", "Host"],
  ["--sandbox-checks", true, false, "Contained", "Refused"],
  ["--sandbox-checks --unsafe-local-exec", true, true, "Contained", "Refused"],
  ["--no-sandbox-checks", false, false, "Refused", "Refused"],
  ["--no-sandbox-checks --unsafe-local-exec", false, true, "Host", "Host"]
]

describe("where commands run", () => {
  it.each(table)("asked for: %s", (_, sandbox_checks, unsafe_local_exec, whenProved, whenNot) => {
    const wish = { sandbox_checks, unsafe_local_exec }
    assert.strictEqual(chooseSandbox(wish, proved)._tag, whenProved)
    assert.strictEqual(chooseSandbox(wish, unproved)._tag, whenNot)
    assert.strictEqual(needsProof(wish), whenProved === "Contained")
    // Without a proof nothing is ever taken for contained.
    assert.notStrictEqual(chooseSandbox(wish, null)._tag, "Contained")
  })

  it("says why, and what to do", () => {
    const refused = chooseSandbox({ sandbox_checks: null, unsafe_local_exec: false }, unproved)
    assert.deepStrictEqual(refused, {
      _tag: "Refused",
      message:
        "commands cannot be contained here: no bwrap: install it, or add --unsafe-local-exec if you trust this repository"
    })
    const insisted = chooseSandbox({ sandbox_checks: true, unsafe_local_exec: true }, unproved)
    assert.notInclude(JSON.stringify(insisted), "--unsafe-local-exec")
    const bare = chooseSandbox({ sandbox_checks: false, unsafe_local_exec: false }, null)
    assert.include(JSON.stringify(bare), "add --unsafe-local-exec")
  })
})
