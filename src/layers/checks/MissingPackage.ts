/**
 * A package that is not installed is a set-up problem, and no patch cures it; a module that the repository itself should
 * hold, or a package that it never declared, is the code's own fault.
 */
import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { textAt } from "../fs/Files.ts"
import { isBuiltin } from "node:module"

const Names = Schema.Record(Schema.String, Schema.Unknown)
const Manifest = Schema.fromJsonString(
  Schema.Struct({
    dependencies: Schema.optionalKey(Names),
    devDependencies: Schema.optionalKey(Names),
    peerDependencies: Schema.optionalKey(Names),
    optionalDependencies: Schema.optionalKey(Names)
  })
)

/** A bare specifier's package: `@scope/name/part` is of `@scope/name`. Null for paths, aliases and built-in modules. */
const packageOf = (specifier: string): string | null => {
  const match =
    /^(@[a-z0-9~-][a-z0-9._~-]*\/[a-z0-9~-][a-z0-9._~-]*|[a-zA-Z0-9~-][a-zA-Z0-9._~-]*)(?:\/|$)/.exec(
      specifier
    )
  return match === null || isBuiltin(specifier) ? null : (match[1] ?? null)
}

const absentNode = /Cannot find (?:package|module) '([^'\n]+)'(?: imported from (\S+))?/g
const absentPython = /^(?:E\s+)?ModuleNotFoundError: No module named '([^'\n]+)'/gm

/** What the nearest manifests between the command's directory and the root declare; null when there is none. */
const declared = Effect.fnUntraced(function* (root: string, cwd: string) {
  const path = yield* Path.Path
  const names = new Set<string>()
  let found = false
  for (let at = cwd; ; at = path.dirname(at)) {
    const manifest = yield* textAt(path.join(at, "package.json")).pipe(
      Effect.flatMap((text) => Schema.decodeUnknownEffect(Manifest)(text)),
      Effect.option
    )
    if (Option.isSome(manifest)) {
      found = true
      const { dependencies, devDependencies, optionalDependencies, peerDependencies } = manifest.value
      for (const part of [dependencies, devDependencies, optionalDependencies, peerDependencies]) {
        for (const name of Object.keys(part ?? {})) names.add(name)
      }
    }
    if (at === root || at === path.dirname(at)) return found ? names : null
  }
})

/** The package that a failed command lacked, or null. */
export const missingPackage = Effect.fnUntraced(function* (output: string, root: string, cwd: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const node = [...output.matchAll(absentNode)].flatMap(([, specifier = "", importer = ""]) => {
    const name = packageOf(specifier)
    return name === null ? [] : [{ name, installed: importer.includes("/node_modules/") }]
  })
  if (node.length > 0) {
    const known = yield* declared(root, cwd)
    const first = node.find(({ installed, name }) => installed || known === null || known.has(name))
    if (first !== undefined) return first.name
  }
  for (const [, name = ""] of output.matchAll(absentPython)) {
    const top = name.split(".")[0] ?? name
    const places = [cwd, path.join(cwd, "src"), root, path.join(root, "src")]
    const local = yield* Effect.filter(
      places.flatMap((at) => [path.join(at, top), path.join(at, `${top}.py`)]),
      (at) => fs.exists(at).pipe(Effect.orElseSucceed(() => false))
    )
    if (local.length === 0) return top
  }
  return null
})
