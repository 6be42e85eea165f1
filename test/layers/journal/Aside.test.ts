import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Result } from "effect"
import fc from "fast-check"
import type { RunEvent } from "../../../src/domain/Event.ts"
import { Digest } from "../../../src/domain/Ids.ts"
import { decodeLine, encodeLine, headingOf, noLine } from "../../../src/domain/JournalCodec.ts"
import { initial, reduce } from "../../../src/domain/Run.ts"
import { everything, openCursor, type Wanted } from "../../../src/layers/journal/Cursor.ts"
import { makeDisk } from "../../../src/layers/journal/Disk.ts"
import { foldJournal } from "../../../src/layers/journal/Fold.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import type { StoreError } from "../../../src/services/RunStore.ts"
import { create, note, rechain, root, story, world } from "./support.ts"

const exchanged = (text: string, header: Readonly<Record<string, string>> = {}): RunEvent => ({
  event_type: "model.exchanged",
  data: {
    step: 1,
    attempt: 1,
    provider: "scripted",
    model: "recorded",
    exchange: {
      sent: Digest.make("5".repeat(64)),
      answered_at_ms: 1_764_000_000_000,
      status: 200,
      headers: { "content-type": "text/event-stream", ...header },
      body: { encoding: "utf8", text },
      pieces: [4, 3],
      fault: null
    }
  }
})
/** In the line, in a blob, in a blob of JSON, and with what looks like a reference. */
const exchanges = [
  exchanged('data: {"choices":[]}\n\n'),
  exchanged("data: é\n\n".repeat(2_500)),
  exchanged(`${"data: x\n\n".repeat(2_500)}\ud800`),
  exchanged('data: {"$":1}\n\n', { $blob: "no" })
]
/** So much that its line is one blob, which needs another one. */
const large = exchanged(
  "y".repeat(17_000),
  Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`h${n}`, "z".repeat(1_400)]))
)
const events = [...story.slice(0, 4), ...exchanges, ...story.slice(4), exchanged("the last line")]

const directory = `${root}/one`
const log = `${directory}/events.jsonl`
const write = (all: ReadonlyArray<RunEvent>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* create("one")
      for (const event of all) yield* journal.append(event)
      yield* journal.barrier
      return yield* journal.head
    })
  )

const read = Effect.fnUntraced(function* (wanted: Partial<Wanted>) {
  const disk = yield* makeDisk
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const cursor = yield* openCursor(disk, directory, { ...everything, ...wanted })
      const sequences: Array<number> = []
      let failure: StoreError | null = null
      for (;;) {
        const found = yield* Effect.result(cursor.next)
        if (Result.isFailure(found)) failure = found.failure
        if (Result.isFailure(found) || found.success === null) break
        for (const entry of found.success) sequences.push(entry.sequence)
      }
      return { sequences, message: failure === null ? null : String(failure), mark: cursor.mark() }
    })
  )
})
const aside: ReadonlySet<string> = new Set(["model.exchanged"])

describe("the heading of a line", () => {
  it("is what the whole line says", () => {
    const text = fc.oneof(fc.string({ unit: "binary" }), fc.constant("é".repeat(200)))
    fc.assert(
      fc.property(
        fc.oneof(
          text.map(note),
          text.map((each) => exchanged(each)),
          fc.constantFrom(...story)
        ),
        fc.nat(),
        fc.date({ noInvalidDate: true }),
        (event, sequence, date) => {
          const header = { sequence, previous: noLine, created_at: date.toISOString() }
          const { line } = Result.getOrThrow(encodeLine(sha256, header, event))
          const { data, ...heading } = Result.getOrThrow(decodeLine(line.subarray(0, -1)))
          const found = headingOf(line)
          if (found === null) assert.match(header.created_at, /^[+-]/)
          else assert.deepStrictEqual(found, heading, JSON.stringify(data))
        }
      )
    )
  })

  it("is not guessed at", () => {
    const { line } = Result.getOrThrow(
      encodeLine(sha256, { sequence: 7, previous: noLine, created_at: "2026-11-29T10:00:00.000Z" }, note("x"))
    )
    const whole = new TextDecoder().decode(line)
    assert.isNotNull(headingOf(line))
    for (const changed of [
      whole.slice(0, 150),
      ` ${whole}`,
      whole.replace('"version":1', '"version":2'),
      whole.replace('"sequence":7', '"sequence":-7'),
      whole.replace('"sequence":7', '"sequence":7.5'),
      whole.replace('"previous":"0', '"previous":"G'),
      whole.replace('"data":{', '"data":['),
      whole.replace("run.noted", "run\\u002enoted")
    ])
      assert.isNull(headingOf(new TextEncoder().encode(changed)), changed)
  })
})

describe("what crossed the wire", () => {
  it("is nothing that a state is made of", () => {
    for (const event of [large, ...exchanges]) assert.strictEqual(reduce(initial, event), initial)
  })

  it.effect("is left aside by a fold, which comes to the same", () => {
    const { layer } = world()
    return Effect.gen(function* () {
      const head = yield* write([large, ...events])
      const disk = yield* makeDisk
      const folded = yield* foldJournal(disk, directory, head)
      const { state } = folded
      assert.deepStrictEqual(
        { ...state, run_id: null, model: "", provider: "" },
        events.reduce(reduce, initial)
      )
      assert.deepInclude(folded.mark, head)
      assert.isNull(folded.failure)
      assert.deepStrictEqual(yield* read({ head, aside }), yield* read({ head }))
    }).pipe(Effect.provide(layer))
  })

  it.effect("is held by its chain and its blobs all the same: any change is noticed where it is", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      const head = yield* write(events)
      const changes = Effect.fnUntraced(function* (file: string, steps: number) {
        const whole = yield* fs.readFile(file)
        const step = Math.ceil(whole.length / steps)
        for (let at = 0; at < whole.length; at += step) {
          const changed = whole.slice()
          changed[at] = (changed[at] ?? 0) ^ 0x01
          yield* fs.writeFile(file, changed)
          const found = yield* read({ head, aside })
          assert.isNotNull(found.message, `byte ${at} of ${file}`)
          assert.deepStrictEqual(found, yield* read({ head }), `byte ${at} of ${file}`)
        }
        yield* fs.writeFile(file, whole)
      })
      yield* changes(log, 60)
      const blobs = yield* fs.readDirectory(`${directory}/blobs`)
      assert.isAtLeast(blobs.length, 3)
      for (const name of blobs) {
        const file = `${directory}/blobs/${name}`
        yield* changes(file, 3)
        yield* fs.rename(file, `${file}.gone`)
        const found = yield* read({ head, aside })
        assert.include(found.message ?? "", name)
        assert.deepStrictEqual(found, yield* read({ head }))
        yield* fs.rename(`${file}.gone`, file)
      }
      assert.isNull((yield* read({ head, aside })).message)
    }).pipe(Effect.provide(layer))
  })

  it.effect("is read as what it is when no other line holds it", () => {
    const { fileSystem: fs, layer } = world()
    return Effect.gen(function* () {
      yield* write(events)
      const text = yield* fs.readFileString(log)
      const last = events.length
      yield* fs.writeFileString(
        log,
        rechain(text, last, (entry) => ({ ...entry, data: { step: "one" } }))
      )
      const found = yield* read({ aside })
      assert.include(found.message ?? "", `line ${last + 1} of`)
      assert.strictEqual(found.mark.sequence, last - 1)
    }).pipe(Effect.provide(layer))
  })
})

describe("a batch of lines", () => {
  it.effect("ends before its blobs fill the memory", () => {
    const { layer } = world()
    const size = 600_000
    return Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* create("one")
          for (let n = 0; n < 12; n++) yield* journal.append(note(`${n}`.padEnd(size, "x")))
        })
      )
      const fs = yield* FileSystem.FileSystem
      assert.isBelow(Number((yield* fs.stat(log)).size), 20_000)
      const disk = yield* makeDisk
      const lengths = yield* Effect.scoped(
        Effect.gen(function* () {
          const cursor = yield* openCursor(disk, directory, everything)
          const lengths: Array<number> = []
          for (;;) {
            const entries = yield* cursor.next
            if (entries === null) return lengths
            lengths.push(entries.length)
          }
        })
      )
      assert.strictEqual(
        lengths.reduce((sum, length) => sum + length, 0),
        13
      )
      assert.isAtMost(Math.max(...lengths), 1 + Math.ceil((4 * 1024 * 1024) / size))
    }).pipe(Effect.provide(layer))
  })
})
