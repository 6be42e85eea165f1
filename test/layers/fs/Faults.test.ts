import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import * as Memory from "../../../src/layers/fs/Memory.ts"

const text = new TextEncoder()
const syncDirectory = (fs: FileSystem.FileSystem, path: string) =>
  Effect.scoped(Effect.flatMap(fs.open(path), (directory) => directory.sync))
const syncedFile = (fs: FileSystem.FileSystem, path: string, synced: string, unsynced: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const file = yield* fs.open(path, { flag: "w" })
      yield* file.writeAll(text.encode(synced))
      yield* file.sync
      yield* file.writeAll(text.encode(unsynced))
    })
  )

describe("power loss in memory", () => {
  it.effect("keeps synced content under synced names, and nothing else", () => {
    const { disk, fileSystem: fs } = Memory.make()
    return Effect.gen(function* () {
      yield* fs.makeDirectory("/d")
      yield* syncDirectory(fs, "/")
      yield* syncedFile(fs, "/d/kept", "synced", " and more")
      yield* fs.rename("/d/kept", "/d/name")
      yield* syncDirectory(fs, "/d")
      yield* syncedFile(fs, "/d/unnamed", "synced", "")
      yield* fs.rename("/d/name", "/d/later")
      yield* disk.crash()
      assert.deepStrictEqual(yield* fs.readDirectory("/d"), ["name"])
      assert.strictEqual(yield* fs.readFileString("/d/name"), "synced")
      yield* fs.writeFileString("/d/name", "over")
      yield* fs.truncate("/d/name", 2)
      yield* disk.crash()
      assert.strictEqual(yield* fs.readFileString("/d/name"), "synced")
    })
  })

  it.effect("may keep names and still lose their content", () => {
    const { disk, fileSystem: fs } = Memory.make()
    return Effect.gen(function* () {
      yield* syncedFile(fs, "/old", "old", "")
      yield* fs.writeFileString("/new", "new")
      yield* fs.rename("/new", "/old")
      yield* disk.crash({ names: "kept" })
      assert.strictEqual(yield* fs.readFileString("/old"), "")
      assert.isFalse(yield* fs.exists("/new"))
    })
  })
})

describe("a faulty file system", () => {
  it.effect("fails the chosen step and the ones behind it, with a short write where asked", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      yield* fs.writeFileString("/a", "whole")
      const failure = yield* Effect.flip(fs.writeFileString("/b", "never whole"))
      assert.deepInclude(failure.reason, { _tag: "Unknown", method: "writeFile", pathOrDescriptor: "/b" })
      assert.include(String(failure.reason.cause), "no space left on device")
      assert.strictEqual(yield* fs.readFileString("/b"), "never")
      yield* Effect.flip(fs.rename("/a", "/c"))
      assert.strictEqual(yield* fs.readFileString("/a"), "whole")
    }).pipe(
      Effect.provide(
        Faulty.layerFaulty(Faulty.failFrom({ failAt: 1, error: "ENOSPC", shortWrite: 5 })).pipe(
          Layer.provide(Memory.layer())
        )
      )
    )
  )

  it.effect("may count one kind of step, and recover", () => {
    const { fileSystem } = Memory.make()
    const fs = Faulty.make(
      fileSystem,
      Faulty.failFrom({ failAt: 1, error: "EIO", kinds: ["sync"], once: true })
    )
    return Effect.gen(function* () {
      yield* syncedFile(fs, "/a", "1", "2")
      yield* Effect.flip(syncedFile(fs, "/a", "3", "4"))
      assert.strictEqual(yield* fs.readFileString("/a"), "3")
      yield* syncedFile(fs, "/a", "5", "6")
      assert.strictEqual(yield* fs.readFileString("/a"), "56")
    })
  })
})
