import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Result } from "effect"
import { Digest } from "effect/crypto"
import fc from "fast-check"
import { isRecord, list, parse, record, type JsonRecord } from "../../src/domain/Json.ts"
import { differingPlaces, portablePaths, type Recording } from "../../src/domain/Recording.ts"
import type { Task } from "../../src/domain/Task.ts"
import * as Headless from "../../src/layers/approval/Headless.ts"
import { scriptedModel } from "../../src/layers/model/Scripted.ts"
import { layerTest, passesWhen } from "../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../src/layers/workspace/Memory.ts"
import * as Record from "../../src/programs/Record.ts"
import { run } from "../../src/programs/Run.ts"
import { RunStore } from "../../src/services/RunStore.ts"
import { runId } from "../layers/journal/support.ts"
import { resealed } from "../support/recording.ts"
import { replayed } from "../support/replay.ts"
import { exampleTask } from "../support/tasks.ts"

const files = { "src/add.js": "export const add = (a, b) => a - b\n" }
const script = [
  {
    tool_calls: [
      { name: "replace_text", arguments: { path: "src/add.js", old_text: "a - b", new_text: "a + b" } }
    ]
  },
  { text: "It subtracted." }
]

/** A run in memory, and what the store knows of it. */
const recorded = Effect.fnUntraced(function* (task: Partial<Task> = {}) {
  const memory = yield* makeMemoryWorkspace(files)
  const world = layerTest({
    memory,
    files,
    models: [scriptedModel(script)],
    checks: passesWhen("src/add.js", "a + b")
  })
  return yield* Effect.gen(function* () {
    yield* run({ ...exampleTask, ...task }, { run_id: runId("r-1") })
    const store = yield* RunStore
    return {
      recording: yield* recordingOf("r-1"),
      shown: yield* store.show("r-1"),
      nobody: yield* Effect.exit(recordingOf("nobody"))
    }
  }).pipe(Effect.provide(world.pipe(Layer.provideMerge(Headless.layer))))
})

const { recordingOf } = Record
const fileOf = (recording: Recording): Effect.Effect<JsonRecord> =>
  Record.recordingFile(recording).pipe(Effect.provide(Digest.layerWebCrypto), Effect.orDie)
const loadRecording = (json: unknown) =>
  Record.loadRecording(json).pipe(Effect.provide(Digest.layerWebCrypto))

describe("recordingOf", () => {
  it.effect("is the request and every event of a run", () =>
    Effect.gen(function* () {
      const { nobody, recording, shown } = yield* recorded()
      assert.strictEqual(recording.run_id, "r-1")
      assert.deepStrictEqual(recording.request, shown.request)
      assert.deepStrictEqual(
        recording.entries.map(({ event }) => event),
        shown.entries.map(({ event }) => event)
      )
      assert.isTrue(Exit.isFailure(nobody))
    })
  )
})

describe("a portable recording", () => {
  it.effect("comes back as it was, but for the places of its machine, and agrees with itself", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded({
        repository: "/home/somebody/app",
        instruction: "Fix add in /home/somebody/app.",
        dependencies: { mode: "path", path: "/home/somebody/deps" }
      })
      const file = yield* fileOf(recording)
      const loaded = yield* loadRecording(JSON.stringify(file))
      assert.deepStrictEqual(yield* loadRecording(file), loaded)
      assert.deepStrictEqual(
        differingPlaces(recording, loaded).map(({ path, played }) => [path, played]),
        [
          ["request.task.dependencies.path", portablePaths.dependencies],
          ["request.task.repository", portablePaths.repository]
        ]
      )
      assert.strictEqual(loaded.request.task.instruction, "Fix add in /home/somebody/app.")
      assert.isNull(yield* replayed(loaded))
    })
  )

  it.effect("keeps events of a later version", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded()
      const file = yield* fileOf(recording)
      const last = list(file["entries"]).length
      const moon = {
        sequence: last,
        created_at: "2026-11-29T10:00:00.000Z",
        event: { event_type: "moon.landed", data: { any: ["thing"] } }
      }
      const loaded = yield* loadRecording(resealed({ ...file, entries: [...list(file["entries"]), moon] }))
      assert.deepStrictEqual(loaded.entries.at(-1), moon)
    })
  )

  it.effect("is refused when it is none", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded()
      const file = yield* fileOf(recording)
      const [first, second, ...rest] = list(file["entries"])
      const changed = (part: object) => [{ ...(isRecord(first) ? first : {}), ...part }, second, ...rest]
      const bad: ReadonlyArray<readonly [string, unknown]> = [
        ["no JSON", "{"],
        ["another format", { ...file, format: "else" }],
        ["a later version", { ...file, version: 3 }],
        ["the version without hashes", { ...file, version: 1 }],
        ["no events", { ...file, entries: [] }],
        ["a gap", { ...file, entries: [first, ...rest] }],
        ["another order", { ...file, entries: [second, first, ...rest] }],
        ["no time", { ...file, entries: changed({ created_at: "yesterday" }) }],
        [
          "an event that does not fit",
          { ...file, entries: changed({ event: { event_type: "run.created", data: {} } }) }
        ],
        ["no request", { ...file, request: {} }]
      ]
      for (const [what, value] of bad) {
        for (const each of isRecord(value) ? [value, resealed(value)] : [value]) {
          const exit = yield* Effect.exit(loadRecording(each))
          assert.isTrue(Exit.isFailure(exit), what)
        }
      }
    })
  )
})

describe("a recording that was changed", () => {
  const encoder = new TextEncoder()
  const decoder = new TextDecoder()

  it.effect("by any byte of any value is refused, and the first entry that is not what it was is named", () =>
    Effect.gen(function* () {
      const { recording } = yield* recorded()
      const file = yield* fileOf(recording)
      const bytes = encoder.encode(JSON.stringify(file))
      const text = JSON.stringify(file)
      yield* loadRecording(text)
      /** The offset behind each entry, in bytes: nothing in this file is longer than one. */
      let end = text.indexOf('"entries":[') + '"entries":['.length
      const ends = list(file["entries"]).map((entry) => (end += JSON.stringify(entry).length + 1))
      const whereOf = (at: number) => {
        const index = ends.findIndex((each) => at < each)
        return at < text.indexOf('"entries":[') || index === -1 ? null : index
      }
      assert.strictEqual(bytes.length, text.length)
      const runPromise = Effect.runPromiseWith(yield* Effect.context())
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
            const changed = bytes.slice()
            changed[at] = (changed[at] ?? 0) ^ flip
            const read = decoder.decode(changed)
            const value = parse(read)
            // Not every byte is part of a value: one blank may stand for another.
            if (value !== undefined && JSON.stringify(value) === text) return
            const loaded = await runPromise(Effect.result(loadRecording(read)))
            assert.isTrue(Result.isFailure(loaded), `byte ${at} became ${changed[at]}`)
            if (value === undefined || Result.isSuccess(loaded) || loaded.failure.reason !== "changed") return
            assert.strictEqual(loaded.failure.sequence, whereOf(at), loaded.failure.message)
          }),
          { numRuns: 400 }
        )
      )
    })
  )

  const cases: ReadonlyArray<readonly [string, (file: JsonRecord) => JsonRecord, number | null, RegExp]> = [
    [
      "its request",
      (file) => ({ ...file, request: { ...record(file["request"]), sandbox: "host" } }),
      null,
      /its request/
    ],
    ["a key that nobody knows", (file) => ({ ...file, more: 1 }), null, /before its events/],
    [
      "its last event, gone",
      (file) => ({ ...file, entries: list(file["entries"]).slice(0, -1) }),
      null,
      /\d+ events are there, and \d+ were recorded/
    ],
    [
      "a hash, gone",
      (file) => ({
        ...file,
        entries: list(file["entries"]).map((entry, at) =>
          at === 3 ? Object.assign({}, entry, { hash: undefined }) : entry
        )
      }),
      3,
      /^event 3 \(.+\) is not the one that was recorded$/
    ],
    [
      "two events, in each other's place",
      (file) => {
        const [first, second, third, ...rest] = list(file["entries"])
        return { ...file, entries: [first, third, second, ...rest] }
      },
      1,
      /^event 1 /
    ]
  ]
  it.effect.each(cases)("in %s is refused", ([, change, sequence, message]) =>
    Effect.gen(function* () {
      const { recording } = yield* recorded()
      const failure = yield* Effect.flip(loadRecording(change(yield* fileOf(recording))))
      assert.strictEqual(failure.reason, "changed")
      assert.strictEqual(failure.sequence, sequence)
      assert.match(failure.message, message)
    })
  )

  it.effect("so that it is nested too deeply is refused like any other", () =>
    Effect.gen(function* () {
      const deep = `{"format":"looplane-recording","version":2,"more":${"[".repeat(1e5)}${"]".repeat(1e5)}}`
      assert.strictEqual((yield* Effect.flip(loadRecording(deep))).reason, "unsound")
    })
  )
})
