import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, type Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { linkSync, mkdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Store from "../../../src/layers/journal/Store.ts"
import * as WriterLock from "../../../src/layers/journal/WriterLock.ts"
import { RunStore } from "../../../src/services/RunStore.ts"
import { create, note, runId, story, wholeRun } from "./support.ts"

const platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)

/** A program over the real store in a directory of its own. */
const onDisk = <A, E>(
  use: (
    runRoot: string
  ) => Effect.Effect<A, E, RunStore | FileSystem.FileSystem | WriterLock.WriterLock | Scope.Scope>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.realPath(yield* fs.makeTempDirectoryScoped({ prefix: "looplane-store-" }))
      const runRoot = `${folder}/runs`
      return yield* use(runRoot).pipe(
        Effect.provide(Layer.merge(Store.layer({ run_root: runRoot }), WriterLock.layer))
      )
    })
  ).pipe(Effect.provide(platform))

const holder = (file: string) =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<ChildProcess> => {
      const script = fileURLToPath(new URL("./holdLock.ts", import.meta.url))
      const child = spawn(process.execPath, [script, file], { stdio: ["pipe", "pipe", "pipe"] })
      await once(child.stdout, "data")
      return child
    }),
    (child) => Effect.promise(() => end(child))
  )
const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGKILL")
  await gone
}

describe("the writer's lock", () => {
  it.live("refuses a second writer, and is free as soon as its holder is killed", () =>
    onDisk((runRoot) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const lock = yield* WriterLock.WriterLock
        yield* fs.makeDirectory(runRoot, { recursive: true })
        const file = `${runRoot}/${Store.lockName}`
        const child = yield* holder(file)
        const refused = yield* Effect.flip(Effect.scoped(lock.acquire(file)))
        assert.deepInclude(refused, { reason: "busy", path: file })
        yield* Effect.promise(() => end(child))
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* lock.acquire(file)
            assert.strictEqual((yield* Effect.flip(Effect.scoped(lock.acquire(file)))).reason, "busy")
          })
        )
        yield* Effect.scoped(lock.acquire(file))
        assert.deepStrictEqual(yield* fs.readDirectory(runRoot), [Store.lockName])
        assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      })
    )
  )

  it.live("is not taken through a symbolic link", () =>
    onDisk((runRoot) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const lock = yield* WriterLock.WriterLock
        yield* fs.makeDirectory(runRoot, { recursive: true })
        yield* fs.symlink("elsewhere", `${runRoot}/lock`)
        assert.strictEqual(
          (yield* Effect.flip(Effect.scoped(lock.acquire(`${runRoot}/lock`)))).reason,
          "invalid"
        )
        assert.isFalse(yield* fs.exists(`${runRoot}/elsewhere`))
      })
    )
  )
})

describe("the store on a real disk", () => {
  it.live("holds its run's lock while it is open, and leaves only the files of the closed list", () =>
    onDisk((runRoot) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const lock = yield* WriterLock.WriterLock
        const file = `${runRoot}/one/${Store.lockName}`
        yield* Effect.scoped(
          Effect.gen(function* () {
            const journal = yield* create("one")
            for (const event of story) yield* journal.append(event)
            yield* journal.barrier
            assert.strictEqual((yield* Effect.flip(Effect.scoped(lock.acquire(file)))).reason, "busy")
          })
        )
        yield* Effect.scoped(lock.acquire(file))
        yield* wholeRun("two")
        assert.deepStrictEqual((yield* fs.readDirectory(`${runRoot}/two`)).toSorted(), [
          ".writer.lock",
          "blobs",
          "changes.patch",
          "checkpoint.json",
          "events.jsonl",
          "receipt.json",
          "request.json",
          "result.json",
          "session.json",
          "test.log",
          "verification.json"
        ])
        const shown = yield* (yield* RunStore).show("two")
        assert.deepStrictEqual(shown.missing, [])
        assert.strictEqual(shown.entries.length, story.length + 1)
      })
    )
  )

  it.live(
    "lists beside files of two gigabytes and FIFOs without reading them, and refuses them in one line",
    () =>
      onDisk((runRoot) =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          yield* wholeRun("good")
          const huge = 2 * 1024 ** 3
          for (const name of ["stray", "bad/session.json", "bad/events.jsonl", "bad/result.json"]) {
            yield* fs.makeDirectory(`${runRoot}/bad`, { recursive: true })
            yield* fs.writeFileString(`${runRoot}/${name}`, "")
            yield* fs.truncate(`${runRoot}/${name}`, huge)
          }
          yield* fs.makeDirectory(`${runRoot}/fifo`)
          const made = spawn("mkfifo", [`${runRoot}/fifo/request.json`, `${runRoot}/fifo/events.jsonl`])
          yield* Effect.promise(() => once(made, "exit"))
          const store = yield* RunStore
          const listed = yield* store.list({ limit: 10, query: null })
          const missing = Object.fromEntries(listed.map((one) => [one.run_id, one.missing]))
          assert.deepStrictEqual(Object.keys(missing).toSorted(), ["bad", "fifo", "good"])
          assert.deepStrictEqual(missing["good"], [])
          assert.includeMembers([...(missing["bad"] ?? [])], ["session.json", "result.json"])
          assert.includeMembers([...(missing["fifo"] ?? [])], ["request.json", "events.jsonl"])
          for (const id of ["bad", "fifo"]) {
            const failure = yield* Effect.flip(store.show(id))
            assert.strictEqual(failure.reason, "damaged")
            assert.notInclude(failure.message, "\n")
          }
        })
      )
  )

  it.live("takes a run over from a process that was killed, and not before", () =>
    onDisk((runRoot) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const store = yield* RunStore
        yield* wholeRun("one", story.slice(0, -1))
        yield* fs.truncate(
          `${runRoot}/one/events.jsonl`,
          Number((yield* fs.stat(`${runRoot}/one/events.jsonl`)).size) - 7
        )
        yield* fs.writeFileString(`${runRoot}/one/session.json`, "")
        const child = yield* holder(`${runRoot}/one/${Store.lockName}`)
        const careful = { accept_loss: false }
        const refused = yield* Effect.flip(Effect.scoped(store.open("one", careful)))
        assert.strictEqual(refused.reason, "busy")
        assert.include(refused.message, "another process is working on run one")
        yield* Effect.promise(() => end(child))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { journal } = yield* store.open("last", careful)
            yield* journal.append(note("taken over"))
            yield* journal.barrier
          })
        )
        const { entries, manifest } = yield* store.show("one")
        assert.strictEqual(entries.length, story.length)
        assert.strictEqual(manifest?.head.hash, entries.at(-1)?.hash)
        yield* store.fork("one", { sequence: 4, run_id: runId("two") })
        yield* fs.makeDirectory(`${runRoot}/one/git/objects/ab`, { recursive: true })
        yield* fs.writeFileString(`${runRoot}/one/git/objects/ab/cd`, "object", { mode: 0o444 })
        yield* Effect.scoped(store.open("two", careful))
        assert.strictEqual((yield* fs.stat(`${runRoot}/two/git/objects/ab/cd`)).mode & 0o777, 0o444)
        assert.strictEqual((yield* store.show("two")).entries.length, 6)
      })
    )
  )

  it.live(
    "lists two thousand bundles, one of them with a sparse journal of two gigabytes",
    () =>
      onDisk((runRoot) =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const store = yield* RunStore
          yield* wholeRun("run-0")
          for (let n = 1; n <= 2_000; n++) {
            mkdirSync(`${runRoot}/run-${n}`)
            linkSync(`${runRoot}/run-0/result.json`, `${runRoot}/run-${n}/result.json`)
          }
          for (const name of ["request.json", "session.json"])
            linkSync(`${runRoot}/run-0/${name}`, `${runRoot}/run-7/${name}`)
          yield* fs.writeFileString(`${runRoot}/run-7/events.jsonl`, "")
          yield* fs.truncate(`${runRoot}/run-7/events.jsonl`, 2 * 1024 ** 3)
          const before = process.memoryUsage().rss
          assert.strictEqual((yield* store.list({ limit: 50, query: null })).length, 50)
          assert.isNull(yield* store.unfinished)
          assert.isBelow(process.memoryUsage().rss - before, 150 * 1024 ** 2)
          for (const look of [
            Effect.asVoid(store.show("run-7")),
            Effect.asVoid(store.fork("run-7", { sequence: 3, run_id: runId("fork") })),
            Effect.asVoid(Effect.scoped(store.open("run-7", { accept_loss: false })))
          ])
            assert.deepInclude(yield* Effect.flip(look), {
              reason: "damaged",
              path: `${runRoot}/run-7/events.jsonl`
            })
        })
      ),
    60_000
  )
})
