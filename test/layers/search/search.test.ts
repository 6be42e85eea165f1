/** What a search promises, held by ripgrep and by the walk alike. */
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect, Layer, PlatformError, type Scope } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { layerMemory } from "../../../src/layers/search/Memory.ts"
import { globsBeside } from "../../../src/layers/search/Ripgrep.ts"
import { layer, layerRipgrep, layerWalk } from "../../../src/layers/search/Search.ts"
import { makeMemoryWorkspace } from "../../../src/layers/workspace/Memory.ts"
import { Search, type SearchError, type SearchQuery } from "../../../src/services/Search.ts"

type Files = Readonly<Record<string, string | Uint8Array>>

const plant = (files: Files): Effect.Effect<string, never, Scope.Scope> =>
  Effect.gen(function* () {
    const root = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "looplane-search-"))),
      (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
    )
    for (const [path, content] of Object.entries(files)) {
      yield* Effect.promise(async () => {
        await mkdir(dirname(join(root, path)), { recursive: true })
        await writeFile(join(root, path), content)
      })
    }
    return root
  })

const query = (root: string, changes: Partial<SearchQuery>): SearchQuery => ({
  root,
  directory: "",
  query: "needle",
  regex: false,
  case_sensitive: true,
  glob: null,
  accepts: () => true,
  limit: 100,
  ...changes
})

const lines = (root: string, changes: Partial<SearchQuery>) =>
  Effect.gen(function* () {
    const { matches, truncated } = yield* (yield* Search).search(query(root, changes))
    const shown = matches.map(({ line, path, text }) => `${path}:${line}:${text}`)
    return truncated ? [...shown, "truncated"] : shown
  })

const engines: ReadonlyArray<readonly [string, Layer.Layer<Search>]> = [
  ["ripgrep", layerRipgrep(rgPath).pipe(Layer.provide(NodeServices.layer))],
  ["the walk", layerWalk.pipe(Layer.provide(NodeServices.layer))],
  ["what the machine has", layer.pipe(Layer.provide(NodeServices.layer))]
]

const noProcesses = Layer.succeed(
  ChildProcessSpawner.ChildProcessSpawner,
  ChildProcessSpawner.make(() =>
    Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" }))
  )
)

describe.each(engines)("%s", (_, engine) => {
  const test = (
    name: string,
    files: Files,
    run: (root: string) => Effect.Effect<void, SearchError, Search | Scope.Scope>
  ) => it.live(name, () => Effect.flatMap(plant(files), run).pipe(Effect.provide(engine)))

  test(
    "finds literal text in hidden files, and nothing in ignored, binary or git files",
    {
      ".env": "needle",
      "a.log": "needle",
      "b/c.txt": "no\nneedle (x)\r\n",
      "b/.gitignore": "d.txt\n",
      "b/d.txt": "needle",
      ".gitignore": "*.log\n",
      ".git/config": "needle",
      ".git/info/exclude": "b\n",
      binary: "needle\n\0",
      utf16: new Uint8Array([0xff, 0xfe, ...Buffer.from("needle", "utf16le")])
    },
    (root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* lines(root, {}), [
          ".env:1:needle",
          "b/c.txt:2:needle (x)",
          "utf16:1:needle"
        ])
        assert.deepStrictEqual(yield* lines(root, { query: "needle (" }), ["b/c.txt:2:needle (x)"])
      })
  )

  test(
    "forgets a match when a NUL follows far below",
    { a: `needle\n${"x\n".repeat(100_000)}\0`, b: "needle" },
    (root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* lines(root, {}), ["b:1:needle"])
      })
  )

  test(
    "is not led by ignore files above the root",
    { ".gitignore": "*\n", ".ignore": "*\n", "w/a": "needle" },
    (root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* lines(join(root, "w"), {}), ["a:1:needle"])
      })
  )

  test(
    "respects ignore files above the directory it looks in",
    {
      ".gitignore": "b.txt\n",
      "src/.ignore": "!b.txt\n/x/c.txt\n",
      "src/x/a.txt": "needle",
      "src/x/b.txt": "needle",
      "src/x/c.txt": "needle",
      "srcs/x/a.txt": "needle",
      "sr/x/a.txt": "needle",
      "x/a.txt": "needle"
    },
    (root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* lines(root, { directory: "src/x" }), [
          "src/x/a.txt:1:needle",
          "src/x/b.txt:1:needle"
        ])
        assert.deepStrictEqual(yield* lines(root, { directory: "nowhere" }), [])
      })
  )

  test(
    "a glob does not bring ignored files back",
    { ".gitignore": "*.js\n", "a.js": "needle", "a.ts": "needle" },
    (root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* lines(root, { glob: "a.*" }), ["a.ts:1:needle"])
        assert.deepStrictEqual(yield* lines(root, { glob: "!*.ts" }), [])
      })
  )

  test("asks before a match counts", { ".env": "needle", a: "needle\nneedle", z: "needle" }, (root) =>
    Effect.gen(function* () {
      const accepts = (path: string) => path !== ".env"
      assert.deepStrictEqual(yield* lines(root, { accepts, limit: 3 }), [
        "a:1:needle",
        "a:2:needle",
        "z:1:needle"
      ])
      assert.deepStrictEqual(yield* lines(root, { accepts, limit: 2 }), [
        "a:1:needle",
        "a:2:needle",
        "truncated"
      ])
    })
  )

  test("stops early and cuts long lines", { "a.txt": `${"é".repeat(5000)}needle\n`.repeat(300) }, (root) =>
    Effect.gen(function* () {
      const found = yield* lines(root, { limit: 2 })
      assert.deepStrictEqual(
        found,
        [1, 2].map((n) => `a.txt:${n}:${"é".repeat(250)} [line cut]`).concat("truncated")
      )
    })
  )

  test("does not follow symlinks", { "real/a": "needle" }, (root) =>
    Effect.gen(function* () {
      yield* Effect.promise(() => symlink(join(root, "real"), join(root, "link")))
      yield* Effect.promise(() => symlink(join(root, "real/a"), join(root, "file")))
      assert.deepStrictEqual(yield* lines(root, {}), ["real/a:1:needle"])
    })
  )

  test("a file that cannot be read does not cost the others", { a: "needle", b: "needle" }, (root) =>
    Effect.gen(function* () {
      yield* Effect.promise(() => chmod(join(root, "a"), 0))
      const found = yield* lines(root, {})
      assert.include(found, "b:1:needle")
    })
  )

  for (const [name, changes] of [
    ["an unclosed group", { query: "(", regex: true }],
    ["a look-behind", { query: "(?<=a)b", regex: true }],
    ["a look-ahead", { query: "a(?!b)", regex: true }],
    ["a back reference", { query: "(a)\\1", regex: true }],
    ["a line break", { query: "a\nb" }],
    ["an escaped line break", { query: "a\\nb", regex: true }],
    ["an empty query", { query: "" }],
    ["a bare repetition", { query: "*a", regex: true }]
  ] as const) {
    test(`refuses ${name}`, { a: "needle" }, (root) =>
      Effect.gen(function* () {
        const found = yield* Effect.result((yield* Search).search(query(root, changes)))
        assert.strictEqual(found._tag === "Failure" ? found.failure.reason : "found", "invalid_pattern")
      })
    )
  }

  test("is not stopped by an expression that backtracks", { a: `${"a".repeat(64)}b\n` }, (root) =>
    Effect.gen(function* () {
      const found = yield* Effect.result(
        (yield* Search).search(query(root, { query: "(a+)+$", regex: true }))
      )
      if (found._tag === "Failure") assert.strictEqual(found.failure.reason, "timed_out")
      else assert.strictEqual(found.success.matches.length, 0)
    })
  )
})

it.effect("a workspace in memory is searched alike, in the order of names in each directory", () =>
  Effect.gen(function* () {
    const memory = yield* makeMemoryWorkspace({
      z: "needle",
      ".gitignore": "*.log\n",
      "a.txt": "needle",
      "a/b.txt": "x\nneedle\n",
      "c.log": "needle",
      "\u{1f600}": "needle",
      "\uff5e": "needle"
    })
    const found = yield* lines("/anywhere", {}).pipe(Effect.provide(layerMemory(memory)))
    assert.deepStrictEqual(found, [
      "a/b.txt:2:needle",
      "a.txt:1:needle",
      "z:1:needle",
      "\uff5e:1:needle",
      "\u{1f600}:1:needle"
    ])
  })
)

it.live("without a ripgrep that runs, the walk takes over", () =>
  Effect.gen(function* () {
    const root = yield* plant({ a: "needle" })
    assert.deepStrictEqual(yield* lines(root, {}), ["a:1:needle"])
  }).pipe(Effect.provide(layer.pipe(Layer.provide(noProcesses), Layer.provide(NodeServices.layer))))
)

it("spells out what lies beside a directory", () => {
  assert.deepStrictEqual(globsBeside(""), [])
  assert.deepStrictEqual(globsBeside("ab"), ["!/[!a]*", "!/a", "!/a[!b]*", "!/ab?*"])
  assert.deepStrictEqual(globsBeside("a/[x]/b"), ["!/[!a]*", "!/a?*"])
})
