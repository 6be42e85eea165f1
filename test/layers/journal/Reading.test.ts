import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Result, Stream } from "effect"
import { noLine } from "../../../src/domain/JournalCodec.ts"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { chunkBytes } from "../../../src/layers/journal/Cursor.ts"
import { makeDisk } from "../../../src/layers/journal/Disk.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import { RunStore, type StoreError } from "../../../src/services/RunStore.ts"
import {
  create,
  note,
  readJournal,
  rechain,
  root,
  runId,
  storeOn,
  story,
  wholeRun,
  world
} from "./support.ts"

const events = (id: string) => `${root}/${id}/events.jsonl`
const show = (id: string) => Effect.flatMap(RunStore, (store) => store.show(id))
const reasonOf = (result: Result.Result<unknown, StoreError>) =>
  Result.isFailure(result) ? result.failure.reason : "read"

/** The offset behind each line. */
const ends = (bytes: Uint8Array): ReadonlyArray<number> =>
  [...bytes.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []))

describe("reading a run", () => {
  it.effect("gives back what was written", () => {
    const { layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const shown = yield* show("one")
      assert.deepStrictEqual(
        shown.entries.slice(1).map((entry) => entry.event),
        [...story]
      )
      assert.deepInclude(shown, { run_id: runId("one"), missing: [], unknown: 0 })
      assert.strictEqual(shown.result?.terminal_reason, "verified")
      assert.strictEqual(shown.request?.task.instruction, "Make add return the sum.")
    }).pipe(Effect.provide(layer))
  })

  it.effect("of a journal cut at any byte gives a true prefix, or says how much is lost", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const whole = yield* fs.readFile(events("one"))
      const lineEnds = ends(whole)
      const manifest = JSON.parse(yield* fs.readFileString(`${root}/one/session.json`))
      const heads = [-1, 0, 5, story.length].map((sequence) => ({
        sequence,
        hash:
          sequence === -1
            ? noLine
            : sha256(whole.subarray(lineEnds[sequence - 1] ?? 0, lineEnds[sequence] ?? 0))
      }))
      const disk = yield* makeDisk
      // Around the end of every line, and in the middle of all of them.
      const near = lineEnds.flatMap((end) => [end - 2, end - 1, end, end + 1])
      const spread = Array.from({ length: Math.floor(whole.length / 41) }, (_, n) => n * 41)
      const cuts = [...near, ...spread].filter((cut) => cut <= whole.length)
      for (const head of heads) {
        yield* fs.writeFileString(`${root}/one/session.json`, JSON.stringify({ ...manifest, head }))
        for (const cut of cuts) {
          yield* fs.writeFile(events("one"), whole.subarray(0, cut))
          const kept = lineEnds.filter((end) => end <= cut).length
          const result = yield* Effect.result(
            Stream.runCollect(readJournal(disk, `${root}/one`, head.sequence === -1 ? null : head))
          )
          if (kept <= head.sequence) {
            assert.strictEqual(reasonOf(result), "damaged")
            const lost = head.sequence + 1 - kept
            if (Result.isFailure(result))
              assert.include(result.failure.message, `${lost} event${lost === 1 ? " is" : "s are"} lost`)
          } else {
            const items = Result.getOrThrow(result)
            const read = items.flatMap((item) => (item._tag === "Entry" ? [item.event] : []))
            assert.deepStrictEqual(read.slice(1), story.slice(0, Math.max(0, kept - 1)))
            const offset = lineEnds[kept - 1] ?? 0
            assert.deepInclude(items.at(-1), {
              _tag: "End",
              sequence: kept - 1,
              offset
            })
          }
          assert.strictEqual(Number((yield* fs.stat(events("one"))).size), cut)
        }
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "takes a run whose writer died before its journal was there as one in which nothing happened",
    () => {
      const { fileSystem: fs, layer } = world()
      return Effect.gen(function* () {
        yield* Effect.scoped(create("one"))
        const manifest = JSON.parse(yield* fs.readFileString(`${root}/one/session.json`))
        const at = (sequence: number) =>
          fs.writeFileString(
            `${root}/one/session.json`,
            JSON.stringify({ ...manifest, head: { sequence, hash: "0".repeat(64) } })
          )
        yield* fs.remove(`${root}/one/events.jsonl`)
        const store = yield* RunStore
        yield* at(-1)
        assert.deepStrictEqual((yield* store.show("one")).entries, [])
        yield* at(0)
        assert.strictEqual((yield* Effect.flip(store.show("one"))).reason, "damaged")
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("notices any changed byte", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const whole = yield* fs.readFile(events("one"))
      for (let at = 0; at < whole.length; at += at < 300 || at > whole.length - 300 ? 1 : 53) {
        const changed = whole.slice()
        changed[at] = (changed[at] ?? 0) ^ 0x01
        yield* fs.writeFile(events("one"), changed)
        const result = yield* Effect.result(show("one"))
        assert.include(["damaged", "newer_version"], reasonOf(result), `byte ${at}`)
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("notices lines that are removed, swapped or told twice", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const lines = (yield* fs.readFileString(events("one"))).match(/.*\n/g) ?? []
      const [a = "", b = "", c = "", ...rest] = lines
      for (const changed of [
        [a, c, ...rest],
        [a, c, b, ...rest],
        [a, b, b, c, ...rest],
        [...lines, c],
        [b, c, ...rest]
      ]) {
        yield* fs.writeFileString(events("one"), changed.join(""))
        assert.strictEqual(reasonOf(yield* Effect.result(show("one"))), "damaged")
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("notices a blob that is missing or changed, and says which", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      const [name = ""] = yield* fs.readDirectory(`${root}/one/blobs`)
      const blob = `${root}/one/blobs/${name}`
      const content = yield* fs.readFileString(blob)
      for (const changed of [content.replace("one", "two"), `${content}!`, ""]) {
        yield* fs.writeFileString(blob, changed)
        const failure = yield* Effect.flip(show("one"))
        assert.deepInclude(failure, { reason: "damaged", path: blob })
      }
      yield* fs.remove(blob)
      assert.strictEqual((yield* Effect.flip(show("one"))).path, blob)
    }).pipe(Effect.provide(layer))
  })

  it.effect("keeps and counts event types that it does not know, and says so of a newer journal", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* fs.remove(`${root}/one/session.json`)
      const log = yield* fs.readFileString(events("one"))
      const data = { some: ["thing"], $blobby: 1 }
      yield* fs.writeFileString(
        events("one"),
        rechain(log, 4, (entry) => ({ ...entry, event_type: "judge.asked", data }))
      )
      const shown = yield* show("one")
      assert.strictEqual(shown.unknown, 1)
      assert.strictEqual(shown.entries.length, story.length + 1)
      assert.deepStrictEqual(shown.entries[4]?.event, { event_type: "judge.asked", data })
      assert.deepStrictEqual(shown.missing, ["session.json"])

      yield* fs.writeFileString(
        events("one"),
        rechain(log, 4, (entry) => ({ ...entry, version: 2 }))
      )
      const newer = yield* Effect.flip(show("one"))
      assert.deepInclude(newer, {
        reason: "newer_version",
        message: `line 5 of ${events("one")} is of journal version 2, and this looplane reads version 1`
      })
    }).pipe(Effect.provide(layer))
  })

  it.effect("reads a long journal in chunks, never whole, and writes nothing", () => {
    const { fileSystem } = Memory.make()
    const lines = 10_000
    return Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* create("one")
          for (let n = 1; n < lines; n++) yield* journal.append(note(`${n} ${"x".repeat(900)}`))
        })
      ).pipe(Effect.provide(storeOn(fileSystem)))
      const size = Number((yield* fileSystem.stat(events("one"))).size)
      assert.isAbove(size, 10_000_000)

      let largest = 0
      let reads = 0
      const refuse = (what: string) => () => Effect.die(new Error(`reading must not ${what}`))
      const counting = FileSystem.make({
        ...fileSystem,
        readFile: refuse("read a file whole"),
        writeFile: refuse("write"),
        rename: refuse("rename"),
        remove: refuse("remove"),
        makeDirectory: refuse("make directories"),
        truncate: refuse("truncate"),
        open: (path, options) =>
          Effect.map(fileSystem.open(path, options), (file) => ({
            [FileSystem.FileTypeId]: FileSystem.FileTypeId,
            stat: file.stat,
            sync: file.sync,
            seek: (offset, from) => file.seek(offset, from),
            read: (buffer, at) => {
              largest = Math.max(largest, buffer.length)
              reads++
              return file.read(buffer, at)
            },
            readAlloc: (bytes, at) => {
              largest = Math.max(largest, bytes)
              reads++
              return file.readAlloc(bytes, at)
            },
            write: refuse("write"),
            writeAll: refuse("write"),
            truncate: refuse("truncate")
          }))
      })
      yield* Effect.gen(function* () {
        const disk = yield* makeDisk
        const seen = yield* readJournal(disk, `${root}/one`, null).pipe(
          Stream.runFold(
            () => ({ count: 0, last: -1 }),
            (all, item) => ({ count: all.count + 1, last: item.sequence })
          )
        )
        assert.deepStrictEqual(seen, { count: lines + 1, last: lines - 1 })
        assert.strictEqual(largest, chunkBytes)
        // Lines that do not end in their chunk, the look at the first one, and the end.
        assert.isAtMost(reads, 1.02 * Math.ceil(size / largest) + 2)
      }).pipe(Effect.provide(storeOn(counting)))
    })
  })
})
