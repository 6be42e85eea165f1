/**
 * The program that a name means inside a sandbox.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { isWithin } from "../../domain/SandboxView.ts"
import { SandboxError } from "../../services/Sandbox.ts"

const refuse = (reason: SandboxError["reason"], message: string, cause?: unknown) =>
  new SandboxError({ reason, message, ...(cause === undefined ? {} : { cause }) })

/** The first of that name that can be executed. */
export const findProgram = Effect.fnUntraced(function* (entries: ReadonlyArray<string>, name: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return yield* Effect.findFirst(
    entries.map((entry) => path.join(entry, name)),
    (file) =>
      Effect.orElseSucceed(
        Effect.map(fs.stat(file), (info) => info.type === "File" && (info.mode & 0o111) !== 0),
        () => false
      )
  )
})

/** Must be the same file inside: what lies in the place itself is there, everything else has to be shown. */
export const programOf = Effect.fnUntraced(function* (
  name: string,
  options: {
    readonly path_entries: ReadonlyArray<string>
    /** Where the place's root is, inside. */
    readonly root: string
    /** Whether it can be executed inside: the file that was found, and where that leads. */
    readonly shows: (found: string, real: string) => boolean
  }
) {
  const fs = yield* FileSystem.FileSystem
  const quoted = JSON.stringify(name)
  if (name.includes("/") && (!name.startsWith("/") || isWithin(name, options.root))) return name
  const found = yield* findProgram(name.startsWith("/") ? [""] : options.path_entries, name)
  if (Option.isNone(found)) return yield* refuse("not_found", `${quoted} was not found on PATH`)
  const real = yield* fs
    .realPath(found.value)
    .pipe(Effect.mapError((error) => refuse("not_found", `${quoted} was not found on PATH`, error)))
  if (options.shows(found.value, real)) return found.value
  return yield* refuse(
    "refused",
    `${quoted} is ${real}, which the sandbox does not show: name its directory in sandbox_read_roots`
  )
})
