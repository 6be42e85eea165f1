import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Path, Redacted } from "effect"
import { layer as layerMemory } from "../../src/layers/fs/Memory.ts"
import { layerGit, layerPrograms, layerSettings } from "../../src/layers/Test.ts"
import { chooseModels, type ModelRequestSpec } from "../../src/programs/ChooseModels.ts"
import { prepareTask, type TaskRequest } from "../../src/programs/Prepare.ts"
import type { Settings } from "../../src/services/Settings.ts"

const request: TaskRequest = {
  instruction: "Fix add.",
  directory: "/repo",
  run_root: "/runs",
  checks: [],
  no_check: false,
  checks_required: true,
  allowed_paths: ["**"],
  protected_paths: [],
  base_revision: null,
  working_tree: false,
  max_steps: 60,
  wall_time_seconds: 1800,
  check_timeout_seconds: null,
  check_network: "none",
  setup_network: "none",
  max_total_tokens: null,
  deps: "auto",
  setup: [],
  include: [],
  baseline: true
}

const prepare = (files: Readonly<Record<string, string>>, changes: Partial<TaskRequest>) =>
  prepareTask({ ...request, ...changes }).pipe(
    Effect.provide(
      Layer.mergeAll(
        layerGit(files),
        layerPrograms(["npm", "pnpm", "node", "cargo", "go", "make", "python3"]),
        layerMemory(),
        Path.layer
      )
    )
  )
const refusal = (files: Readonly<Record<string, string>>, changes: Partial<TaskRequest>) =>
  Effect.map(Effect.flip(prepare(files, changes)), (error) => error.message)
const scripts = (some: Readonly<Record<string, string>>) => ({
  "package.json": JSON.stringify({ scripts: some })
})

describe("checks", () => {
  it.effect("are proposed from what the repository has, and taken with auto", () =>
    Effect.gen(function* () {
      const worlds: ReadonlyArray<readonly [Readonly<Record<string, string>>, ReadonlyArray<string>]> = [
        [scripts({ test: "node --test", lint: "x", build: "y" }), ["npm test", "npm run lint"]],
        [{ ...scripts({ test: "vitest" }), "pnpm-lock.yaml": "" }, ["pnpm test"]],
        [{ "Cargo.toml": "", "src/main.rs": "" }, ["cargo test"]],
        [{ "go.mod": "" }, ["go test ./..."]],
        [{ "tests/test_a.py": "" }, ["python3 -m pytest -q"]],
        [{ Makefile: "all:\n\ttrue\ntest: all\n\ttrue\n" }, ["make test"]]
      ]
      for (const [files, proposed] of worlds) {
        const message = yield* refusal(files, {})
        for (const line of proposed) assert.include(message, `--check ${JSON.stringify(line)}`)
        const task = yield* prepare(files, { checks: ["auto"] })
        assert.deepStrictEqual(
          task.verification.mode === "checks" ? task.verification.checks.map((c) => c.argv.join(" ")) : [],
          proposed
        )
      }
    })
  )

  it.effect("are not proposed from a placeholder, a broken manifest or nothing", () =>
    Effect.gen(function* () {
      for (const files of [
        scripts({ test: 'echo "Error: no test specified" && exit 1' }),
        { "package.json": "{" },
        {}
      ]) {
        assert.match(yield* refusal(files, {}), /name one, as in --check "npm test"/)
        assert.match(yield* refusal(files, { checks: ["auto"] }), /found nothing/)
      }
    })
  )

  it.effect("must be programs that are here, unless a path names them", () =>
    Effect.gen(function* () {
      assert.match(yield* refusal({}, { checks: ["vitest run"] }), /"vitest" is not on PATH/)
      const task = yield* prepare({}, { checks: ["node_modules/.bin/vitest run"] })
      assert.strictEqual(task.verification.mode, "checks")
      assert.match(yield* refusal({}, { checks: ["npm test", "npm  test"] }), /given twice/)
    })
  )

  it.effect("may be waived or left out, and nothing runs on the host then", () =>
    Effect.gen(function* () {
      const waived = yield* prepare({}, { no_check: true })
      assert.deepStrictEqual(waived.verification, { mode: "waived" })
      const none = yield* prepare({}, { checks_required: false })
      assert.deepStrictEqual(none.verification, { mode: "undeclared" })
    })
  )
})

describe("models", () => {
  const spec: ModelRequestSpec = { provider: null, model: null, api_url: null, fallback_models: [] }
  const choose = (changes: Partial<ModelRequestSpec>, settings: Partial<Settings["Service"]> = {}) =>
    chooseModels({ ...spec, ...changes }).pipe(Effect.provide(layerSettings(settings)))
  const shape = (models: ReadonlyArray<{ provider: string; model: string; api_url: string | null }>) =>
    models.map((model) => [model.provider, model.model, model.api_url])

  it.effect("command line beats environment beats configuration", () =>
    Effect.gen(function* () {
      const config = Effect.succeed({ provider: "anthropic", model: "c", api_url: "https://c" })
      assert.deepStrictEqual(shape(yield* choose({}, { config })), [["anthropic", "c", "https://c"]])
      assert.deepStrictEqual(shape(yield* choose({}, { config, model: "e" })), [
        ["anthropic", "e", "https://c"]
      ])
      assert.deepStrictEqual(shape(yield* choose({ model: "f" }, { config, model: "e" })), [
        ["anthropic", "f", "https://c"]
      ])
      assert.deepStrictEqual(shape(yield* choose({ model: "meta-llama/x" })), [
        ["openai-compatible", "meta-llama/x", null]
      ])
      assert.deepStrictEqual(shape(yield* choose({ model: "ollama/qwen3:4b" })), [
        ["ollama", "qwen3:4b", null]
      ])
    })
  )

  it.effect("take an id with a slash as it is where ids have one, and refuse it where they have none", () =>
    Effect.gen(function* () {
      const spec = { provider: "openrouter", model: "anthropic/claude-x" }
      assert.deepStrictEqual(shape(yield* choose(spec)), [["openrouter", "anthropic/claude-x", null]])
      assert.deepStrictEqual(shape(yield* choose({ ...spec, model: "openrouter/anthropic/claude-x" })), [
        ["openrouter", "anthropic/claude-x", null]
      ])
      const two = yield* Effect.flip(choose({ provider: "anthropic", model: "ollama/x" }))
      assert.match(two.message, /two providers/)
    })
  )

  it.effect("read a prefix in the configuration as they do on the command line", () =>
    Effect.gen(function* () {
      const config = Effect.succeed({ model: "anthropic/c", api_url: "https://c" })
      assert.deepStrictEqual(shape(yield* choose({}, { config })), [["anthropic", "c", "https://c"]])
      const urlOnly = Effect.succeed({ api_url: "https://c" })
      assert.deepStrictEqual(shape(yield* choose({ model: "deepseek/m" }, { config: urlOnly })), [
        ["deepseek", "m", null]
      ])
      assert.deepStrictEqual(shape(yield* choose({ model: "m" }, { config: urlOnly })), [
        ["openai-compatible", "m", "https://c"]
      ])
    })
  )

  it.effect("never send one provider's URL or model to another", () =>
    Effect.gen(function* () {
      const config = Effect.succeed({ provider: "anthropic", model: "c", api_url: "https://c" })
      assert.deepStrictEqual(shape(yield* choose({ provider: "ollama", model: "m" }, { config })), [
        ["ollama", "m", null]
      ])
      const missing = yield* Effect.flip(choose({ provider: "ollama" }, { config }))
      assert.match(missing.message, /no model is set for ollama/)
    })
  )

  it.effect("fall back to models with their own keys", () =>
    Effect.gen(function* () {
      const apiKey = (provider: string) => (provider === "anthropic" ? Redacted.make("a-key") : null)
      const models = yield* choose(
        { model: "m", fallback_models: ["anthropic/claude", "openai-compatible/n"] },
        { apiKey }
      )
      assert.deepStrictEqual(shape(models), [
        ["openai-compatible", "m", null],
        ["anthropic", "claude", null],
        ["openai-compatible", "n", null]
      ])
      assert.deepStrictEqual(
        models.map((model) => model.api_key !== null),
        [false, true, false]
      )
    })
  )
})
