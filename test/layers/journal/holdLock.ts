// Holds the lock of the file that it is given until it is killed, and says so once it has it.
import { NodeFileSystem, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import * as WriterLock from "../../../src/layers/journal/WriterLock.ts"

const [, , file = ""] = process.argv
Effect.gen(function* () {
  const lock = yield* WriterLock.WriterLock
  yield* lock.acquire(file)
  process.stdout.write("held\n")
  process.stdin.resume()
  return yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.provide(Layer.provide(WriterLock.layer, NodeFileSystem.layer)),
  NodeRuntime.runMain
)
