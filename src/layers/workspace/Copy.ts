/**
 * Copies of whole directories: never hard links, symlinks kept as they are, a copy-on-write clone where the disk has it.
 */
import { Effect, FileSystem, Path, PlatformError } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { cp } from "node:fs/promises"
import { absolutePath, HostEnvironment } from "../sandbox/Environment.ts"

const copyProgram = Effect.fnUntraced(function* (sources: ReadonlyArray<string>, into: string) {
  const host = yield* HostEnvironment
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const flags = process.platform === "linux" ? ["--preserve=mode,timestamps,links", "--reflink=auto"] : ["-p"]
  return yield* spawner.exitCode(
    ChildProcess.make("cp", ["-R", "-P", "-f", ...flags, "--", ...sources, into], {
      env: { PATH: absolutePath(host), LC_ALL: "C" },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
      forceKillAfter: "500 millis"
    })
  )
})

/** Below this many directories, copying files one by one is cheaper than starting a program. */
const few = 12

/** Copies flat directories file by file; false when there is more in them than plain files. */
const copyFlat = Effect.fnUntraced(function* (sources: ReadonlyArray<string>, into: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const listed = yield* Effect.forEach(
    sources,
    (source) => Effect.map(fs.readDirectoryEntries(source), (entries) => ({ source, entries })),
    { concurrency: "unbounded" }
  )
  const files = listed.flatMap(({ entries, source }) =>
    entries.map((entry) => ({
      type: entry.type,
      from: path.join(source, entry.name),
      to: path.join(into, path.basename(source), entry.name)
    }))
  )
  if (files.length > 8 * few || files.some((file) => file.type !== "File")) return false
  yield* Effect.forEach(
    sources,
    (source) => fs.makeDirectory(path.join(into, path.basename(source)), { recursive: true }),
    { concurrency: "unbounded", discard: true }
  )
  yield* Effect.forEach(files, (file) => fs.copyFile(file.from, file.to), { concurrency: 8, discard: true })
  return true
})

/** Node's own copy, because the FileSystem service's would make relative symlinks absolute. */
const copySlowly = (source: string, target: string) =>
  Effect.tryPromise({
    try: () => cp(source, target, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true }),
    catch: (cause) =>
      PlatformError.systemError({
        _tag: "Unknown",
        module: "FileSystem",
        method: "copy",
        description: cause instanceof Error ? cause.message : String(cause),
        pathOrDescriptor: source,
        cause
      })
  })

/** Copies each source into the directory, under its own name; what is there already is merged with. */
export const copyTrees = Effect.fnUntraced(function* (sources: ReadonlyArray<string>, into: string) {
  if (sources.length === 0) return
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(into, { recursive: true })
  const flat =
    sources.length <= few &&
    // Something may vanish between the look and the copy: a git process renames its temporary files.
    (yield* copyFlat(sources, into).pipe(Effect.catchTag("PlatformError", () => Effect.succeed(false))))
  if (flat) return
  const exit = yield* copyProgram(sources, into).pipe(
    Effect.catchTag("PlatformError", () => Effect.succeed(1))
  )
  if (exit === 0) return
  // No such program, or one that does not know the flags: slower, and the same result.
  yield* Effect.forEach(sources, (source) => copySlowly(source, path.join(into, path.basename(source))), {
    concurrency: 2,
    discard: true
  })
})
