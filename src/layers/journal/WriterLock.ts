/**
 * One writer per run. The lock is the kernel's: it goes when its holder ends, however that happens, so there is nothing
 * to break by force and no process id to guess about.
 */
import { Context, Effect, FileSystem, Layer, type Scope } from "effect"
import type { DatabaseSync } from "node:sqlite"
import { errnoWords } from "../../domain/Errno.ts"
import { shownName } from "../../domain/Text.ts"
import { StoreError } from "../../services/RunStore.ts"
import { fileMode } from "./Disk.ts"
import { failAt, invalid } from "./Failure.ts"

export class WriterLock extends Context.Service<
  WriterLock,
  {
    /** Holds the lock of a lock file until the scope closes. Never waits: `busy` when somebody else has it. */
    readonly acquire: (file: string) => Effect.Effect<void, StoreError, Scope.Scope>
  }
>()("looplane/layers/journal/WriterLock") {}

const busy = (file: string): StoreError =>
  new StoreError({ reason: "busy", path: file, message: `another process is writing this run (${file})` })

/** Loaded on first use, and without the warning that older versions of Node print about it. */
const sqlite = () => {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule("node:sqlite")
  } finally {
    process.emitWarning = emitWarning
  }
}

const busyCode = 5
const fullCode = 13

const lockError = (file: string, cause: unknown): StoreError => {
  const code = typeof cause === "object" && cause !== null && "errcode" in cause ? cause.errcode : null
  if (code === busyCode) return busy(file)
  return code === fullCode
    ? new StoreError({
        reason: "no_space",
        path: file,
        message: `${errnoWords("ENOSPC")}: ${shownName(file)}`,
        cause
      })
    : new StoreError({ reason: "unwritable", path: file, message: `cannot lock ${file}`, cause })
}

/**
 * An exclusive transaction on an empty SQLite database: Node's only way to a lock of the operating system. Nothing is
 * ever written to it. Closing any other descriptor of the file in this process would free the lock, so nothing may open
 * an existing one.
 */
export const layer: Layer.Layer<WriterLock, never, FileSystem.FileSystem> = Layer.effect(
  WriterLock,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const prepare = Effect.fnUntraced(function* (file: string) {
      const found = yield* Effect.option(fs.lstat(file))
      if (found._tag === "Some")
        return found.value.type === "File"
          ? undefined
          : yield* invalid(file, `refused: ${file} is no plain file`)
      yield* Effect.scoped(fs.open(file, { flag: "wx", mode: fileMode })).pipe(
        Effect.catchTag("PlatformError", (error) =>
          error.reason._tag === "AlreadyExists" ? Effect.void : Effect.fail(error)
        ),
        failAt(file)
      )
    })
    const hold = (file: string) =>
      Effect.try({
        try: (): DatabaseSync => {
          const { DatabaseSync } = sqlite()
          const database = new DatabaseSync(file)
          try {
            database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")
            return database
          } catch (error) {
            database.close()
            throw error
          }
        },
        catch: (cause) => lockError(file, cause)
      })
    const acquire = Effect.fn("WriterLock.acquire")(function* (file: string) {
      yield* prepare(file)
      yield* Effect.acquireRelease(hold(file), (database) => Effect.sync(() => database.close()))
    })
    return WriterLock.of({ acquire })
  })
)

/** A lock within this process, for file systems that no other process can see. */
export const layerMemory: Layer.Layer<WriterLock> = Layer.sync(WriterLock, () => {
  const held = new Set<string>()
  return WriterLock.of({
    acquire: (file) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.suspend(() => (held.has(file) ? Effect.fail(busy(file)) : Effect.succeed(held.add(file)))),
          () => Effect.sync(() => held.delete(file))
        )
      )
  })
})
