import { assert, describe, it } from "@effect/vitest"
import type { FileSystem } from "effect"
import { Effect, Exit, Result, Stream } from "effect"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { makeDisk } from "../../../src/layers/journal/Disk.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import { create, readJournal, root, storeOn, story, wholeRun } from "./support.ts"

describe("a disk that fails", () => {
  const run = Effect.gen(function* () {
    yield* wholeRun("before")
    return yield* wholeRun("after")
  })

  it.effect("at any step ends in one line that names the place, and leaves only true events", () =>
    Effect.gen(function* () {
      let total = 0
      const counting = Memory.make()
      yield* run.pipe(
        Effect.provide(
          storeOn(
            Faulty.make(counting.fileSystem, () => {
              total++
              return null
            })
          )
        )
      )
      assert.isAbove(total, 60)
      for (const [error, stride] of [
        ["ENOSPC", 1],
        ["EROFS", 7],
        ["EIO", 5]
      ] as const) {
        for (let failAt = 0; failAt < total; failAt += stride) {
          const { fileSystem } = Memory.make()
          const faulty = Faulty.make(fileSystem, Faulty.failFrom({ failAt, error, shortWrite: 100 }))
          const failure = yield* Effect.flip(Effect.provide(run, storeOn(faulty)))
          assert.strictEqual(failure.reason, error === "ENOSPC" ? "no_space" : "unwritable")
          assert.match(failure.message, /^[^\n]+ \/[^\n]*$/)
          assert.include(failure.message, failure.path)
          const shown = yield* Effect.gen(function* () {
            const store = yield* RunStore
            const listed = yield* store.list({ limit: 10, query: null })
            // A run that could not be made is not there, unless the disk did not let it be removed either.
            for (const summary of listed) {
              if (summary.missing.includes("events.jsonl") || summary.missing.includes("session.json"))
                continue
              const { entries } = yield* store.show(summary.run_id)
              assert.isAtMost(entries.length, story.length + 1)
            }
            return listed
          }).pipe(Effect.provide(storeOn(fileSystem)))
          const second = shown.find((summary) => summary.run_id === "after")
          if (second !== undefined) {
            // The last step makes a result durable that is already in its place.
            if (failAt < total - 1) assert.notStrictEqual(second.missing.length, 0)
            assert.deepStrictEqual(shown.find((summary) => summary.run_id === "before")?.missing, [])
          }
        }
      }
    })
  )

  it.effect("leaves no half-made run behind when it can be removed", () =>
    Effect.gen(function* () {
      const { fileSystem } = Memory.make()
      const full = Faulty.make(
        fileSystem,
        Faulty.failFrom({ failAt: 0, error: "ENOSPC", kinds: ["write"], shortWrite: 10 })
      )
      const exit = yield* Effect.exit(Effect.provide(create("one"), storeOn(full)))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(yield* fileSystem.readDirectory(root), [])
    })
  )
})

/** What a reader makes of a file system as it is. */
const read = (fs: FileSystem.FileSystem, id: string) =>
  Effect.gen(function* () {
    const disk = yield* makeDisk
    const { manifest } = yield* (yield* RunStore).show(id)
    return yield* Stream.runCollect(readJournal(disk, `${root}/${id}`, manifest?.head ?? null))
  }).pipe(Effect.provide(storeOn(fs)), Effect.result)

describe("power loss", () => {
  it.effect("after any step keeps everything that a barrier promised", () =>
    Effect.gen(function* () {
      let total = 0
      const counting = Memory.make()
      const count = Faulty.make(counting.fileSystem, () => {
        total++
        return null
      })
      yield* Effect.provide(wholeRun("one"), storeOn(count))
      for (const names of ["lost", "kept"] as const) {
        for (let failAt = 0; failAt <= total; failAt++) {
          const { disk, fileSystem } = Memory.make()
          let promised = -1
          const faulty = Faulty.make(fileSystem, Faulty.failFrom({ failAt, error: "EIO" }))
          yield* Effect.scoped(
            Effect.gen(function* () {
              const journal = yield* create("one")
              for (const [index, event] of story.entries()) {
                yield* journal.append(event)
                yield* journal.barrier
                promised = index + 1
              }
            })
          ).pipe(Effect.provide(storeOn(faulty)), Effect.exit)
          yield* disk.crash({ names })
          if (promised === -1) continue
          const result = yield* read(fileSystem, "one")
          assert.isTrue(Result.isSuccess(result), `step ${failAt}, names ${names}`)
          if (Result.isSuccess(result)) assert.isAtLeast(result.success.length - 2, promised)
        }
      }
    })
  )
})
