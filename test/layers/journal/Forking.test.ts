import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Result } from "effect"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { RunStore, type StoreError, type StoredEntry } from "../../../src/services/RunStore.ts"
import {
  create,
  foldOf,
  note,
  populate,
  root,
  runId,
  runPath,
  settle,
  snapshot,
  storeOn,
  story,
  wholeRun,
  world
} from "./support.ts"

const fork = (run: string, sequence: number, id: string) =>
  Effect.flatMap(RunStore, (store) => store.fork(run, { sequence, run_id: runId(id) }))
const open = (id: string) => Effect.flatMap(RunStore, (store) => store.open(id, { accept_loss: false }))
const show = (id: string) => Effect.flatMap(RunStore, (store) => store.show(id))
const events = (entries: ReadonlyArray<StoredEntry>) => entries.map((entry) => entry.event)

const forked = (id: string, source: string, sequence: number, event_type: string) => ({
  event_type: "run.forked",
  data: {
    run_id: id,
    source_run_id: source,
    fork_point_sequence: sequence,
    fork_point_event_type: event_type,
    base_sha: "1".repeat(40)
  }
})

describe("a fork", () => {
  it.effect(
    "of any event begins with the source's history up to there, before and after it is opened",
    () => {
      const { fileSystem: fs, layer } = world()
      return Effect.gen(function* () {
        yield* wholeRun("one")
        yield* populate(fs, "one")
        const source = yield* show("one")
        const before = yield* snapshot(fs, `${root}/one`)
        for (const [sequence, { event }] of source.entries.entries()) {
          const id = `fork-${sequence}`
          assert.deepStrictEqual(yield* fork("one", sequence, id), {
            run_id: runId(id),
            directory: `${root}/${id}`
          })
          assert.deepStrictEqual((yield* fs.readDirectory(`${root}/${id}`)).toSorted(), [
            "blobs",
            "events.jsonl",
            "request.json",
            "session.json"
          ])
          assert.strictEqual((yield* fs.readFileString(runPath(id, "events.jsonl"))).match(/\n/g)?.length, 1)
          const expected = [
            ...events(source.entries).slice(0, sequence + 1),
            forked(id, "one", sequence, event.event_type)
          ]
          const shown = yield* show(id)
          assert.deepStrictEqual(events(shown.entries), expected)
          assert.deepStrictEqual(shown.request, source.request)
          assert.strictEqual(shown.manifest?.head.sequence, sequence + 1)
          const state = yield* Effect.scoped(
            Effect.gen(function* () {
              const { complete, journal, lost } = yield* open(id)
              assert.deepStrictEqual([complete, lost], [false, 0])
              assert.strictEqual(journal.run_id, runId(id))
              return yield* journal.state
            })
          )
          assert.deepStrictEqual(state, foldOf(shown.entries))
          assert.strictEqual(state.run_id, runId(id))
          assert.deepStrictEqual(yield* snapshot(fs, `${root}/one`), before)
        }
        // Each is a bundle of its own now.
        yield* fs.remove(`${root}/one`, { recursive: true })
        for (const sequence of source.entries.keys()) {
          const shown = yield* show(`fork-${sequence}`)
          assert.strictEqual(shown.entries.length, sequence + 2)
          assert.strictEqual(shown.entries[0]?.sequence, 0)
          yield* Effect.scoped(open(`fork-${sequence}`))
        }
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("takes copies of what its history needs, and nothing that was passing", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* populate(fs, "one")
      const { entries } = yield* show("one")
      yield* fork("one", 5, "early")
      yield* Effect.scoped(open("early"))
      assert.deepStrictEqual(yield* fs.readDirectory(`${root}/early/blobs`), [])
      yield* fork("one", entries.length - 1, "late")
      yield* Effect.scoped(open("late"))
      assert.deepStrictEqual(
        yield* fs.readDirectory(`${root}/late/blobs`),
        yield* fs.readDirectory(`${root}/one/blobs`)
      )
      const names = (yield* fs.readDirectory(`${root}/late`, { recursive: true })).filter(
        (name) => name.startsWith("git") || name.startsWith("deps") || name.startsWith("workspace")
      )
      assert.deepStrictEqual(names.toSorted(), [
        "deps",
        "deps/node_modules",
        "deps/node_modules/.bin",
        "deps/node_modules/.bin/tool",
        "deps/node_modules/tool.js",
        "git",
        "git/HEAD",
        "git/index",
        "git/objects",
        "git/objects/ab",
        "git/objects/ab/cdef"
      ])
      assert.strictEqual(yield* fs.readLink(`${root}/late/deps/node_modules/.bin/tool`), "../tool.js")
      assert.strictEqual((yield* fs.stat(`${root}/late/deps/node_modules/tool.js`)).mode & 0o777, 0o755)
      assert.deepStrictEqual(
        (yield* fs.stat(`${root}/one/git/HEAD`)).nlink,
        (yield* fs.stat(`${root}/late/git/HEAD`)).nlink
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("may be taken while its source is written, of a line that no barrier covered yet", () => {
    const { disk, fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const journal = yield* create("one")
      for (const event of story) yield* journal.append(event)
      yield* journal.append(note("x".repeat(15_000)))
      for (let n = 0; n < 5; n++) yield* journal.append(note("y".repeat(15_000)))
      const written = (yield* fs.readFileString(runPath("one", "events.jsonl"))).match(/\n/g)?.length ?? 0
      assert.isAbove(written, story.length)
      yield* fork("one", written - 1, "two")
      yield* journal.append(note("the source goes on"))
      assert.strictEqual((yield* show("two")).entries.length, written + 1)
      // Power is lost before the source comes to a barrier.
      yield* disk.crash()
      yield* Effect.scoped(open("two"))
      assert.strictEqual((yield* show("two")).entries.length, written + 1)
    }).pipe(Effect.provide(layer))
  })

  it.effect("of a fork finds its history where it is", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* populate(fs, "one")
      const source = events((yield* show("one")).entries)
      yield* fork("one", 8, "two")
      yield* fork("two", 9, "three")
      yield* fork("three", 4, "four")
      const third = [
        ...source.slice(0, 9),
        forked("two", "one", 8, source[8]?.event_type ?? ""),
        forked("three", "two", 9, "run.forked")
      ]
      assert.deepStrictEqual(events((yield* show("three")).entries), third)
      const fourth = [...source.slice(0, 5), forked("four", "one", 4, source[4]?.event_type ?? "")]
      assert.deepStrictEqual(events((yield* show("four")).entries), fourth)
      yield* Effect.scoped(open("three"))
      yield* Effect.scoped(open("four"))
      yield* fs.remove(`${root}/one`, { recursive: true })
      yield* fs.remove(`${root}/two`, { recursive: true })
      assert.deepStrictEqual(events((yield* show("three")).entries), third)
      assert.deepStrictEqual(events((yield* show("four")).entries), fourth)
      assert.isTrue(yield* fs.exists(`${root}/three/git/HEAD`))
      const { journal } = yield* open("three")
      assert.strictEqual(journal.run_id, runId("three"))
    }).pipe(Effect.provide(layer))
  })

  it.effect("keeps its own name when its manifest is gone", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* fork("one", 6, "two")
      yield* fs.remove(runPath("two", "session.json"))
      yield* Effect.scoped(open("two"))
      assert.strictEqual((yield* show("two")).manifest?.run_id, runId("two"))
      yield* fs.remove(runPath("two", "session.json"))
      yield* fs.rename(`${root}/two`, "/tmp/moved")
      const store = yield* RunStore
      assert.strictEqual((yield* store.find("/tmp/moved")).run_id, runId("two"))
    }).pipe(Effect.provide(layer))
  })
})

describe("a fork is refused", () => {
  it.effect("of an event that does not exist, with those that do", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* fork("one", 3, "two")
      for (const [run, sequence, range] of [
        ["one", story.length + 1, `0 to ${story.length}`],
        ["one", -1, `0 to ${story.length}`],
        ["one", 1.5, `0 to ${story.length}`],
        ["two", 5, "0 to 4"]
      ] as const)
        assert.deepInclude(yield* Effect.flip(fork(run, sequence, "three")), {
          reason: "not_found",
          message: `run ${run} has no event ${sequence}: there are ${range}`
        })
      assert.isFalse(yield* fs.exists(`${root}/three`))
      assert.strictEqual((yield* Effect.flip(fork("one", 1, "two"))).reason, "exists")
    }).pipe(Effect.provide(layer))
  })

  it.effect("of a run that lies somewhere else", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* fs.rename(`${root}/one`, "/tmp/one")
      const failure = yield* Effect.flip(fork("/tmp/one", 1, "two"))
      assert.strictEqual(failure.reason, "invalid")
      assert.include(failure.message, `only a run in ${root} can be forked`)
    }).pipe(Effect.provide(layer))
  })

  it.effect("when its source is gone, has changed or lacks a blob, before it was opened", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* fork("one", 9, "two")
      const one = runPath("one", "events.jsonl")
      const whole = yield* fs.readFileString(one)
      const before = yield* snapshot(fs, `${root}/two`)
      const refusal = Effect.gen(function* () {
        const shown = yield* Effect.flip(show("two"))
        const failure = yield* Effect.flip(Effect.scoped(open("two")))
        assert.deepStrictEqual(shown.message, failure.message)
        assert.match(failure.message, /^[^\n]+$/)
        return failure
      })

      yield* fs.writeFileString(one, whole.replace("a + b", "a * b"))
      assert.strictEqual((yield* refusal).reason, "damaged")
      yield* fs.writeFileString(one, (whole.match(/.*\n/g) ?? []).slice(0, 5).join(""))
      assert.include((yield* refusal).message, `5 events are lost from the end of ${one}`)
      yield* fs.writeFileString(one, whole)

      const [name = ""] = yield* fs.readDirectory(`${root}/one/blobs`)
      yield* fs.rename(`${root}/one/blobs/${name}`, "/tmp/blob")
      assert.deepInclude(yield* refusal, { reason: "damaged", path: `${root}/one/blobs/${name}` })
      yield* fs.rename("/tmp/blob", `${root}/one/blobs/${name}`)

      yield* fs.rename(`${root}/one`, "/tmp/one")
      assert.deepInclude(yield* refusal, {
        reason: "not_found",
        message: `run two begins in the history of one, which is gone: there is no ${root}/one`
      })
      yield* fs.symlink("/tmp/one", `${root}/one`)
      assert.strictEqual((yield* refusal).message, `refused: ${root}/one is a symbolic link`)
      yield* fs.remove(`${root}/one`)
      assert.deepStrictEqual(yield* snapshot(fs, `${root}/two`), before)

      yield* fs.rename("/tmp/one", `${root}/one`)
      yield* Effect.scoped(open("two"))
    }).pipe(Effect.provide(layer))
  })

  it.effect("whole: whichever step fails, there is no half of it", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      for (let failAt = 0, done = false; !done; failAt++) {
        const faulty = Faulty.make(
          fs,
          Faulty.failFrom({ failAt, error: "ENOSPC", once: true, shortWrite: 5 })
        )
        const result: Result.Result<unknown, StoreError> = yield* Effect.result(
          Effect.provide(fork("one", 4, "two"), storeOn(faulty))
        )
        done = Result.isSuccess(result)
        if (Result.isFailure(result)) assert.strictEqual(result.failure.reason, "no_space")
        assert.strictEqual(yield* fs.exists(`${root}/two`), done)
      }
    }).pipe(Effect.provide(layer))
  })
})

describe("the price of a fork", () => {
  /** Bytes and reads of files, while `on`. */
  const measured = (inner: FileSystem.FileSystem) => {
    const meter = { bytes: 0, reads: 0, on: false }
    const took = (length: number) => {
      if (!meter.on) return
      meter.reads++
      meter.bytes += length
    }
    const fileSystem = FileSystem.make({
      ...inner,
      open: (path, options) =>
        Effect.map(inner.open(path, options), (file) => ({
          [FileSystem.FileTypeId]: FileSystem.FileTypeId,
          stat: file.stat,
          sync: file.sync,
          seek: (offset, from) => file.seek(offset, from),
          read: (buffer, at) => Effect.tap(file.read(buffer, at), (count) => Effect.sync(() => took(count))),
          readAlloc: (size, at) => {
            took(size)
            return file.readAlloc(size, at)
          },
          truncate: (length) => file.truncate(length),
          write: (buffer) => file.write(buffer),
          writeAll: (buffer) => file.writeAll(buffer)
        }))
    })
    return { fileSystem, meter }
  }

  it.effect("does not grow with its source, and every event is found", () => {
    const { fileSystem, meter } = measured(Memory.make().fileSystem)
    const costs: Array<number> = []
    return Effect.gen(function* () {
      for (const [index, lines] of [1_000, 10_000].entries()) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const journal = yield* create(`run-${index}`)
            for (let n = 1; n < lines; n++)
              yield* journal.append(note("x".repeat(n % 97 === 0 ? 15_000 : n % 800)))
          })
        )
        const last = lines - 1
        const picks = [
          0,
          1,
          2,
          last - 1,
          last,
          ...Array.from({ length: 12 }, (_, n) => Math.floor((n * last) / 12))
        ]
        let most = 0
        for (const [at, sequence] of picks.entries()) {
          Object.assign(meter, { bytes: 0, reads: 0, on: true })
          const { directory } = yield* fork(`run-${index}`, sequence, `fork-${index}-${at}`)
          meter.on = false
          most = Math.max(most, meter.bytes)
          assert.isBelow(meter.reads, 60)
          const line = yield* fileSystem.readFileString(`${directory}/events.jsonl`)
          assert.strictEqual(JSON.parse(line).sequence, sequence + 1)
          yield* fileSystem.remove(directory, { recursive: true })
        }
        costs.push(most)
      }
      const [short = 0, long = 0] = costs
      // Ten times the events are at most four more halvings.
      assert.isBelow(long - short, 4 * 3 * 64 * 1024)
      assert.isBelow(long, 3 * 1024 * 1024)
    }).pipe(Effect.provide(storeOn(fileSystem)))
  })
})

describe("power loss", () => {
  const cases = ["lost", "kept"] as const

  it.effect("at any step of a fork leaves the whole fork or none", () =>
    Effect.gen(function* () {
      for (const names of cases) {
        let whole = false
        for (let failAt = 0; !whole; failAt++) {
          const { disk, fileSystem: fs } = Memory.make()
          yield* Effect.provide(wholeRun("one"), storeOn(fs))
          yield* settle(fs, "/state")
          const { entries } = yield* Effect.provide(show("one"), storeOn(fs))
          const faulty = Faulty.make(fs, Faulty.failFrom({ failAt, error: "EIO" }))
          const result = yield* Effect.result(Effect.provide(fork("one", 7, "two"), storeOn(faulty)))
          whole = Result.isSuccess(result)
          yield* disk.crash({ names })
          yield* Effect.gen(function* () {
            const store = yield* RunStore
            const taken = yield* Effect.result(open("two"))
            if (Result.isSuccess(taken)) {
              const expected = [...entries.slice(0, 8), ...(yield* show("two")).entries.slice(8)]
              assert.deepStrictEqual(yield* taken.success.journal.state, foldOf(expected))
              assert.strictEqual(expected.length, 9)
            } else {
              assert.isFalse(whole)
              assert.include(["not_found", "damaged"], taken.failure.reason)
              assert.isNull(yield* store.unfinished)
            }
          }).pipe(Effect.scoped, Effect.provide(storeOn(fs)))
        }
      }
    })
  )

  const slowly = 60_000
  it.effect(
    "at any step of taking a run over changes nothing of it",
    () =>
      Effect.gen(function* () {
        const prepare = {
          fork: Effect.gen(function* () {
            yield* wholeRun("one")
            yield* fork("one", 8, "two")
          }),
          tail: Effect.asVoid(wholeRun("two", story.slice(0, -1)))
        }
        for (const [kind, begin] of Object.entries(prepare))
          for (const names of cases) {
            let done = false
            for (let failAt = 0; !done; failAt++) {
              const { disk, fileSystem: fs } = Memory.make()
              yield* Effect.provide(begin, storeOn(fs))
              if (kind === "fork") yield* populate(fs, "one")
              else yield* fs.writeFileString(runPath("two", "events.jsonl"), '{"version":1', { flag: "a" })
              yield* settle(fs, "/state")
              const { entries } = yield* Effect.provide(show("two"), storeOn(fs))
              const faulty = Faulty.make(fs, Faulty.failFrom({ failAt, error: "EIO", shortWrite: 40 }))
              const result = yield* Effect.result(
                Effect.provide(
                  Effect.scoped(
                    Effect.gen(function* () {
                      const { journal } = yield* open("two")
                      yield* journal.append(note("later"))
                      yield* journal.barrier
                    })
                  ),
                  storeOn(faulty)
                )
              )
              done = Result.isSuccess(result)
              yield* disk.crash({ names })
              yield* Effect.gen(function* () {
                const { journal, lost } = yield* open("two")
                assert.strictEqual(lost, 0)
                const state = yield* journal.state
                const known = foldOf(entries)
                assert.deepStrictEqual({ ...state, notes: [] }, { ...known, notes: [] })
                assert.deepStrictEqual(state.notes.slice(0, known.notes.length), known.notes)
                if (done) assert.deepStrictEqual(state.notes, [...known.notes, "later"])
                if (kind === "fork") assert.isTrue(yield* fs.exists(`${root}/two/git/objects/ab/cdef`))
              }).pipe(Effect.scoped, Effect.provide(storeOn(fs)))
            }
          }
      }),
    slowly
  )
})
