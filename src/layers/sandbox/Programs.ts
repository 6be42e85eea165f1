/**
 * Looks programs up on PATH, the way a spawn without a shell does.
 */
import { Effect, FileSystem, Layer, Path } from "effect"
import { Programs } from "../../services/Programs.ts"
import { HostEnvironment } from "./Environment.ts"

export const layer = Layer.effect(
  Programs,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const host = yield* HostEnvironment
    const places = (host["PATH"] ?? "").split(":").filter((place) => place !== "")
    const isProgram = (file: string) =>
      fs.stat(file).pipe(
        Effect.map((info) => info.type === "File" && (info.mode & 0o111) !== 0),
        Effect.orElseSucceed(() => false)
      )
    return Programs.of({
      has: (program, directory) =>
        program.includes("/")
          ? isProgram(path.resolve(directory, program))
          : Effect.map(
              Effect.forEach(places, (place) => isProgram(path.resolve(directory, place, program))),
              (found) => found.includes(true)
            )
    })
  })
)
