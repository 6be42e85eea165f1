import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { canonical, firstDifference } from "../../src/domain/Canonical.ts"
import type { RunEvent } from "../../src/domain/Event.ts"
import { CommitId, Digest, RunId, TreeId } from "../../src/domain/Ids.ts"
import { toOctets } from "../../src/domain/Octets.ts"
import { openReceipt, Receipt, seal, unsealed } from "../../src/domain/Receipt.ts"
import { finalOutcomes, handedOver, makeReceipt } from "../../src/domain/ReceiptFacts.ts"
import type { RunRequest } from "../../src/domain/Request.ts"
import { statusOf, type CheckOutcome, type TerminalReason } from "../../src/domain/Result.ts"
import { initial, reduce, type RunState } from "../../src/domain/Run.ts"
import type { Task } from "../../src/domain/Task.ts"
import { exampleTask } from "../support/tasks.ts"

const sha256 = (content: string | Uint8Array): Digest =>
  Digest.make(createHash("sha256").update(content).digest("hex"))

const commit = CommitId.make("c".repeat(40))
const baseTree = TreeId.make("a".repeat(40))
const tree = TreeId.make("b".repeat(40))
const other = TreeId.make("d".repeat(40))
const zero = sha256("")

const patch = `diff --git a/src/a.js b/src/a.js
index ${"1".repeat(40)}..${"2".repeat(40)} 100644
--- a/src/a.js
+++ b/src/a.js
@@ -1 +1 @@
-a
+b
`

const outcome = (some: Partial<CheckOutcome> = {}): CheckOutcome => ({
  name: "check-1",
  argv: ["node", "--test"],
  verdict: "passed",
  exit_code: 0,
  duration_seconds: 0.25,
  tests: 3,
  reason: null,
  output: "tests 3\n",
  ...some
})

const requestOf = (some: Partial<Task> = {}): RunRequest => ({
  schema_version: 1,
  task: { ...exampleTask, base: { kind: "commit", commit }, baseline: true, ...some },
  models: [{ provider: "p", model: "m", endpoint: null }],
  prompt_version: "v1",
  sandbox: "host"
})

const checked = (purpose: "preflight" | "final", on: TreeId, some: Partial<CheckOutcome> = {}): RunEvent => ({
  event_type: "verification.completed",
  data: { purpose, tree: on, outcome: outcome(some), wrote: [] }
})
const settled = (on: TreeId, some: Partial<CheckOutcome> = {}): RunEvent => ({
  event_type: "verification.settled",
  data: { tree: on, outcomes: [outcome(some)] }
})
const scanned = (at: TreeId): RunEvent => ({ event_type: "workspace.scanned", data: { tree: at } })
const collected: RunEvent = {
  event_type: "patch.collected",
  data: {
    tree,
    files: [{ path: "src/a.js", change: "modified" }],
    patch: toOctets(new TextEncoder().encode(patch)),
    unrecorded: []
  }
}
const ended = (terminal_reason: TerminalReason, at: TreeId | null): RunEvent => ({
  event_type: "run.ended",
  data: {
    status: statusOf(terminal_reason, false),
    terminal_reason,
    error: null,
    changed_files: ["src/a.js"],
    tree: at,
    usage: initial.usage
  }
})
const begun: ReadonlyArray<RunEvent> = [
  {
    event_type: "run.created",
    data: {
      run_id: RunId.make("r-1"),
      provider: "p",
      model: "m",
      prompt_version: "v1",
      base_sha: commit,
      store_version: 2
    }
  },
  {
    event_type: "workspace.prepared",
    data: {
      base_sha: commit,
      tree: baseTree,
      left_out: [],
      dependencies: {
        requested: { mode: "path", path: "/home/me/deps" },
        copied: ["node_modules"],
        lock_digest: zero,
        reason: null
      },
      setup: []
    }
  }
]
const fold = (...events: ReadonlyArray<RunEvent>): RunState => [...begun, ...events].reduce(reduce, initial)
const verified = fold(
  checked("preflight", baseTree, { verdict: "failed", exit_code: 1, tests: 2, reason: "exit 1" }),
  scanned(tree),
  collected,
  checked("final", tree),
  settled(tree),
  ended("verified", tree)
)

const receiptOf = (state: RunState, task: Partial<Task> = {}) => {
  const body = makeReceipt({
    looplane: "1.2.3",
    request: requestOf(task),
    request_digest: zero,
    state,
    patch_digest: sha256(handedOver(state).bytes),
    log_digests: finalOutcomes(state).map(({ output }) => sha256(output)),
    verification: { digest: zero, bytes: 0 },
    test_log: { digest: zero, bytes: 0 },
    head: { sequence: 9, hash: zero }
  })
  if (body === null) throw new Error("the run has not ended")
  return body
}
const sealed = (state: RunState): Uint8Array => {
  const body = receiptOf(state)
  return seal(body, sha256(unsealed(body)))
}
/** As `receipt check` decides. */
const sound = (bytes: Uint8Array): boolean => {
  const opened = openReceipt(bytes)
  return Result.isSuccess(opened) && sha256(opened.success.unsealed) === opened.success.receipt.receipt_digest
}

describe("canonical JSON", () => {
  it("is one text for one value, whatever the order of its keys", () => {
    assert.strictEqual(
      canonical({ b: [1, { z: null, a: "ä\n" }], a: {}, c: [], "10": true, "9": undefined }),
      '{\n  "10": true,\n  "a": {},\n  "b": [\n    1,\n    {\n      "a": "ä\\n",\n      "z": null\n    }\n  ],\n  "c": []\n}\n'
    )
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text)
        const once = canonical(value)
        assert.deepStrictEqual(JSON.parse(once), JSON.parse(JSON.stringify(value)))
        assert.strictEqual(canonical(JSON.parse(once)), once)
      })
    )
  })

  it("names the first place where two values differ, and none where they do not", () => {
    const value = { a: [{ b: 1, c: [2] }], d: "x" }
    assert.isNull(firstDifference(value, { d: "x", a: [{ c: [2], b: 1 }] }))
    assert.strictEqual(firstDifference(value, { ...value, a: [{ b: 1, c: [3] }] }), "a[0].c[0]")
    assert.strictEqual(firstDifference(value, { ...value, a: [] }), "a[0]")
    assert.strictEqual(firstDifference(value, { a: value.a }), "d")
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
        assert.strictEqual(firstDifference(left, right) === null, canonical(left) === canonical(right))
      })
    )
  })
})

describe("a receipt", () => {
  it("says what was handed over, what proved it, and what was red before", () => {
    const body = receiptOf(verified)
    assert.deepStrictEqual(body.base, { kind: "commit", commit, tree: baseTree })
    assert.strictEqual(body.tree, tree)
    assert.deepStrictEqual(body.patch, {
      file: "changes.patch",
      digest: sha256(patch),
      bytes: patch.length,
      files: [{ path: "src/a.js", change: "modified" }]
    })
    assert.deepStrictEqual(body.verdict, { status: "completed", terminal_reason: "verified" })
    assert.deepStrictEqual(body.checks, [
      {
        name: "check-1",
        argv: ["node", "--test"],
        timeout_seconds: 300,
        purpose: "final",
        verdict: "passed",
        exit_code: 0,
        duration_seconds: 0.25,
        tests: 3,
        tests_on_base: 2,
        reason: null,
        log_digest: sha256("tests 3\n")
      }
    ])
    assert.deepStrictEqual(body.red_on_base, [
      { name: "check-1", verdict: "failed", exit_code: 1, tests: 2, reason: "exit 1" }
    ])
    assert.deepStrictEqual(body.not_run, [])
    assert.deepStrictEqual(body.waivers, [])
    assert.deepStrictEqual(body.limits_hit, [])
  })

  it("names no place of the machine that it was made on", () => {
    const reason = "the output names /repo, so the wrong files may have been tested"
    const state = fold(
      scanned(tree),
      collected,
      checked("final", tree, { verdict: "could_not_verify", reason }),
      settled(tree, { verdict: "could_not_verify", reason }),
      ended("could_not_verify", tree)
    )
    const text = new TextDecoder().decode(sealed(state))
    assert.notInclude(text, "/repo")
    assert.notInclude(text, "/home/me")
    assert.include(text, '"requested": "path"')
  })

  it("counts only checks of the tree that is handed over", () => {
    const state = fold(
      scanned(other),
      checked("final", other),
      settled(other),
      scanned(tree),
      collected,
      ended("max_steps_exceeded", tree)
    )
    const body = receiptOf(state)
    assert.deepStrictEqual(body.checks, [])
    assert.deepStrictEqual(
      body.not_run.map(({ name, purpose }) => `${name} ${purpose}`),
      ["check-1 preflight", "check-1 final"]
    )
    assert.deepStrictEqual(body.limits_hit, [{ limit: "max_steps", value: 60 }])
  })

  it("says what the user waived and switched off", () => {
    const state = fold(scanned(tree), collected, ended("unverified", tree))
    assert.deepStrictEqual(receiptOf(state, { verification: { mode: "waived" } }).waivers, ["no_check"])
    const [preflight] = receiptOf(state, { baseline: false }).not_run
    assert.deepStrictEqual(preflight, { name: "check-1", purpose: "preflight", reason: "--no-baseline" })
  })

  it("of a refused patch hands nothing over", () => {
    const state = fold(
      scanned(tree),
      collected,
      checked("final", tree),
      settled(tree),
      ended("patch_artifact_failed", null)
    )
    const body = receiptOf(state)
    assert.deepStrictEqual([body.tree, body.patch.bytes, body.patch.files, body.checks], [null, 0, [], []])
  })

  it("is there only after the end", () => {
    const facts = { request: requestOf(), request_digest: zero, patch_digest: zero, log_digests: [] }
    const files = { verification: { digest: zero, bytes: 0 }, test_log: { digest: zero, bytes: 0 } }
    const head = { sequence: 0, hash: zero }
    assert.isNull(
      makeReceipt({ looplane: "1", ...facts, ...files, head, state: fold(scanned(tree), collected) })
    )
  })
})

describe("the file of a receipt", () => {
  it("reads back, and can be checked with jq and sha256sum alone", () => {
    const bytes = sealed(verified)
    const opened = openReceipt(bytes)
    assert.isTrue(Result.isSuccess(opened))
    assert.isTrue(sound(bytes))
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    const receipt = Schema.decodeUnknownSync(Receipt)(value)
    const rest = Object.entries(receipt).filter(([key]) => key !== "receipt_digest")
    // JSON.stringify of objects with sorted keys is what `jq -S` prints.
    const sort = (inner: unknown): unknown =>
      Array.isArray(inner)
        ? inner.map(sort)
        : typeof inner === "object" && inner !== null
          ? Object.fromEntries(
              Object.entries(inner)
                .toSorted(([a], [b]) => (a < b ? -1 : 1))
                .map(([key, part]) => [key, sort(part)])
            )
          : inner
    const text = `${JSON.stringify(sort(Object.fromEntries(rest)), null, 2)}\n`
    assert.strictEqual(sha256(text), receipt.receipt_digest)
  })

  it("is unsound when any byte of it is another one, is missing, or is added", () => {
    const bytes = sealed(verified)
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Uint8Array.from(bytes, (byte, index) => (index === at ? byte ^ flip : byte))
        assert.isFalse(sound(changed), `byte ${at} xor ${flip}`)
        assert.isFalse(sound(bytes.filter((_, index) => index !== at)), `without byte ${at}`)
        const longer = [...bytes.subarray(0, at), 0x20, ...bytes.subarray(at)]
        assert.isFalse(sound(Uint8Array.from(longer)), `a blank before byte ${at}`)
      }),
      { numRuns: 500 }
    )
  })

  it("of another version, or of nothing of the kind, is refused in one line", () => {
    const refusal = (text: string) => {
      const opened = openReceipt(new TextEncoder().encode(text))
      return Result.isFailure(opened) ? opened.failure : "no refusal"
    }
    assert.include(refusal(canonical({ schema_version: 2 })), "version 2")
    assert.include(refusal("{}\n"), "no receipt")
    assert.include(refusal("[]\n"), "no JSON object")
    assert.include(refusal("{"), "no JSON")
    assert.include(refusal(`${"[".repeat(100_000)}${"]".repeat(100_000)}`), "no JSON")
    for (const text of ["{}\n", "{", "null", '{"schema_version": "x"}\n'])
      assert.notInclude(refusal(text), "\n")
  })

  it("does not lead a check out of the tree", () => {
    for (const subdirectory of ["..", "a/../..", "/etc", "a/.."]) {
      const body = { ...receiptOf(verified), subdirectory }
      assert.throws(() => unsealed(body), undefined, undefined, subdirectory)
    }
    assert.doesNotThrow(() => unsealed({ ...receiptOf(verified), subdirectory: "packages/..a" }))
  })
})
