import { assert, describe, it } from "@effect/vitest"
import { Effect, type FileSystem, Layer, type PlatformError, Result, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { noLine } from "../../../src/domain/JournalCodec.ts"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import { RunStore, type StoreError, type TakenOver } from "../../../src/services/RunStore.ts"
import {
  create,
  foldOf,
  note,
  rechain,
  root,
  runId,
  runPath,
  snapshot,
  storeOn,
  story,
  wholeRun,
  world
} from "./support.ts"

const carefully = { accept_loss: false }
const open = (id: string, options: Partial<typeof carefully> = {}) =>
  Effect.flatMap(RunStore, (store) => store.open(id, { ...carefully, ...options }))
const show = (id: string) => Effect.flatMap(RunStore, (store) => store.show(id))
const log = (id: string) => runPath(id, "events.jsonl")
const session = (id: string) => runPath(id, "session.json")

/** Opens and closes again, so that what was appended is on the disk. */
const opened = <A, E>(
  id: string,
  options: Partial<typeof carefully>,
  use: (taken: TakenOver) => Effect.Effect<A, E, Scope.Scope | RunStore>
) => Effect.scoped(Effect.flatMap(open(id, options), use))
const stateOf = ({ journal }: TakenOver) => journal.state

/** The offset behind each line. */
const ends = (bytes: Uint8Array): ReadonlyArray<number> =>
  [...bytes.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []))

const setHead = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, id: string, sequence: number) {
  const bytes = yield* fs.readFile(log(id))
  const lineEnds = ends(bytes)
  const line = bytes.subarray(lineEnds[sequence - 1] ?? 0, lineEnds[sequence] ?? 0)
  const manifest = JSON.parse(yield* fs.readFileString(session(id)))
  const head = { sequence, hash: sequence === -1 ? noLine : sha256(line) }
  yield* fs.writeFileString(session(id), JSON.stringify({ ...manifest, head }))
})

const refused = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  id: string,
  options: Partial<typeof carefully> = {}
) {
  const before = yield* snapshot(fs, `${root}/${id}`)
  const failure = yield* Effect.flip(Effect.scoped(open(id, options)))
  assert.match(failure.message, /^[^\n]+$/)
  assert.deepStrictEqual(yield* snapshot(fs, `${root}/${id}`), before)
  return failure
})

describe("a journal whose end was cut", () => {
  it.effect(
    "at each of its last 200 bytes is repaired or refused, and nothing is lost in silence",
    () => {
      const { fileSystem: fs, layer } = world()
      return Effect.gen(function* () {
        yield* wholeRun(
          "one",
          [...Array(7).keys()].map((n) => note(`note ${n}`))
        )
        const { entries } = yield* show("one")
        const whole = yield* fs.readFile(log("one"))
        const lineEnds = ends(whole)
        const heads = [entries.length - 1, entries.length - 2]
        for (const head of heads) {
          for (let cut = whole.length - 200; cut <= whole.length; cut++) {
            yield* fs.writeFile(log("one"), whole)
            yield* setHead(fs, "one", head)
            yield* fs.writeFile(log("one"), whole.subarray(0, cut))
            const kept = lineEnds.filter((end) => end <= cut).length
            const lost = Math.max(0, head + 1 - kept)
            if (lost > 0) {
              const failure = yield* refused(fs, "one")
              assert.strictEqual(failure.reason, "damaged")
              assert.include(failure.message, `${lost} event${lost === 1 ? " is" : "s are"} lost`)
              assert.include(failure.message, "--accept-loss")
            }
            const behind = whole.subarray(lineEnds[kept - 1] ?? 0, cut)
            yield* opened("one", { accept_loss: lost > 0 }, (taken) =>
              Effect.gen(function* () {
                assert.strictEqual(taken.lost, lost)
                assert.deepStrictEqual(yield* taken.journal.state, foldOf(entries.slice(0, kept)))
              })
            )
            assert.deepStrictEqual(yield* fs.readFile(log("one")), whole.slice(0, lineEnds[kept - 1] ?? 0))
            if (lost > 0 && behind.length > 0) {
              assert.deepStrictEqual(yield* fs.readFile(runPath("one", "events.lost.jsonl")), behind.slice())
              assert.strictEqual((yield* fs.stat(runPath("one", "events.lost.jsonl"))).mode & 0o777, 0o600)
              yield* fs.remove(runPath("one", "events.lost.jsonl"))
            }
            assert.isFalse(yield* fs.exists(runPath("one", "events.lost.jsonl")))
            assert.strictEqual((yield* show("one")).entries.length, kept)
          }
        }
      }).pipe(Effect.provide(layer))
    },
    60_000
  )

  it.effect("goes on from there: the chain holds across the cut", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const whole = yield* fs.readFile(log("one"))
      yield* fs.writeFile(log("one"), whole.subarray(0, -20))
      yield* setHead(fs, "one", 2)
      yield* opened("one", {}, ({ journal }) => journal.append(note("later")))
      const { entries, manifest } = yield* show("one")
      assert.deepStrictEqual(entries.at(-1)?.event, note("later"))
      assert.strictEqual(entries.length, story.length + 1)
      assert.strictEqual(manifest?.head.sequence, story.length)
    }).pipe(Effect.provide(layer))
  })

  it.effect("keeps what accepted losses cut off, one behind the other", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const lines = (yield* fs.readFileString(log("one"))).match(/.*\n/g) ?? []
      const damage = (line: number) =>
        fs.writeFileString(log("one"), lines.map((each, at) => (at === line ? `x${each}` : each)).join(""))
      yield* damage(5)
      assert.include((yield* refused(fs, "one")).message, `line 6 of ${log("one")}`)
      yield* opened("one", { accept_loss: true }, ({ lost }) =>
        Effect.sync(() => assert.strictEqual(lost, lines.length - 5))
      )
      assert.strictEqual((yield* show("one")).entries.length, 5)
      const first = yield* fs.readFileString(runPath("one", "events.lost.jsonl"))
      assert.strictEqual(first, `x${lines.slice(5).join("")}`)
      yield* fs.writeFileString(log("one"), `${lines.slice(0, 4).join("")}no line\n`)
      yield* opened("one", { accept_loss: true }, ({ lost }) =>
        Effect.sync(() => assert.strictEqual(lost, 1))
      )
      assert.strictEqual(yield* fs.readFileString(runPath("one", "events.lost.jsonl")), `${first}no line\n`)
    }).pipe(Effect.provide(layer))
  })

  it.effect("has no result any more when its end was lost", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const whole = yield* fs.readFile(log("one"))
      yield* fs.writeFile(log("one"), whole.subarray(0, -1))
      const store = yield* RunStore
      yield* opened("one", { accept_loss: true }, ({ complete, journal, lost }) =>
        Effect.gen(function* () {
          assert.deepStrictEqual([complete, lost], [false, 1])
          assert.isNull((yield* journal.state).ended)
        })
      )
      assert.isFalse(yield* fs.exists(runPath("one", "result.json")))
      assert.strictEqual((yield* store.unfinished)?.run_id, "one")
    }).pipe(Effect.provide(layer))
  })
})

describe("a journal with a damaged byte", () => {
  it.effect("is refused with the line's number, wherever the byte is", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const long = note("told at length ".repeat(1200))
      yield* wholeRun("one", [long, note("last")])
      const { entries } = yield* show("one")
      const whole = yield* fs.readFile(log("one"))
      for (let at = 0; at < whole.length; at++) {
        const changed = whole.slice()
        changed[at] = (changed[at] ?? 0) ^ (at % 2 === 0 ? 0x01 : 0x20)
        yield* fs.writeFile(log("one"), changed)
        const failure = yield* Effect.flip(Effect.scoped(open("one")))
        assert.include(["damaged", "newer_version"], failure.reason, `byte ${at}`)
        assert.match(failure.message, /^line \d of |^1 event is lost from the end of /, `byte ${at}`)
      }
      yield* fs.writeFile(log("one"), whole)
      yield* opened("one", {}, (taken) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* stateOf(taken), foldOf(entries))
        })
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "or a blob that is missing is refused, and gone on with before it when the loss is accepted",
    () => {
      const { fileSystem: fs, layer } = world()
      return Effect.gen(function* () {
        yield* wholeRun("one")
        const { entries } = yield* show("one")
        const [name = ""] = yield* fs.readDirectory(`${root}/one/blobs`)
        yield* fs.remove(`${root}/one/blobs/${name}`)
        const failure = yield* refused(fs, "one")
        assert.strictEqual(failure.path, `${root}/one/blobs/${name}`)
        yield* opened("one", { accept_loss: true }, ({ journal, lost }) =>
          Effect.gen(function* () {
            assert.strictEqual(lost, entries.length - 7)
            assert.deepStrictEqual(yield* journal.state, foldOf(entries.slice(0, 7)))
          })
        )
      }).pipe(Effect.provide(layer))
    }
  )
})

describe("a manifest", () => {
  it.effect("that is gone, empty or nonsense is made anew from request and journal", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const { entries, manifest: before } = yield* show("one")
      for (const content of [null, "", "{", "[]"]) {
        yield* content === null ? fs.remove(session("one")) : fs.writeFileString(session("one"), content)
        yield* opened("one", {}, (taken) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* stateOf(taken), foldOf(entries))
          })
        )
        const { manifest } = yield* show("one")
        assert.deepStrictEqual({ ...manifest, writer_token: "" }, { ...before, writer_token: "" })
        assert.notStrictEqual(manifest?.writer_token, before?.writer_token)
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("is not made of nothing: without a readable request the run is refused", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      for (const content of [null, "", "{}"]) {
        const file = runPath("one", "request.json")
        yield* content === null ? fs.remove(file) : fs.writeFileString(file, content)
        for (const accept_loss of [false, true])
          assert.deepInclude(yield* refused(fs, "one", { accept_loss }), {
            reason: "damaged",
            message: `${file} is missing or cannot be read`
          })
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("and a journal that their writer did not live to fill make a run that begins now", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      for (const [index, lost] of [["events.jsonl"], ["events.jsonl", "session.json"], []].entries()) {
        const id = `run-${index}`
        yield* Effect.scoped(create(id))
        yield* fs.writeFileString(log(id), "")
        yield* setHead(fs, id, -1)
        for (const name of lost) yield* fs.remove(runPath(id, name))
        yield* opened(id, {}, ({ active_ms, journal, lost }) =>
          Effect.gen(function* () {
            assert.deepStrictEqual([active_ms, lost], [0, 0])
            assert.strictEqual((yield* journal.state).run_id, runId(id))
          })
        )
        const { entries } = yield* show(id)
        assert.deepStrictEqual(
          entries.map((entry) => entry.event.event_type),
          ["run.created"]
        )
      }
    }).pipe(Effect.provide(layer))
  })
})

describe("what a later version wrote", () => {
  it.effect("is refused with both versions and left alone", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const json = (name: string, change: object) =>
        Effect.flatMap(fs.readFileString(runPath("one", name)), (text) =>
          fs.writeFileString(runPath("one", name), JSON.stringify({ ...JSON.parse(text), ...change }))
        )
      const changes: ReadonlyArray<
        readonly [string, (name: string) => Effect.Effect<void, PlatformError.PlatformError | StoreError>]
      > = [
        ["session.json", (name) => json(name, { schema_version: 2 })],
        ["request.json", (name) => json(name, { schema_version: 2 })],
        ["result.json", (name) => json(name, { schema_version: 2 })],
        [
          "events.jsonl",
          (name) =>
            Effect.flatMap(fs.readFileString(runPath("one", name)), (text) =>
              fs.writeFileString(
                runPath("one", name),
                rechain(text, 3, (entry) => ({ ...entry, version: 2 }))
              )
            )
        ],
        [
          "events.jsonl",
          (name) =>
            Effect.flatMap(fs.readFileString(runPath("one", name)), (text) =>
              fs.writeFileString(
                runPath("one", name),
                rechain(text, 0, (entry) => ({
                  ...entry,
                  data: { ...Object(entry["data"]), store_version: 3 }
                }))
              )
            )
        ]
      ]
      for (const [name, change] of changes) {
        const file = runPath("one", name)
        const before = yield* fs.readFile(file)
        yield* Effect.orDie(change(name))
        if (name === "events.jsonl") yield* fs.rename(session("one"), "/tmp/session")
        for (const accept_loss of [false, true]) {
          const failure = yield* refused(fs, "one", { accept_loss })
          assert.strictEqual(failure.reason, "newer_version")
          assert.match(failure.message, /version [23]\b.* version [12]$/)
        }
        yield* fs.writeFile(file, before)
        if (name === "events.jsonl") yield* fs.rename("/tmp/session", session("one"))
      }
      yield* Effect.scoped(open("one"))
    }).pipe(Effect.provide(layer))
  })

  it.effect("may be an event that this version does not know: it is kept, counted and gone on from", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const { entries } = yield* show("one")
      const text = yield* fs.readFileString(log("one"))
      yield* fs.writeFileString(
        log("one"),
        rechain(text, 8, (entry) => ({ ...entry, event_type: "judge.asked", data: { some: "thing" } }))
      )
      yield* fs.remove(session("one"))
      yield* opened("one", {}, ({ journal, lost }) =>
        Effect.gen(function* () {
          assert.strictEqual(lost, 0)
          assert.deepStrictEqual(yield* journal.state, foldOf(entries.toSpliced(8, 1)))
          yield* journal.append(note("later"))
        })
      )
      const shown = yield* show("one")
      assert.strictEqual(shown.unknown, 1)
      assert.deepStrictEqual(shown.entries[8]?.event, { event_type: "judge.asked", data: { some: "thing" } })
      assert.deepStrictEqual(shown.entries.at(-1)?.event, note("later"))
    }).pipe(Effect.provide(layer))
  })
})

describe("one writer", () => {
  it.effect("at a time: a second one is told so", () => {
    const { layer } = world()
    return Effect.gen(function* () {
      yield* Effect.scoped(create("one"))
      yield* opened("one", {}, () =>
        Effect.gen(function* () {
          assert.deepInclude(yield* Effect.flip(Effect.scoped(open("one"))), {
            reason: "busy",
            message: `another process is working on run one (${runPath("one", ".writer.lock")}): wait for it or stop it`
          })
        })
      )
      yield* Effect.scoped(open("one"))
    }).pipe(Effect.provide(layer))
  })

  it.effect("for good: whoever wrote before stops at the next barrier, and announces nothing", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const former = yield* create("one")
      yield* former.append(note("by the first"))
      yield* former.barrier
      const before = yield* fs.readFileString(log("one"))
      // Another store has other locks: as if somebody had deleted the lock file.
      const taken = yield* open("one").pipe(Effect.provide(Layer.fresh(storeOn(fs, root, 100))))
      for (const name of ["changes.patch", "result.json"])
        assert.strictEqual((yield* Effect.flip(former.writeFile(name, "{}"))).reason, "busy")
      assert.strictEqual((yield* Effect.flip(former.checkpoint)).reason, "busy")
      yield* former.append(note("by the first, too late"))
      assert.strictEqual((yield* Effect.flip(former.barrier)).reason, "busy")
      assert.strictEqual(yield* fs.readFileString(log("one")), before)
      yield* taken.journal.append(note("by the second"))
      yield* taken.journal.barrier
      assert.deepStrictEqual((yield* show("one")).entries.at(-1)?.event, note("by the second"))
    }).pipe(Effect.provide(layer))
  })

  it.effect("says where its journal is durable", () => {
    const { layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const { entries } = yield* show("one")
      const last = entries.at(-1)
      const { journal } = yield* open("one")
      assert.deepStrictEqual(yield* journal.head, { sequence: story.length, hash: last?.hash ?? noLine })
      yield* journal.append(note("not durable yet"))
      assert.strictEqual((yield* journal.head).sequence, story.length)
      yield* journal.barrier
      assert.strictEqual((yield* journal.head).sequence, story.length + 1)
    }).pipe(Effect.provide(layer))
  })
})

describe("taking a run over", () => {
  it.effect("removes what a dead writer was about to write, and nothing else", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      for (const name of [".result.json.tmp", ".session.json.tmp", "blobs/.abc.tmp", "mine.tmp", ".kept"])
        yield* fs.writeFileString(runPath("one", name), "half")
      yield* fs.makeDirectory(runPath("one", ".git.tmp/objects"), { recursive: true })
      const before = yield* fs.readDirectory(`${root}/one`, { recursive: true })
      yield* Effect.scoped(open("one"))
      const after = new Set(yield* fs.readDirectory(`${root}/one`, { recursive: true }))
      assert.deepStrictEqual(
        before.filter((name) => !after.has(name)).toSorted(),
        [".git.tmp", ".git.tmp/objects", ".result.json.tmp", ".session.json.tmp", "blobs/.abc.tmp"].toSorted()
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("for a follow-up task removes the result, then the evidence, before a line is written", () => {
    const { fileSystem } = world()
    const seen: Array<string> = []
    const fs = Faulty.make(fileSystem, ({ kind, path }) => {
      seen.push(`${kind} ${path.slice(`${root}/one/`.length)}`)
      return null
    })
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* opened("one", {}, ({ complete, discard, journal }) =>
        Effect.gen(function* () {
          assert.isTrue(complete)
          assert.isTrue(yield* fs.exists(runPath("one", "changes.patch")))
          yield* discard
          assert.isFalse(seen.slice(-12).includes("write events.jsonl"))
          yield* journal.append(note("the next task"))
          seen.length = 0
        })
      )
      assert.include(seen, "write events.jsonl")
      seen.length = 0
      yield* wholeRun("two")
      yield* opened("two", {}, ({ discard }) => discard)
      const removed = seen.filter((step) => step.startsWith("remove"))
      assert.deepStrictEqual(removed, [
        "remove result.json",
        "remove receipt.json",
        "remove changes.patch",
        "remove verification.json",
        "remove test.log"
      ])
    }).pipe(Effect.provide(storeOn(fs)))
  })

  it.effect("of a run that ended without its result leaves its evidence to be made again", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* opened("one", {}, ({ complete }) => Effect.sync(() => assert.isTrue(complete)))
      yield* fs.remove(runPath("one", "result.json"))
      yield* opened("one", {}, ({ complete, journal }) =>
        Effect.gen(function* () {
          assert.isFalse(complete)
          assert.isNotNull((yield* journal.state).ended)
          yield* journal.writeFile("result.json", "{}")
        })
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("knows the time that was used, without the waiting and the gaps", () => {
    const { layer } = world()
    return Effect.gen(function* () {
      const question = { request_id: "q", action_id: "c", effect: "modify" } as const
      const at = (seconds: number) => TestClock.setTime(seconds * 1000)
      yield* at(100)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* create("one")
          yield* at(110)
          yield* journal.append({
            event_type: "model.requested",
            data: { step: 1, provider: "p", model: "m", lane: "primary", active_ms: 2_000 }
          })
          yield* at(113)
          yield* journal.append({
            event_type: "approval.requested",
            data: { ...question, reason: "model_tool", preview: "" }
          })
          yield* at(150)
          yield* journal.append({
            event_type: "approval.resolved",
            data: { ...question, decision: "allow_once" }
          })
          yield* at(151)
          yield* journal.append(note("worked"))
          yield* journal.append({ event_type: "run.interrupted", data: { reason: "SIGINT" } })
        })
      )
      yield* at(500)
      yield* opened("one", {}, ({ active_ms, journal }) =>
        Effect.gen(function* () {
          assert.strictEqual(active_ms, 2_000 + 3_000 + 1_000)
          yield* journal.append(note("after the gap"))
          yield* at(502)
          yield* journal.append(note("and worked"))
        })
      )
      yield* opened("one", {}, ({ active_ms }) => Effect.sync(() => assert.strictEqual(active_ms, 8_000)))
      yield* Effect.scoped(create("two"))
      yield* opened("two", {}, ({ active_ms }) => Effect.sync(() => assert.strictEqual(active_ms, 0)))
    }).pipe(Effect.provide(layer))
  })
})

describe("a disk that fails while a run is taken over", () => {
  it.effect("ends in one error, and the run and the others stay as they were worth", () => {
    const { fileSystem: fs } = world()
    return Effect.gen(function* () {
      yield* Effect.provide(wholeRun("before"), storeOn(fs))
      yield* Effect.provide(wholeRun("one", story.slice(0, -1)), storeOn(fs))
      const { entries } = yield* Effect.provide(show("one"), storeOn(fs))
      const whole = yield* fs.readFile(log("one"))
      let total = Number.MAX_SAFE_INTEGER
      for (let failAt = 0; failAt < total; failAt++) {
        yield* fs.writeFile(log("one"), Buffer.concat([whole, Buffer.from('{"version":1,')]))
        let steps = 0
        const plan = Faulty.failFrom({ failAt, error: "ENOSPC", shortWrite: 9 })
        const counted = Faulty.make(fs, (step) => {
          steps++
          return plan(step)
        })
        const result: Result.Result<unknown, StoreError> = yield* Effect.scoped(open("one")).pipe(
          Effect.provide(storeOn(counted)),
          Effect.result
        )
        if (Result.isSuccess(result)) total = steps
        else {
          assert.strictEqual(result.failure.reason, "no_space")
          assert.match(result.failure.message, /^[^\n]+ \/[^\n]*$/)
        }
        yield* Effect.gen(function* () {
          assert.deepStrictEqual((yield* show("before")).missing, [])
          const again = yield* open("one")
          assert.deepStrictEqual(yield* again.journal.state, foldOf(entries))
        }).pipe(Effect.scoped, Effect.provide(storeOn(fs)))
      }
      assert.isAbove(total, 5)
    })
  })
})

describe("a directory for blobs that leads elsewhere", () => {
  it.effect("is refused before anything is written through it", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const store = yield* RunStore
      yield* wholeRun("one", story.slice(0, -1))
      yield* fs.makeDirectory("/elsewhere")
      const blobs = runPath("one", "blobs")
      const leading = Effect.gen(function* () {
        yield* fs.remove(blobs, { recursive: true, force: true })
        yield* fs.symlink("/elsewhere", blobs)
      })
      const refusal = { reason: "invalid" as const, message: `refused: ${blobs} is a symbolic link` }
      yield* wholeRun("short", [])
      yield* fs.remove(runPath("short", "blobs"), { recursive: true, force: true })
      yield* fs.symlink("/elsewhere", runPath("short", "blobs"))
      assert.deepInclude(yield* Effect.flip(Effect.scoped(open("short"))), {
        reason: "invalid",
        message: `refused: ${runPath("short", "blobs")} is a symbolic link`
      })
      // Also when a command puts it there while the run is open.
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { journal } = yield* open("one")
          yield* leading
          yield* journal.append(note("a long one\n".repeat(5000)))
          assert.deepInclude(yield* Effect.flip(journal.barrier), refusal)
        })
      )
      // A fork takes directories over from its source.
      yield* wholeRun("source")
      yield* fs.makeDirectory(runPath("source", "git"))
      yield* store.fork("source", { sequence: 3, run_id: runId("forked") })
      yield* fs.symlink("/elsewhere", runPath("forked", "git"))
      assert.deepInclude(yield* Effect.flip(Effect.scoped(open("forked"))), {
        reason: "invalid",
        message: `refused: ${runPath("forked", "git")} is a symbolic link`
      })
      assert.deepStrictEqual(yield* fs.readDirectory("/elsewhere"), [])
    }).pipe(Effect.provide(layer))
  })
})
