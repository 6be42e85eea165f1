import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { artifactNames } from "../../../src/domain/Result.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import { create, resultOf, root, runId, runPath, snapshot, story, wholeRun, world } from "./support.ts"

const careful = { accept_loss: false }

describe("finding a run", () => {
  it.effect("takes an id, the beginning of one, the last, and a path", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      assert.deepInclude(yield* Effect.flip(store.find("last")), {
        reason: "not_found",
        message: `there are no runs in ${root}`
      })
      yield* wholeRun("unasked")
      yield* fs.remove(runPath("unasked", "request.json"))
      assert.deepInclude(yield* Effect.flip(store.find("last")), {
        reason: "not_found",
        message: `no run in ${root} has its request: run unasked lacks request.json (${root}/unasked)`
      })
      yield* fs.remove(`${root}/unasked`, { recursive: true })
      for (const [index, id] of ["aa-1", "aa-2", "bb-3"].entries()) {
        yield* wholeRun(id)
        yield* fs.utimes(`${root}/${id}`, 1000 + index, 1000 + index)
      }
      yield* fs.makeDirectory(`${root}/nothing`)
      const found = (run: string) => Effect.map(store.find(run), (summary) => summary.run_id)
      for (const [run, id] of [
        ["aa-1", "aa-1"],
        ["b", "bb-3"],
        ["last", "bb-3"],
        [`${root}/aa-2`, "aa-2"],
        [`${root}/aa-2/`, "aa-2"],
        [`${root}/../runs/aa-1`, "aa-1"]
      ] as const)
        assert.strictEqual(yield* found(run), runId(id), run)
      for (const run of ["zz", "", "..", `${root}/nothing`, `${root}/none`])
        assert.strictEqual((yield* Effect.flip(store.find(run))).reason, "not_found", run)
      assert.strictEqual((yield* Effect.flip(store.find("aa"))).reason, "invalid")
      assert.deepInclude(yield* Effect.flip(store.find(`${root}/aa-1/events.jsonl`)), {
        reason: "invalid",
        message: `refused: ${root}/aa-1/events.jsonl is no directory`
      })
      assert.deepInclude(yield* Effect.flip(store.find(`${root}/aa-1/events.jsonl/x`)), {
        reason: "invalid",
        message: `something on this path is no directory: ${root}/aa-1/events.jsonl/x`
      })
    }).pipe(Effect.provide(layer))
  })

  it.effect("finds a bundle that was moved under another name, and goes on with it there", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* wholeRun("one", story.slice(0, -1))
      yield* fs.makeDirectory("/media/stick", { recursive: true })
      yield* fs.rename(`${root}/one`, "/media/stick/a bundle")
      const place = "/media/stick/a bundle"
      assert.deepInclude(yield* store.find(place), { run_id: runId("one"), directory: place })
      assert.strictEqual((yield* store.show(place)).entries.length, story.length)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { journal } = yield* store.open(place, careful)
          assert.deepInclude(journal, { run_id: runId("one"), directory: place })
          yield* journal.append({ event_type: "run.noted", data: { note: "moved" } })
        })
      )
      assert.strictEqual(yield* Stream.runCount(store.entries(place)), story.length + 1)
      yield* fs.remove(`${place}/session.json`)
      assert.strictEqual((yield* store.find(place)).run_id, runId("one"))
      yield* Effect.scoped(store.open(place, careful))
      assert.strictEqual((yield* store.show(place)).manifest?.run_id, runId("one"))
    }).pipe(Effect.provide(layer))
  })

  it.effect("refuses a symbolic link, and makes nothing in a directory that is no run", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* wholeRun("one")
      yield* fs.symlink(`${root}/one`, `${root}/linked`)
      yield* fs.makeDirectory("/home/project", { recursive: true })
      yield* fs.writeFileString("/home/project/main.c", "")
      for (const run of ["linked", `${root}/linked`])
        for (const look of [
          Effect.asVoid(store.find(run)),
          Effect.asVoid(store.show(run)),
          Stream.runDrain(store.entries(run)),
          Effect.asVoid(Effect.scoped(store.open(run, careful))),
          Effect.asVoid(store.fork(run, { sequence: 1, run_id: runId("two") }))
        ])
          assert.deepInclude(yield* Effect.flip(look), {
            reason: "invalid",
            message: `refused: ${root}/linked is a symbolic link`
          })
      assert.strictEqual(
        (yield* Effect.flip(Effect.scoped(store.open("/home/project", careful)))).message,
        "there is no run in /home/project"
      )
      assert.deepStrictEqual(yield* fs.readDirectory("/home/project"), ["main.c"])
    }).pipe(Effect.provide(layer))
  })
})

describe("a run that cannot be read", () => {
  it.effect("is not taken for one that is missing", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* wholeRun("one")
      const denied = (path: string) => ({
        reason: "unwritable" as const,
        message: `permission denied: ${path}`
      })
      for (const name of ["request.json", "session.json", "result.json"]) {
        yield* fs.chmod(runPath("one", name), 0)
        for (const run of ["one", `${root}/one`, "last"])
          assert.deepInclude(yield* Effect.flip(store.find(run)), denied(runPath("one", name)))
        const [listed] = yield* store.list({ limit: 1, query: null })
        assert.deepStrictEqual(listed?.missing, [`${name} (permission denied)`])
        assert.isNull(yield* store.unfinished)
        yield* fs.chmod(runPath("one", name), 0o600)
      }
      yield* fs.chmod(runPath("one", "test.log"), 0)
      yield* store.find("one")
      yield* fs.chmod(runPath("one", "events.jsonl"), 0)
      assert.deepInclude(yield* Effect.flip(store.show("one")), denied(runPath("one", "events.jsonl")))
      yield* fs.chmod(`${root}/one`, 0)
      for (const run of ["one", `${root}/one`]) {
        const error = yield* Effect.flip(store.find(run))
        assert.match(error.message, /^permission denied: \/state\/runs\/one/)
      }
      const [listed] = yield* store.list({ limit: 1, query: null })
      assert.isTrue(listed?.missing.every((name) => name.endsWith(" (permission denied)")))
      yield* fs.chmod(root, 0)
      for (const look of [Effect.asVoid(store.find("one")), Effect.asVoid(store.find("last"))])
        assert.match((yield* Effect.flip(look)).message, /^permission denied: /)
    }).pipe(Effect.provide(layer))
  })

  it.effect("of a name that would steer a terminal is quoted", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      const name = "a\nb\u001b[2J\u202e"
      yield* fs.makeDirectory(`${root}/x`, { recursive: true })
      yield* fs.writeFileString(`/tmp/${name}`, "")
      yield* fs.makeDirectory(`/tmp/d${name}`)
      yield* fs.symlink("/tmp", `/tmp/l${name}`)
      for (const run of [
        name,
        `./${name}`,
        `/tmp/${name}`,
        `/tmp/${name}/x`,
        `/tmp/d${name}`,
        `/tmp/l${name}`
      ]) {
        const { message } = yield* Effect.flip(store.find(run))
        assert.match(message, /^[ -~]+$/)
        assert.include(message, String.raw`a\nb\u001b[2J\u202e`)
      }
    }).pipe(Effect.provide(layer))
  })
})

describe("the newest unfinished run", () => {
  it.effect("is one that was begun and has no result that can be read", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      const unfinished = Effect.map(store.unfinished, (summary) => summary?.run_id ?? null)
      const age = (id: string, at: number) => fs.utimes(`${root}/${id}`, at, at)
      assert.isNull(yield* unfinished)
      yield* wholeRun("done")
      assert.isNull(yield* unfinished)
      yield* Effect.scoped(create("begun"))
      yield* wholeRun("ended")
      yield* fs.remove(runPath("ended", "result.json"))
      yield* fs.makeDirectory(`${root}/empty`)
      for (const [index, id] of ["begun", "ended", "done", "empty"].entries()) yield* age(id, 1000 + index)
      assert.strictEqual(yield* unfinished, runId("ended"))
      yield* age("begun", 2000)
      assert.strictEqual(yield* unfinished, runId("begun"))
      yield* fs.writeFileString(runPath("done", "result.json"), "{")
      yield* age("done", 3000)
      assert.strictEqual(yield* unfinished, runId("done"))
      // A later version's result is a result.
      yield* fs.writeFileString(runPath("done", "result.json"), '{"schema_version":2}')
      yield* age("done", 3000)
      assert.strictEqual(yield* unfinished, runId("begun"))
    }).pipe(Effect.provide(layer))
  })
})

describe("what a bundle lacks", () => {
  it.effect("is judged by what its own result names", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* wholeRun("one")
      const missing = Effect.map(store.find("one"), (summary) => summary.missing)
      yield* fs.remove(runPath("one", "receipt.json"))
      assert.deepStrictEqual(yield* missing, ["receipt.json"])
      const older = Object.entries(artifactNames).filter(([key]) => key !== "receipt")
      const result = { ...resultOf(runId("one")), artifacts: Object.fromEntries(older) }
      yield* fs.writeFileString(runPath("one", "result.json"), JSON.stringify(result))
      assert.deepStrictEqual(yield* missing, [])
      const long = { ...result, summary: "x".repeat(1024 * 1024) }
      yield* fs.writeFileString(runPath("one", "result.json"), JSON.stringify(long))
      assert.deepStrictEqual(yield* missing, ["receipt.json", "result.json"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("is told apart from what a newer version wrote, and odd files do no harm", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* wholeRun("one")
      for (const name of ["session.json", "request.json", "receipt.json"])
        yield* fs.writeFileString(runPath("one", name), '{"schema_version":2,"other":"shape"}')
      yield* fs.remove(runPath("one", "test.log"))
      yield* fs.makeDirectory(runPath("one", "test.log"))
      yield* fs.remove(runPath("one", "changes.patch"))
      yield* fs.symlink("/etc/passwd", runPath("one", "changes.patch"))
      const [listed] = yield* store.list({ limit: 1, query: null })
      assert.deepStrictEqual(listed?.missing, [
        "request.json (written by a newer version: 2)",
        "session.json (written by a newer version: 2)",
        "test.log",
        "changes.patch",
        "receipt.json (written by a newer version: 2)"
      ])
    }).pipe(Effect.provide(layer))
  })
})

describe("reading", () => {
  it.effect("never writes: not a byte, not a time", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* TestClock.setTime(1_000_000)
      yield* wholeRun("one")
      yield* wholeRun("cut", story.slice(0, -1))
      yield* fs.writeFileString(runPath("cut", "events.jsonl"), "half a li", { flag: "a" })
      yield* fs.writeFileString(runPath("cut", ".result.json.tmp"), "half")
      yield* fs.remove(runPath("cut", "session.json"))
      yield* store.fork("one", { sequence: 6, run_id: runId("fork") })
      yield* TestClock.setTime(9_000_000)
      const before = yield* snapshot(fs, "/state")
      yield* store.list({ limit: 10, query: null })
      yield* store.list({ limit: 10, query: "sum" })
      yield* store.unfinished
      for (const run of ["one", "cut", "fork", "last", `${root}/one`]) {
        yield* store.find(run)
        yield* store.show(run)
        yield* Stream.runDrain(store.entries(run))
      }
      assert.deepStrictEqual(yield* snapshot(fs, "/state"), before)
    }).pipe(Effect.provide(layer))
  })
})
