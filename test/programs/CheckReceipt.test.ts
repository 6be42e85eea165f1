import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import type { Finding } from "../../src/domain/Finding.ts"
import { RunId } from "../../src/domain/Ids.ts"
import { modelError } from "../../src/domain/ModelError.ts"
import { seal, unsealed, type Receipt } from "../../src/domain/Receipt.ts"
import type { Task } from "../../src/domain/Task.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel, type Script } from "../../src/layers/model/Scripted.ts"
import { layerTest, passesWhen, testCommit, type CheckScript } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import { checkReceipt, locateReceipt } from "../../src/programs/CheckReceipt.ts"
import { digestOf } from "../../src/programs/MakeReceipt.ts"
import { readEvidence } from "../../src/programs/PatchEvidence.ts"
import { reproducePatch } from "../../src/programs/ReproducePatch.ts"
import { run } from "../../src/programs/Run.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "README.md": "# add\n", "src/add.js": "export const add = (a, b) => a - b\n" }
const run_id = Schema.decodeSync(RunId)("run-1")
/** While the model's first answer is waited for, the base is checked. */
const busy = modelError({ provider: "scripted", model: "scripted", kind: "overloaded", message: "busy" })
const fix: Script = [
  busy,
  {
    tool_calls: [
      { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
    ]
  },
  { text: "It subtracted." }
]
const fixed = passesWhen("src/add.js", "a + b")
/** Long enough to lie beside the journal. */
const talkative: CheckScript = (argv, at) => ({ ...fixed(argv, at), output: "line\n".repeat(5000) })
const directory = "/runs/run-1"

/** A finished run in memory, and what the test does with its bundle. */
const afterRun = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  options: {
    readonly script?: Script
    readonly task?: Partial<Task>
    readonly checks?: CheckScript
    /** A path that something else than a tool has written. */
    readonly wrote?: string
  } = {}
) =>
  Effect.gen(function* () {
    const memory = yield* makeMemoryWorkspace(files)
    const { wrote } = options
    const meddling = wrote === undefined ? null : [{ text: "Done.", gate: memory.put(wrote, "no tool's\n") }]
    const world = layerTest({
      memory,
      files,
      models: [scriptedModel(meddling ?? options.script ?? fix)],
      checks: options.checks ?? fixed
    })
    return yield* Effect.gen(function* () {
      const task = { ...exampleTask, base: { kind: "commit", commit: testCommit }, baseline: true } as const
      const fiber = yield* run({ ...task, ...options.task }, { run_id }).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      return yield* body
    }).pipe(Effect.provide(world.pipe(Layer.provideMerge(Headless.layer))))
  })

const check = (word: string, patch: string | null = null) =>
  Effect.flatMap(locateReceipt(word, patch), (source) => checkReceipt(source))
const wrong = (findings: ReadonlyArray<Finding>) => findings.filter((finding) => finding.status === "failed")
const shown = (findings: ReadonlyArray<Finding>) =>
  findings.map(({ message, status, subject }) => `${status} ${subject}: ${message}`).join("\n")

describe("receipt check without a repository", () => {
  it.effect("finds nothing wrong with a run that was left alone, by id, prefix, path or receipt", () =>
    afterRun(
      Effect.gen(function* () {
        for (const word of ["run-1", "run", "last", directory, `${directory}/receipt.json`]) {
          const { findings, receipt } = yield* check(word)
          assert.deepStrictEqual(wrong(findings), [], word)
          assert.strictEqual(receipt?.verdict.terminal_reason, "verified")
          assert.deepStrictEqual(
            findings.map((finding) => finding.subject),
            [
              ...["receipt.json", "changes.patch", "verification.json", "test.log", "request.json"],
              ...["events.jsonl", "receipt and journal", "result.json"]
            ]
          )
        }
      })
    )
  )

  const endings: ReadonlyArray<
    readonly [name: string, reason: string, options: Parameters<typeof afterRun>[1]]
  > = [
    ["no change", "no_changes", { script: [{ text: "Nothing to do." }] }],
    [
      "a red check",
      "checks_failed",
      { checks: passesWhen("src/add.js", "never"), script: [...fix, ...fix.slice(2)] }
    ],
    ["no check", "unverified", { task: { verification: { mode: "waived" } } }],
    ["a refused patch", "patch_artifact_failed", { wrote: "NOTES.md", task: { protected_paths: ["*.md"] } }]
  ]
  it.effect.each(endings)("agrees with a run that ended with %s", ([, reason, options]) =>
    afterRun(
      Effect.gen(function* () {
        const { findings, receipt } = yield* check("run-1")
        assert.deepStrictEqual(wrong(findings), [])
        assert.strictEqual(receipt?.verdict.terminal_reason, reason)
      }),
      options
    )
  )

  it.effect("fails and says where, whatever byte of the evidence is changed", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const blobs = yield* fs.readDirectory(`${directory}/blobs`)
        assert.isNotEmpty(blobs)
        const names = [
          ...["changes.patch", "test.log", "verification.json", "receipt.json", "events.jsonl"],
          ...blobs.map((blob) => `blobs/${blob}`)
        ]
        const whole = new Map<string, Uint8Array>()
        for (const name of names) whole.set(name, yield* fs.readFile(`${directory}/${name}`))
        const attacks = fc.sample(
          fc.record({
            name: fc.constantFrom(...names),
            at: fc.nat(),
            flip: fc.integer({ min: 1, max: 255 })
          }),
          40
        )
        for (const { at, flip, name } of attacks) {
          const bytes = whole.get(name) ?? new Uint8Array()
          const place = at % bytes.length
          const changed = Uint8Array.from(bytes, (byte, index) => (index === place ? byte ^ flip : byte))
          yield* fs.writeFile(`${directory}/${name}`, changed)
          const { findings } = yield* check(directory)
          yield* fs.writeFile(`${directory}/${name}`, bytes)
          const told = `${name}, byte ${place} xor ${flip}:\n${shown(findings)}`
          const subject = name.startsWith("blobs/") ? "events.jsonl" : name
          const found = wrong(findings).find((finding) => finding.subject === subject)
          assert.isDefined(found, told)
          if (name.startsWith("blobs/")) assert.include(found?.message ?? "", name, told)
          if (name !== "events.jsonl") continue
          const line = bytes.subarray(0, place).filter((byte) => byte === 0x0a).length + 1
          const said = Number(/line (\d+)/.exec(found?.message ?? "")?.[1] ?? line)
          assert.include([line, line + 1], said, told)
        }
        assert.deepStrictEqual(wrong((yield* check(directory)).findings), [])
      }),
      { checks: talkative }
    )
  )

  it.effect("notices lines that are gone, lines that were added, and half a line behind the last", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const file = `${directory}/events.jsonl`
        const text = yield* fs.readFileString(file)
        const lines = text.split("\n")
        const without = (at: number) => lines.filter((_, index) => index !== at).join("\n")
        for (const [what, content] of [
          ["the last line gone", without(lines.length - 2)],
          ["a line gone", without(3)],
          ["half a line added", `${text}{"version":1,`],
          ["a blank added", `${text} `],
          ["no last newline", text.slice(0, -1)],
          ["nothing left", ""]
        ] as const) {
          yield* fs.writeFileString(file, content)
          const failures = wrong((yield* check(directory)).findings)
          assert.include(
            failures.map((finding) => finding.subject),
            "events.jsonl",
            what
          )
        }
      })
    )
  )

  it.effect("does not believe a receipt that was made up around the same files", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { receipt } = yield* check(directory)
        if (receipt === null) return assert.fail("no receipt")
        const body = receipt
        const forge = Effect.fnUntraced(function* (some: Partial<Receipt>) {
          const forged = { ...body, ...some }
          const bytes = seal(forged, yield* digestOf(unsealed(forged)))
          yield* fs.writeFile(`${directory}/receipt.json`, bytes)
          return wrong((yield* check(directory)).findings)
        })
        assert.deepStrictEqual(yield* forge({}), [])
        const check1 = body.checks[0]
        if (check1 === undefined) return assert.fail("no check")
        for (const [where, some] of [
          ["red_on_base[0]", { red_on_base: [] }],
          ["checks[0].tests", { checks: [{ ...check1, tests: 99 }] }],
          ["checks[0].log_digest", { checks: [{ ...check1, log_digest: body.patch.digest }] }],
          ["waivers[0]", { waivers: ["no_check"] }],
          ["usage.input_tokens", { usage: { ...body.usage, input_tokens: 1 } }],
          ["base.tree", { base: { ...body.base, tree: body.tree } }],
          [
            "dependencies.copied[0]",
            { dependencies: body.dependencies && { ...body.dependencies, copied: ["x"] } }
          ],
          [
            "warnings[0]",
            { warnings: [{ kind: "test_changed", path: null, message: "nothing of the kind" }] }
          ]
        ] satisfies ReadonlyArray<readonly [string, Partial<Receipt>]>) {
          const [failure] = yield* forge(some)
          assert.strictEqual(failure?.subject, "receipt and journal", where)
          assert.include(failure?.message ?? "", where)
        }
        const [request] = yield* forge({ request_digest: body.patch.digest })
        assert.strictEqual(request?.subject, "request.json")
      })
    )
  )

  it.effect(
    "of another version's receipt says that its warnings were not compared, and shows its own too",
    () =>
      afterRun(
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const { receipt, warnings } = yield* check(directory)
          if (receipt === null) return assert.fail("no receipt")
          assert.deepStrictEqual(
            warnings.map((warning) => warning.kind),
            ["check_changed"]
          )
          assert.deepStrictEqual(warnings, receipt.warnings)
          const theirs = { kind: "test_skipped", path: "src/add.js", message: "seen by them" } as const
          for (const [said, told] of [
            [[], warnings],
            [[theirs], [theirs, ...warnings]],
            [warnings, warnings]
          ] as const) {
            const forged = { ...receipt, looplane: "0.0.1", warnings: said }
            yield* fs.writeFile(`${directory}/receipt.json`, seal(forged, yield* digestOf(unsealed(forged))))
            const checked = yield* check(directory)
            assert.deepStrictEqual(wrong(checked.findings), [])
            const finding = checked.findings.find(({ subject }) => subject === "warnings")
            assert.strictEqual(finding?.status, "skipped")
            assert.include(finding?.message, "0.0.1")
            assert.deepStrictEqual(checked.warnings, told)
          }
        }),
        {
          checks: passesWhen("src/add.js", "a + b"),
          task: {
            verification: {
              mode: "checks",
              checks: [{ name: "check-1", argv: ["node", "src/add.js"], timeout_seconds: 60 }]
            }
          }
        }
      )
  )

  it.effect("compares the result, and misses none of the files", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const attempt = Effect.fnUntraced(function* (name: string, change: (text: string) => string | null) {
          const file = `${directory}/${name}`
          const text = yield* fs.readFileString(file)
          const next = change(text)
          if (next === null) yield* fs.remove(file)
          else yield* fs.writeFileString(file, next)
          const failures = wrong((yield* check(directory)).findings)
          yield* fs.writeFileString(file, text)
          return failures.map((finding) => finding.subject)
        })
        assert.deepStrictEqual(
          yield* attempt("result.json", (text) => text.replace("verified", "unverified")),
          ["result.json"]
        )
        assert.deepStrictEqual(
          yield* attempt("result.json", (text) => text.replace("src/add.js", "src/b.js")),
          ["result.json"]
        )
        assert.deepStrictEqual(
          yield* attempt("result.json", (text) => text.replace('"changes.patch"', '"../../evil.patch"')),
          ["result.json"]
        )
        assert.deepStrictEqual(
          yield* attempt("result.json", (text) =>
            text.replace('"artifacts": {', '"artifacts": { "more": "x",')
          ),
          ["result.json"]
        )
        assert.include(
          yield* attempt("request.json", (text) => text.replace("Fix add.", "Fix it.")),
          "request.json"
        )
        assert.deepStrictEqual(yield* attempt("request.json", (text) => ` ${text}`), [])
        for (const name of ["changes.patch", "test.log", "verification.json", "request.json", "result.json"])
          assert.include(yield* attempt(name, () => null), name)
        assert.deepStrictEqual(yield* attempt("receipt.json", () => null), ["receipt.json"])
      })
    )
  )

  it.effect("of a receipt alone checks what can be checked, and says what cannot", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        yield* fs.makeDirectory("/mail")
        yield* fs.copyFile(`${directory}/receipt.json`, "/mail/r.json")
        yield* fs.copyFile(`${directory}/changes.patch`, "/mail/p.patch")
        const alone = yield* check("/mail/r.json")
        assert.deepStrictEqual(
          alone.findings.map(({ status, subject }) => `${status} ${subject}`),
          ["ok receipt.json", "skipped changes.patch", "skipped bundle"]
        )
        const together = yield* check("/mail/r.json", "/mail/p.patch")
        assert.deepStrictEqual(wrong(together.findings), [])
        assert.isNotNull(together.patch)
        yield* fs.writeFileString("/mail/p.patch", "another")
        const replaced = yield* check("/mail/r.json", "/mail/p.patch")
        assert.deepStrictEqual(
          wrong(replaced.findings).map((finding) => finding.subject),
          ["changes.patch"]
        )
        assert.isNull(replaced.patch)
        const refused = yield* Effect.flip(check("run-1", "/mail/p.patch"))
        assert.include(refused.message, "--patch")
        const unknown = yield* Effect.flip(check("nothing"))
        assert.include(unknown.message, "nothing")
      })
    )
  )

  it.effect("writes nothing", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const before = new Map<string, string>()
        const names = (yield* fs.readDirectory("/", { recursive: true })).toSorted()
        for (const name of names) {
          const info = yield* fs.stat(`/${name}`)
          if (info.type === "File") before.set(name, yield* fs.readFileString(`/${name}`))
        }
        yield* check(directory)
        assert.deepStrictEqual((yield* fs.readDirectory("/", { recursive: true })).toSorted(), names)
        for (const [name, text] of before) assert.strictEqual(yield* fs.readFileString(`/${name}`), text)
      })
    )
  )
})

describe("the evidence of a patch", () => {
  const evidence = Effect.gen(function* () {
    const store = yield* RunStore
    return yield* readEvidence(yield* store.find("run-1"))
  })

  it.effect("is in doubt when the request is not the one that the receipt speaks of", () =>
    afterRun(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        assert.isNull((yield* evidence).doubt)
        const file = `${directory}/request.json`
        const text = yield* fs.readFileString(file)
        yield* fs.writeFileString(file, ` ${text}`)
        assert.isNull((yield* evidence).doubt)
        yield* fs.writeFileString(file, text.replace('"/repo"', '"/another"'))
        const moved = yield* evidence
        assert.strictEqual(moved.request.task.repository, "/another")
        assert.include(moved.doubt, "request.json")
      })
    )
  )
})

describe("receipt check with a repository", () => {
  const reproduce = Effect.fnUntraced(function* (some: Partial<Parameters<typeof reproducePatch>[0]> = {}) {
    const { patch, receipt } = yield* check(directory)
    if (patch === null || receipt === null) return assert.fail("no receipt")
    const findings: Array<Finding> = []
    const told = (finding: Finding) => Effect.sync(() => void findings.push(finding))
    const request = {
      receipt,
      patch,
      directory: "/repo",
      unrun: null,
      deps: null,
      setup: [],
      check_network: "none" as const,
      setup_network: "none" as const,
      ...some
    }
    yield* reproducePatch(request, told)
    return findings
  })
  const statuses = (findings: ReadonlyArray<Finding>) =>
    findings.map(({ status, subject }) => `${status} ${subject}`)

  it.effect("puts the patch on its base, and runs the checks there", () =>
    afterRun(
      Effect.gen(function* () {
        assert.deepStrictEqual(statuses(yield* reproduce()), ["ok base", "ok tree", 'ok check "check-1"'])
        assert.deepStrictEqual(statuses(yield* reproduce({ unrun: "nobody asked" })), [
          "ok base",
          "ok tree",
          "skipped checks"
        ])
      })
    )
  )

  it.effect("does not take another tree or another verdict for the same", () =>
    afterRun(
      Effect.gen(function* () {
        const { patch, receipt } = yield* check(directory)
        if (patch === null || receipt === null) return assert.fail("no receipt")
        const text = new TextDecoder().decode(patch)
        const bytes = (changed: string) => new TextEncoder().encode(changed)
        const other = yield* reproduce({ patch: bytes(text.replace("a + b", "b + a")) })
        assert.deepStrictEqual(statuses(other), ["ok base", "failed tree"])
        const none = yield* reproduce({ patch: bytes(text.replace("a - b", "a / b")) })
        assert.deepStrictEqual(statuses(none), ["ok base", "failed tree"])
        assert.include(none[1]?.message ?? "", "apply")
        const [base] = yield* reproduce({
          receipt: { ...receipt, base: { ...receipt.base, tree: receipt.tree } }
        })
        assert.strictEqual(base?.status, "failed")
        const checks = receipt.checks.map((one) => ({ ...one, verdict: "failed" as const }))
        assert.deepStrictEqual(statuses(yield* reproduce({ receipt: { ...receipt, checks } })), [
          "ok base",
          "ok tree",
          'failed check "check-1"'
        ])
        const more = receipt.checks.map((one) => ({ ...one, tests: 5 }))
        assert.include(
          statuses(yield* reproduce({ receipt: { ...receipt, checks: more } })),
          'failed check "check-1"'
        )
        const elsewhere = yield* Effect.flip(reproduce({ directory: "/elsewhere" }))
        assert.include(elsewhere.message, "/elsewhere")
      })
    )
  )
})
