/**
 * The program behind the landlock backend: compiled here, once, from the source that looplane comes with.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { SecureRandom } from "effect/crypto"
import { arch } from "node:os"
import { bytesAt, infoAt, textAt } from "../fs/Files.ts"
import { sha256 } from "../journal/Hash.ts"
import { HostEnvironment, scrubbedEnvironment } from "./Environment.ts"
import { findProgram } from "./Named.ts"
import { runProcess } from "./Runner.ts"

export type FoundHelper =
  | {
      readonly _tag: "Found"
      /** Absolute. */
      readonly file: string
      readonly sha256: string
    }
  | { readonly _tag: "Missing"; readonly reason: string; readonly remedy: string }

const missing = (reason: string, remedy: string): FoundHelper => ({ _tag: "Missing", reason, remedy })

const again = "install looplane again"
const compiler = "install a C compiler (apt-get install gcc libc6-dev, dnf install gcc)"

const timeoutMs = 60_000

/** How far above this file the source may lie: in a checkout it is three directories up, in a package less. */
const maxUp = 3

/** Where the source lies: beside what this file is part of, in a checkout and in a package. */
const sourceFile = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const from = import.meta.dirname.split(path.sep)
  const candidates = Array.from({ length: maxUp + 1 }, (_, at) =>
    path.join(path.sep, ...from.slice(0, from.length - at), "native", "landlock.c")
  )
  return yield* Effect.findFirst(candidates, (file) => Effect.orElseSucceed(fs.exists(file), () => false))
})

/** The helper as it was recorded when it was compiled; null when it is not there, or not that one. */
const compiled = Effect.fnUntraced(function* (file: string, uid: number) {
  const info = yield* infoAt(file)
  const ours = info !== undefined && info.type === "File" && Option.contains(info.uid, uid)
  if (!ours || (info.mode & 0o777) !== 0o700) return null
  const bytes = yield* bytesAt(file)
  const digest = bytes === null ? null : sha256(bytes)
  return digest !== null && digest === (yield* textAt(`${file}.sha256`)) ? digest : null
})

/** Finds the helper in a folder that is the user's alone, or compiles it there. */
export const findHelper = Effect.fn("Sandbox.findHelper")(function* (
  folder: string,
  path_entries: ReadonlyArray<string>,
  uid: number
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const host = yield* HostEnvironment
  const source = yield* sourceFile()
  const text = Option.isNone(source) ? null : yield* textAt(source.value)
  if (Option.isNone(source) || text === null) return missing("native/landlock.c of looplane is gone", again)
  const file = path.join(folder, `landlock-${sha256(Buffer.from(`${text}\0${arch()}`))}`)
  const known = yield* compiled(file, uid)
  if (known !== null) return { _tag: "Found", file, sha256: known } satisfies FoundHelper
  const cc = yield* findProgram(path_entries, "cc")
  if (Option.isNone(cc))
    return missing("there is no C compiler (cc) on PATH to build landlock's helper", compiler)
  const made = `${file}.${yield* random.uuidV4()}`
  return yield* Effect.gen(function* () {
    const { exit_code, output } = yield* runProcess({
      argv: [cc.value, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", made, source.value],
      cwd: folder,
      env: { ...scrubbedEnvironment(host), PATH: path_entries.join(":") },
      contained: null,
      timeout_ms: timeoutMs,
      max_output_bytes: 4096
    })
    const bytes = exit_code === 0 ? yield* bytesAt(made) : null
    if (bytes === null) {
      const complaint = output.split("\n").find((line) => line.includes("error")) ?? `exit ${exit_code}`
      return missing(`cc cannot build landlock's helper (${complaint.trim()})`, compiler)
    }
    const digest = sha256(bytes)
    yield* fs.chmod(made, 0o700)
    yield* fs.writeFileString(`${made}.sha256`, digest, { flag: "wx", mode: 0o600 })
    yield* fs.rename(made, file)
    yield* fs.rename(`${made}.sha256`, `${file}.sha256`)
    return { _tag: "Found", file, sha256: digest } satisfies FoundHelper
  }).pipe(
    Effect.scoped,
    Effect.ensuring(
      Effect.forEach([made, `${made}.sha256`], (each) => Effect.ignore(fs.remove(each, { force: true })))
    )
  )
})
