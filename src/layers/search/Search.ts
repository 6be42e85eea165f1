/**
 * Search with what the machine has: ripgrep when its binary runs, else the walk. Decided once, at the first search.
 */
import { Effect, Layer } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { Search } from "../../services/Search.ts"
import { makeRipgrep } from "./Ripgrep.ts"
import { makeWalk } from "./Walk.ts"

/** The path of the packaged ripgrep; fails where the platform's package is not installed. */
const packagedBinary = Effect.tryPromise(() => import("@vscode/ripgrep")).pipe(
  Effect.map(({ rgPath }) => rgPath)
)

const make = Effect.gen(function* () {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const walk = yield* makeWalk
  const ripgrep = Effect.gen(function* () {
    const binary = yield* packagedBinary
    const exitCode = yield* spawner.exitCode(
      ChildProcess.make(binary, ["--no-config", "--version"], {
        env: {},
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore"
      })
    )
    return exitCode === 0 ? yield* makeRipgrep(binary) : walk
  }).pipe(Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner))
  const chosen = yield* Effect.cached(
    ripgrep.pipe(
      Effect.catch((error) => Effect.as(Effect.logWarning("search goes on without ripgrep", error), walk))
    )
  )
  return Search.of({ search: (query) => Effect.flatMap(chosen, (engine) => engine.search(query)) })
})

export const layer = Layer.effect(Search, make)
/** The ripgrep at a path, whatever the machine has. */
export const layerRipgrep = (binary: string) => Layer.effect(Search, makeRipgrep(binary))
/** The walk, also where ripgrep is. */
export const layerWalk = Layer.effect(Search, makeWalk)
