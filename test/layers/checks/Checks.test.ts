import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Ref } from "effect"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Check } from "../../../src/domain/Task.ts"
import { layer } from "../../../src/layers/checks/Checks.ts"
import { redact } from "../../../src/layers/checks/Redact.ts"
import { layerHost } from "../../../src/layers/sandbox/Host.ts"
import { layerNone } from "../../../src/layers/sandbox/None.ts"
import { Checks, type CheckPlace } from "../../../src/services/Checks.ts"
import { Sandbox, type SandboxCommand, type SandboxResult } from "../../../src/services/Sandbox.ts"

const host = layer.pipe(Layer.provide(layerHost), Layer.provide(NodeServices.layer))

const place = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "looplane-test-")))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  mkdirSync(join(folder, "verify/packages/app"), { recursive: true })
  const made: CheckPlace = {
    root: join(folder, "verify"),
    subdirectory: "",
    source: "/home/user/project",
    layers: [],
    distrust: null
  }
  return { folder, place: made }
})

const check = (...argv: readonly [string, ...ReadonlyArray<string>]): Check => ({
  name: "c",
  argv,
  timeout_seconds: 60
})
const options = { purpose: "final" as const, remaining_ms: 60_000, max_output_bytes: 10_000 }

/** A sandbox that answers with what it is told and keeps what it was asked. */
const answering = (result: Partial<SandboxResult>) =>
  Effect.map(Ref.make<ReadonlyArray<SandboxCommand>>([]), (asked) => ({
    asked,
    layer: layer.pipe(
      Layer.provide(
        Layer.succeed(
          Sandbox,
          Sandbox.of({
            kind: "host",
            overlays: false,
            run: (command) =>
              Effect.as(
                Ref.update(asked, (all) => [...all, command]),
                {
                  exit_code: 0,
                  timed_out: false,
                  stopped: null,
                  output: "",
                  output_bytes: 0,
                  duration_ms: 1500,
                  ...result
                }
              )
          })
        )
      ),
      Layer.provide(NodeServices.layer)
    )
  }))

const verdicts: ReadonlyArray<
  readonly [string, Partial<SandboxResult>, ReadonlyArray<string>, verdict: string, reason: RegExp | null]
> = [
  ["exit 0", {}, ["make"], "passed", null],
  ["tests ran", { output: "ℹ tests 2\n" }, ["node", "--test"], "passed", null],
  ["no tests ran", { output: "ℹ tests 0\n" }, ["node", "--test"], "could_not_verify", /ran no tests/],
  [
    "a runner that a test ended",
    { output: "ok\n" },
    ["node", "--test"],
    "could_not_verify",
    /how many tests/
  ],
  ["a script that says nothing", { output: "ok\n" }, ["npm", "test"], "passed", null],
  [
    "pytest exit 5",
    { exit_code: 5, output: "no tests ran in 0.01s" },
    ["pytest"],
    "could_not_verify",
    /ran no tests/
  ],
  [
    "vitest without files",
    { exit_code: 1, output: "No test files found, exiting with code 1" },
    ["vitest"],
    "could_not_verify",
    /ran no tests/
  ],
  [
    "a failing suite",
    { exit_code: 1, output: " Test Files  1 failed (1)\n      Tests  no tests" },
    ["vitest"],
    "failed",
    /exit 1/
  ],
  ["exit 1", { exit_code: 1 }, ["make"], "failed", /exit 1/],
  ["time-out", { exit_code: 124, timed_out: true }, ["make"], "failed", /timed out after 60 s/],
  [
    "shell: not found",
    { exit_code: 127, output: "sh: 1: vitest: not found" },
    ["npm", "test"],
    "could_not_verify",
    /--setup/
  ],
  [
    "the source's files",
    { output: "at /home/user/project/src/a.js:1" },
    ["make"],
    "could_not_verify",
    /wrong files/
  ],
  [
    "a place that only begins alike",
    { output: "at /home/user/project-2/src/a.js:1" },
    ["make"],
    "passed",
    null
  ],
  [
    "node package, undeclared",
    { exit_code: 1, output: "Error: Cannot find module 'left-pad'" },
    ["node", "a"],
    "failed",
    /exit 1/
  ],
  [
    "node package, declared",
    { exit_code: 1, output: "Cannot find package 'declared' imported from /x/a.js" },
    ["node", "a"],
    "could_not_verify",
    /declared.*--setup/
  ],
  [
    "a package's package",
    { exit_code: 1, output: "Cannot find package 'deep' imported from /x/node_modules/y/a.js" },
    ["node", "a"],
    "could_not_verify",
    /deep/
  ],
  [
    "node file",
    { exit_code: 1, output: "Cannot find module './a.js'\nCannot find module '/x/y.js' imported from /x" },
    ["node", "a"],
    "failed",
    /exit 1/
  ],
  [
    "python package",
    { exit_code: 1, output: "E   ModuleNotFoundError: No module named 'requests.auth'" },
    ["pytest"],
    "could_not_verify",
    /requests/
  ],
  [
    "python module of the repository",
    { exit_code: 1, output: "ModuleNotFoundError: No module named 'local.gone'" },
    ["pytest"],
    "failed",
    /exit 1/
  ]
]

for (const [name, result, argv, verdict, reason] of verdicts) {
  it.live(`judges: ${name}`, () =>
    Effect.gen(function* () {
      const made = yield* place
      writeFileSync(join(made.place.root, "package.json"), '{"devDependencies":{"declared":"1"}}')
      mkdirSync(join(made.place.root, "local"))
      const answer = yield* answering(result)
      const [program = "", ...rest] = argv
      const outcome = yield* Effect.flatMap(Checks, (checks) =>
        checks.run(check(program, ...rest), made.place, options)
      ).pipe(Effect.provide(answer.layer))
      assert.strictEqual(outcome.verdict, verdict, outcome.reason ?? "")
      if (reason === null) assert.isNull(outcome.reason)
      else assert.match(outcome.reason ?? "", reason)
      assert.strictEqual(outcome.duration_seconds, 1.5)
    })
  )
}

it.live("starts nothing that could prove nothing", () =>
  Effect.gen(function* () {
    const made = yield* place
    const answer = yield* answering({})
    const run = (one: Check, where: CheckPlace, remaining_ms = 1000) =>
      Effect.flatMap(Checks, (checks) => checks.run(one, where, { ...options, remaining_ms })).pipe(
        Effect.provide(answer.layer)
      )
    const distrusted = yield* run(check("make"), {
      ...made.place,
      distrust: "x.pth points back into /home/user/project"
    })
    assert.strictEqual(distrusted.verdict, "could_not_verify")
    assert.include(distrusted.reason ?? "", "x.pth")
    assert.strictEqual(
      (yield* run(check("node", "/home/user/project/a.js"), made.place)).verdict,
      "could_not_verify"
    )
    assert.strictEqual((yield* run(check("make"), made.place, 0)).verdict, "not_run")
    assert.strictEqual((yield* run(check("make"), { ...made.place, subdirectory: "gone" })).verdict, "failed")
    assert.deepStrictEqual(yield* Ref.get(answer.asked), [])
  })
)

it.live(
  "runs in the subdirectory, with a home of its own that is gone afterwards, within the time that is left",
  () =>
    Effect.gen(function* () {
      const made = yield* place
      const answer = yield* answering({ timed_out: true, exit_code: 124 })
      const outcome = yield* Effect.flatMap(Checks, (checks) =>
        checks.run(
          check("make"),
          { ...made.place, subdirectory: "packages/app" },
          { ...options, remaining_ms: 2000 }
        )
      ).pipe(Effect.provide(answer.layer))
      assert.strictEqual(outcome.verdict, "could_not_verify")
      assert.include(outcome.reason ?? "", "2 s")
      const [asked] = yield* Ref.get(answer.asked)
      assert.strictEqual(asked?.directory, "packages/app")
      assert.strictEqual(asked?.place.root, made.place.root)
      assert.strictEqual(asked?.timeout_ms, 2000)
      for (const name of ["HOME", "TMPDIR", "XDG_CACHE_HOME"]) {
        assert.isTrue(asked?.env[name]?.startsWith(`${made.folder}/task-`), name)
        assert.isFalse(existsSync(asked?.env[name] ?? ""))
      }
      assert.deepStrictEqual(readdirSync(made.folder), ["verify"])
    })
)

it.live("says what to do when a command cannot start", () =>
  Effect.gen(function* () {
    const made = yield* place
    writeFileSync(join(made.place.root, "plain"), "")
    const checks = yield* Checks
    const missing = yield* checks.run(check("no-such-program-here"), made.place, options)
    assert.deepInclude(missing, { verdict: "could_not_verify", exit_code: 127 })
    assert.include(missing.reason ?? "", "--setup")
    assert.deepInclude(yield* checks.run(check("./plain"), made.place, options), {
      verdict: "could_not_verify",
      exit_code: 126
    })
  }).pipe(Effect.provide(host))
)

it.live("really runs, and hides secrets in what it keeps", () =>
  Effect.gen(function* () {
    const made = yield* place
    const checks = yield* Checks
    const outcome = yield* checks.run(
      check("sh", "-c", "echo API_KEY=abcdef123456; echo ok; exit 2"),
      made.place,
      options
    )
    assert.deepInclude(outcome, { verdict: "failed", exit_code: 2, output: "API_KEY=[redacted]\nok\n" })
  }).pipe(Effect.provide(host))
)

it.live("without a place for commands every check could not verify", () =>
  Effect.gen(function* () {
    const made = yield* place
    const outcome = yield* Effect.flatMap(Checks, (checks) => checks.run(check("true"), made.place, options))
    assert.deepInclude(outcome, { verdict: "could_not_verify", exit_code: 126 })
    assert.include(outcome.reason ?? "", "--unsafe-local-exec")
  }).pipe(Effect.provide(layer.pipe(Layer.provide(layerNone), Layer.provide(NodeServices.layer))))
)

it("hides what looks like a secret and nothing else", () => {
  const secrets = [
    `sk-${"a".repeat(20)}`,
    `ghp_${"a".repeat(36)}`,
    `AKIA${"A".repeat(16)}`,
    "Authorization: Bearer abc.def.ghi",
    "MY_TOKEN='hunter22hunter'",
    '"password": "correct-horse"',
    "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
    `eyJ${"a".repeat(10)}.${"b".repeat(10)}.${"c".repeat(10)}`
  ]
  for (const secret of secrets) {
    const shown = redact(`before ${secret} after`)
    assert.include(shown, "[redacted]", secret)
    assert.match(shown, /^before /)
  }
  for (const text of [
    "tokens: 1234567",
    "expected 1 to be 2",
    "token = makeToken()",
    "ℹ tests 3",
    "sk-short"
  ]) {
    assert.strictEqual(redact(text), text)
  }
})
