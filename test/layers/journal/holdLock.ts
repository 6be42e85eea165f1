// Holds the lock of the file that it is given until it is killed, and says so once it has it.
import { NodeFileSystem, NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import * as WriterLock from "../../../src/layers/journal/WriterLock.ts"

const [, , file = ""] = process.argv
Effect.gen(function* () {
  const lock = yield* WriterLock.WriterLock
  yield* lock.acquire(file)
  process.stdout.write("held\n")
  process.stdin.resume()
  yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.provide(WriterLock.layer),
  Effect.provide(NodeFileSystem.layer),
  NodeRuntime.runMain
)
