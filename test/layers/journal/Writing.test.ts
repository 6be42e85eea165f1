import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import { noLine } from "../../../src/domain/JournalCodec.ts"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import { Observer } from "../../../src/services/Observer.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import { create, note, root, storeOn, story, wholeRun, world } from "./support.ts"

const log = (fs: FileSystem.FileSystem, id: string) => fs.readFileString(`${root}/${id}/events.jsonl`)
const linesOf = (text: string): ReadonlyArray<string> => text.match(/.*\n/g) ?? []

/** Lets other fibers run in the middle of every write, as a real disk does. */
const yielding = (inner: FileSystem.FileSystem): FileSystem.FileSystem => {
  const slow = <A, E, R>(step: Effect.Effect<A, E, R>) =>
    Effect.yieldNow.pipe(Effect.andThen(step), Effect.tap(Effect.yieldNow))
  return FileSystem.make({
    ...inner,
    rename: (from, to) => slow(inner.rename(from, to)),
    open: (path, options) =>
      Effect.map(inner.open(path, options), (file) => ({
        [FileSystem.FileTypeId]: FileSystem.FileTypeId,
        stat: file.stat,
        sync: slow(file.sync),
        seek: (offset, from) => file.seek(offset, from),
        read: (buffer, at) => slow(file.read(buffer, at)),
        readAlloc: (size, at) => slow(file.readAlloc(size, at)),
        write: (buffer) => slow(file.write(buffer)),
        writeAll: (buffer) => slow(file.writeAll(buffer)),
        truncate: (length) => file.truncate(length)
      }))
  })
}

describe("writing a run", () => {
  it.effect("makes a bundle for this user alone, with request and manifest before the first event", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const journal = yield* create("one")
      assert.strictEqual(journal.directory, `${root}/one`)
      const names = yield* fs.readDirectoryEntries(journal.directory)
      assert.deepStrictEqual(names.map((e) => e.name).toSorted(), [
        "blobs",
        "events.jsonl",
        "request.json",
        "session.json"
      ])
      assert.strictEqual(yield* log(fs, "one"), "")
      yield* journal.barrier
      const modes = { "": 0o700, blobs: 0o700, "events.jsonl": 0o600, "session.json": 0o600 }
      for (const [name, mode] of Object.entries(modes))
        assert.strictEqual((yield* fs.stat(`${journal.directory}/${name}`)).mode & 0o777, mode, name)
      assert.strictEqual((yield* fs.stat(root)).mode & 0o777, 0o700)
      const again = yield* Effect.flip(create("one"))
      assert.deepInclude(again, { reason: "exists", message: `there is already a run one in ${root}` })
    }).pipe(Effect.provide(layer))
  })

  it.effect("chains every line to the exact bytes of the line before it", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* TestClock.setTime(1_000)
      yield* wholeRun("one")
      let previous: string = noLine
      for (const [sequence, line] of linesOf(yield* log(fs, "one")).entries()) {
        const entry: Record<string, unknown> = JSON.parse(line)
        assert.deepInclude(entry, { version: 1, sequence, previous, created_at: "1970-01-01T00:00:01.000Z" })
        previous = sha256(new TextEncoder().encode(line))
      }
      const manifest = JSON.parse(yield* fs.readFileString(`${root}/one/session.json`))
      assert.deepStrictEqual(manifest.head, { sequence: story.length, hash: previous })
      const checkpoint = JSON.parse(yield* fs.readFileString(`${root}/one/checkpoint.json`))
      assert.deepInclude(checkpoint, { sequence: story.length, head: previous, step: 1 })
    }).pipe(Effect.provide(layer))
  })

  it.effect("collects lines for one write per barrier, and a barrier with nothing new costs nothing", () => {
    const { fileSystem } = Memory.make()
    const seen: Array<string> = []
    const fs = Faulty.make(fileSystem, ({ kind, path }) => {
      seen.push(`${kind} ${path.slice(root.length)}`)
      return null
    })
    return Effect.gen(function* () {
      const journal = yield* create("one")
      yield* journal.barrier
      seen.length = 0
      for (let n = 0; n < 20; n++) yield* journal.append(note(`${n}`))
      assert.deepStrictEqual(seen, [])
      yield* journal.barrier
      const cost = [
        "write /one/events.jsonl",
        "sync /one/events.jsonl",
        "create /one/.session.json.tmp",
        "write /one/.session.json.tmp",
        "rename /one/session.json"
      ]
      assert.deepStrictEqual(seen, cost)
      yield* journal.barrier
      assert.deepStrictEqual(seen, cost)
    }).pipe(Effect.provide(storeOn(fs)))
  })

  it.effect("writes no more for event 1,000 than for event 1", () => {
    const { fileSystem } = Memory.make()
    let steps = 0
    const fs = Faulty.make(fileSystem, () => {
      steps++
      return null
    })
    return Effect.gen(function* () {
      const journal = yield* create("one")
      const costs = new Set<number>()
      for (let n = 0; n < 1000; n++) {
        steps = 0
        yield* journal.append(note("the same"))
        yield* journal.barrier
        costs.add(steps)
      }
      assert.strictEqual(costs.size, 1)
    }).pipe(Effect.provide(storeOn(fs)))
  })

  it.effect("bounds what waits for a barrier", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const journal = yield* create("one")
      for (let n = 0; n < 100; n++) yield* journal.append(note("x".repeat(10_000)))
      const written = (yield* log(fs, "one")).length
      assert.isAbove(written, 1_000_000 - 80_000)
      assert.isBelow(written, 1_000_000)
    }).pipe(Effect.provide(layer))
  })

  it.effect("keeps long text once, in a blob that is durable before the line that needs it", () => {
    const { disk, fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const journal = yield* create("one")
      const text = "long text, told twice\n".repeat(5000)
      yield* journal.append(note(text))
      yield* journal.append(note(text))
      yield* disk.crash()
      const store = yield* RunStore
      // The lines got as far as the page cache and are gone; the manifest knows of none of them.
      assert.strictEqual((yield* store.show("one")).entries.length, 0)
      assert.deepStrictEqual(yield* fs.readDirectory(`${root}/one/blobs`), [
        sha256(new TextEncoder().encode(text))
      ])
    }).pipe(Effect.provide(layer))
  })

  it.effect("orders concurrent callers, and tells the observer in that order", () => {
    const layer = storeOn(yielding(Memory.make().fileSystem))
    const heard: Array<number> = []
    return Effect.gen(function* () {
      const journal = yield* create("one")
      const writer = (name: number) =>
        Effect.forEach(
          Array.from({ length: 20 }, (_, n) => n),
          (n) =>
            journal.append(note(`${name} ${n}`)).pipe(
              Effect.tap(n % 7 === name ? journal.barrier : Effect.yieldNow),
              Effect.map((entry) => entry.sequence)
            )
        )
      const sequences = yield* Effect.forEach([0, 1, 2, 3, 4], writer, { concurrency: "unbounded" })
      for (const own of sequences)
        assert.deepStrictEqual(
          own,
          own.toSorted((a, b) => a - b)
        )
      assert.deepStrictEqual(
        heard,
        Array.from({ length: 101 }, (_, n) => n)
      )
      yield* journal.barrier
      const { entries: read } = yield* (yield* RunStore).show("one")
      assert.deepStrictEqual(
        read.map((e) => e.sequence),
        heard
      )
      const notes = read.slice(1).map(({ event }) => event.data)
      assert.deepStrictEqual(
        (yield* journal.state).notes.map((note) => ({ note })),
        notes
      )
    }).pipe(
      Effect.provide(layer),
      Effect.provideService(Observer, {
        entry: (entry) => Effect.sync(() => heard.push(entry.sequence)),
        delta: () => Effect.void
      })
    )
  })

  it.effect(
    "survives an observer that breaks, and one that hangs when it is interrupted: the line is whole",
    () => {
      const { layer } = world()
      return Effect.gen(function* () {
        const hanging = yield* Deferred.make<void>()
        const journal = yield* create("one").pipe(
          Effect.provideService(Observer, {
            entry: ({ event }) => {
              if (event.event_type !== "run.noted") return Effect.die("a bug of the observer")
              return Effect.andThen(Deferred.succeed(hanging, undefined), Effect.never)
            },
            delta: () => Effect.void
          })
        )
        const fiber = yield* Effect.forkChild(journal.append(note("told to nobody")))
        yield* Deferred.await(hanging)
        yield* Fiber.interrupt(fiber)
        yield* journal.barrier
        const { entries } = yield* (yield* RunStore).show("one")
        assert.strictEqual(entries.length, 2)
        assert.deepStrictEqual((yield* journal.state).notes, ["told to nobody"])
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("keeps what was appended when its scope closes without a barrier", () => {
    const { layer } = world()
    return Effect.gen(function* () {
      yield* Effect.scoped(Effect.flatMap(create("one"), (journal) => journal.append(note("last words"))))
      assert.strictEqual((yield* (yield* RunStore).show("one")).entries.length, 2)
    }).pipe(Effect.provide(layer))
  })

  it.effect("replaces a file of the bundle whole, and no file that it should not", () => {
    const { disk, fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const journal = yield* create("one")
      yield* journal.writeFile("changes.patch", "old")
      yield* fs.writeFileString(`${root}/one/.changes.patch.tmp`, "left by a dead writer")
      yield* journal.writeFile("changes.patch", new Uint8Array([1, 2]))
      yield* disk.crash()
      assert.deepStrictEqual(yield* fs.readFile(`${root}/one/changes.patch`), new Uint8Array([1, 2]))
      for (const name of ["events.jsonl", "session.json", "../x", "a/b", "", "other.txt"])
        assert.strictEqual((yield* Effect.flip(journal.writeFile(name, "x"))).reason, "invalid", name)
    }).pipe(Effect.provide(layer))
  })

  it.effect("stops when another writer has taken over", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const journal = yield* create("one")
      yield* journal.barrier
      const before = yield* log(fs, "one")
      const path = `${root}/one/session.json`
      const manifest = JSON.parse(yield* fs.readFileString(path))
      yield* fs.writeFileString(path, JSON.stringify({ ...manifest, writer_token: "another" }))
      yield* journal.append(note("x"))
      assert.strictEqual((yield* Effect.flip(journal.barrier)).reason, "busy")
      assert.strictEqual((yield* Effect.flip(journal.append(note("y")))).reason, "busy")
      assert.strictEqual(yield* log(fs, "one"), before)
    }).pipe(Effect.provide(layer))
  })

  it.effect("announces no result beside a journal or a file that something else has changed", () => {
    const changes: ReadonlyArray<readonly [name: string, change: (text: string) => string | null]> = [
      ["events.jsonl", (text) => text.replace("first", "other")],
      ["events.jsonl", (text) => linesOf(text).slice(0, -1).join("")],
      ["events.jsonl", (text) => `${text}{"forged":true}\n`],
      ["events.jsonl", () => ""],
      ["changes.patch", () => "another patch"],
      ["changes.patch", () => null],
      ["test.log", (text) => `${text}more`]
    ]
    return Effect.forEach(changes, ([name, change], index) => {
      const { fileSystem: fs, layer } = world()
      return Effect.gen(function* () {
        const journal = yield* create("one")
        yield* journal.append(note("first"))
        yield* journal.append(note("second"))
        yield* journal.barrier
        yield* journal.writeFile("changes.patch", "patch")
        yield* journal.writeFile("test.log", "log")
        const path = `${root}/one/${name}`
        const changed = change(yield* fs.readFileString(path))
        yield* changed === null ? fs.remove(path) : fs.writeFileString(path, changed)
        assert.strictEqual(
          (yield* Effect.flip(journal.writeFile("result.json", "{}"))).reason,
          "damaged",
          `${index}`
        )
        assert.isFalse(yield* fs.exists(`${root}/one/result.json`))
      }).pipe(Effect.provide(layer), Effect.scoped)
    })
  })

  it.effect("refuses a root or a run that is a symbolic link", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* wholeRun("one")
      yield* fs.symlink(`${root}/one`, `${root}/linked`)
      yield* fs.symlink(root, "/state/other")
      const store = yield* RunStore
      assert.deepInclude(yield* Effect.flip(store.show("linked")), {
        reason: "invalid",
        message: `refused: ${root}/linked is a symbolic link`
      })
      const elsewhere = storeOn(fs, "/state/other")
      const refused = Effect.gen(function* () {
        const store = yield* RunStore
        return [
          (yield* Effect.flip(create("two"))).message,
          (yield* Effect.flip(store.list({ limit: 1, query: null }))).message,
          (yield* Effect.flip(store.show("one"))).message
        ]
      })
      assert.deepStrictEqual(
        [...new Set(yield* Effect.provide(refused, elsewhere))],
        ["refused: /state/other is a symbolic link"]
      )
    }).pipe(Effect.provide(layer))
  })
})
