import { assert, describe, it } from "@effect/vitest"
import { Effect, type FileSystem, Result } from "effect"
import { Digest } from "effect/crypto"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import { writeReceipt } from "../../../src/programs/MakeReceipt.ts"
import { RunStore, type StoreError } from "../../../src/services/RunStore.ts"
import {
  create,
  note,
  request,
  resultOf,
  root,
  runId,
  runPath,
  snapshot,
  storeOn,
  story,
  world
} from "./support.ts"

const evidence = ["result.json", "receipt.json", "changes.patch", "verification.json", "test.log"]
const aside = [
  "result.lost.json",
  "receipt.lost.json",
  "changes.lost.patch",
  "verification.lost.json",
  "test.lost.log"
]
const second = aside.map((name) => name.replace(".lost", ".lost-2"))

const open = (id: string, accept_loss: boolean) =>
  Effect.flatMap(RunStore, (store) => store.open(id, { accept_loss }))

/** A run that ended, with the receipt that it would have. */
const sealedRun = (id: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* create(id)
      for (const event of story) yield* journal.append(event)
      yield* journal.barrier
      for (const name of ["changes.patch", "verification.json", "test.log"])
        yield* journal.writeFile(name, `${name} of ${id}\n`)
      yield* writeReceipt({ journal, request, test_log: "", verification: "" })
      yield* journal.writeFile("result.json", JSON.stringify(resultOf(runId(id))))
    })
  ).pipe(Effect.provide(Digest.layerWebCrypto))

const cutTo = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, id: string, lines: number) {
  const file = runPath(id, "events.jsonl")
  const all = (yield* fs.readFileString(file)).match(/.*\n/g) ?? []
  yield* fs.writeFileString(file, all.slice(0, lines).join(""))
  return all.length - lines
})
const contents = (fs: FileSystem.FileSystem, id: string, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => fs.readFileString(runPath(id, name)))

const manifests = ["as it was", "gone", "older"] as const

describe("a sealed receipt", () => {
  it.effect.each(manifests)("knows how long the journal was, with the manifest %s", (manifest) => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      const session = runPath("one", "session.json")
      yield* sealedRun("one")
      const lost = yield* cutTo(fs, "one", 5)
      if (manifest === "gone") yield* fs.remove(session)
      if (manifest === "older") {
        const head = { sequence: -1, hash: "0".repeat(64) }
        yield* fs.writeFileString(
          session,
          JSON.stringify({ ...JSON.parse(yield* fs.readFileString(session)), head })
        )
      }
      const before = yield* snapshot(fs, `${root}/one`)
      const failure = yield* Effect.flip(Effect.scoped(open("one", false)))
      assert.strictEqual(failure.reason, "damaged")
      assert.include(failure.message, `${lost} events are lost`)
      assert.include((yield* Effect.flip(store.show("one"))).message, `${lost} events are lost`)
      assert.deepStrictEqual(yield* snapshot(fs, `${root}/one`), before)
      const old = yield* contents(fs, "one", evidence)
      const taken = yield* Effect.scoped(open("one", true))
      assert.deepStrictEqual([taken.lost, taken.complete], [lost, false])
      assert.deepStrictEqual(yield* contents(fs, "one", aside), old)
      assert.strictEqual((yield* store.show("one")).entries.length, 5)
      assert.strictEqual((yield* Effect.scoped(open("one", false))).lost, 0)
    }).pipe(Effect.provide(layer))
  })

  it.effect("that is another run's, or was changed, knows nothing", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* sealedRun("one")
      yield* sealedRun("two")
      const receipt = runPath("one", "receipt.json")
      const sound = yield* fs.readFileString(receipt)
      const others = yield* fs.readFileString(runPath("two", "receipt.json"))
      for (const content of [others, sound.replace('"verified"', '"error"'), "", "{}"]) {
        yield* cutTo(fs, "one", 5)
        yield* fs.remove(runPath("one", "session.json"), { force: true })
        yield* fs.writeFileString(receipt, content)
        assert.strictEqual((yield* Effect.scoped(open("one", false))).lost, 0)
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("stands in no follow-up's way, whenever that one stops", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* sealedRun("one")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { discard, journal } = yield* open("one", false)
          yield* discard
          yield* journal.append(note("more"))
        })
      )
      yield* fs.remove(runPath("one", "session.json"))
      assert.strictEqual((yield* Effect.scoped(open("one", false))).lost, 0)
    }).pipe(Effect.provide(layer))
  })
})

describe("evidence of an end that was lost", () => {
  it.effect("is all kept under one number, wherever a disk fails, and the loss is told until it is", () => {
    const { fileSystem: fs } = world()
    return Effect.gen(function* () {
      let total = Number.MAX_SAFE_INTEGER
      let stopped = 0
      for (let failAt = 0; failAt < total; failAt++) {
        const id = `run-${failAt}`
        const here = Effect.provide(storeOn(fs))
        yield* here(sealedRun(id))
        yield* fs.writeFileString(runPath(id, "result.lost.json"), "of an earlier time")
        yield* fs.remove(runPath(id, "session.json"))
        const lost = yield* cutTo(fs, id, 5)
        const old = yield* contents(fs, id, evidence)
        let steps = 0
        const plan = Faulty.failFrom({ failAt, error: "EIO" })
        const faulty = Faulty.make(fs, (step) => {
          steps++
          return plan(step)
        })
        const result: Result.Result<unknown, StoreError> = yield* Effect.scoped(open(id, true)).pipe(
          Effect.provide(storeOn(faulty)),
          Effect.result
        )
        if (Result.isSuccess(result)) total = steps
        if (yield* fs.exists(runPath(id, "receipt.json"))) {
          stopped++
          const failure = yield* here(Effect.flip(Effect.scoped(open(id, false))))
          assert.include(failure.message, `${lost} events are lost`)
          assert.strictEqual((yield* here(Effect.scoped(open(id, true)))).lost, lost)
        } else yield* here(Effect.scoped(open(id, true)))
        assert.strictEqual(yield* fs.readFileString(runPath(id, "result.lost.json")), "of an earlier time")
        const names = yield* fs.readDirectory(`${root}/${id}`)
        const numbers = new Set(names.flatMap((name) => /\.lost(-\d+)?\./.exec(name)?.[1] ?? []))
        assert.deepStrictEqual([...numbers], ["-2"], names.join(" "))
        assert.deepStrictEqual(yield* contents(fs, id, second), old)
      }
      assert.isAbove(stopped, 5)
    })
  })
})
