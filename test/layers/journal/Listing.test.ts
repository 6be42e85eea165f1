import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import { root, storeOn, wholeRun, world } from "./support.ts"

describe("listing runs", () => {
  it.effect("shows the newest first, what is missing, and finds by id, task and end", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      assert.deepStrictEqual(yield* store.list({ limit: 5, query: null }), [])
      for (const [index, id] of ["aa-1", "aa-2", "bb-3"].entries()) {
        yield* wholeRun(id)
        yield* fs.utimes(`${root}/${id}`, 1000 + index, 1000 + index)
      }
      yield* fs.remove(`${root}/aa-2/result.json`)
      yield* fs.writeFileString(`${root}/aa-2/request.json`, "{")
      yield* fs.utimes(`${root}/aa-2`, 1001, 1001)
      yield* fs.makeDirectory(`${root}/empty`)
      yield* fs.utimes(`${root}/empty`, 1, 1)
      yield* fs.makeDirectory(`${root}/not a run`)
      yield* fs.writeFileString(`${root}/file`, "x")
      yield* fs.symlink(`${root}/bb-3`, `${root}/linked`)

      const all = yield* store.list({ limit: 10, query: null })
      assert.deepStrictEqual(
        all.map((one) => [one.run_id, one.missing.length, one.modified_ms]),
        [
          ["bb-3", 0, 1_002_000],
          ["aa-2", 2, 1_001_000],
          ["aa-1", 0, 1_000_000],
          ["empty", 9, 1000]
        ]
      )
      assert.deepStrictEqual(all[1]?.missing, ["request.json", "result.json"])
      const ids = (query: string | null, limit = 10) =>
        Effect.map(store.list({ limit, query }), (list) => list.map((one) => one.run_id))
      assert.deepStrictEqual(yield* ids(null, 2), ["bb-3", "aa-2"])
      assert.deepStrictEqual(yield* ids("AA-"), ["aa-2", "aa-1"])
      assert.deepStrictEqual(yield* ids("the SUM"), ["bb-3", "aa-1"])
      assert.deepStrictEqual(yield* ids("verified", 1), ["bb-3"])
      assert.deepStrictEqual(yield* ids("nothing like it"), [])

      assert.strictEqual((yield* store.show("bb")).run_id, "bb-3")
      assert.deepInclude(yield* Effect.flip(store.show("aa")), {
        reason: "invalid",
        message: "aa is the beginning of 2 runs, among them aa-1 and aa-2"
      })
      for (const id of ["zz", "", "..", "../runs/bb-3"])
        assert.strictEqual((yield* Effect.flip(store.show(id))).reason, "not_found", id)
    }).pipe(Effect.provide(layer))
  })

  it.effect("reads no journal, and of a thousand bundles only the ones that it shows", () => {
    const { fileSystem } = Memory.make()
    const opened: Array<string> = []
    const counting = FileSystem.make({
      ...fileSystem,
      open: (path, options) => {
        opened.push(path)
        return fileSystem.open(path, options)
      }
    })
    return Effect.gen(function* () {
      yield* Effect.provide(wholeRun("model-1"), storeOn(fileSystem))
      for (let n = 0; n < 1000; n++) yield* fileSystem.makeDirectory(`${root}/run-${n}`)
      const store = yield* RunStore
      const listed = yield* store.list({ limit: 20, query: null })
      assert.strictEqual(listed.length, 20)
      assert.isFalse(opened.some((path) => path.endsWith("events.jsonl")))
      const found = yield* store.list({ limit: 20, query: "model" })
      assert.deepStrictEqual(
        found.map((one) => one.run_id),
        ["model-1"]
      )
      assert.isBelow(new Set(opened).size, 20)
    }).pipe(Effect.provide(storeOn(counting)))
  })
})
