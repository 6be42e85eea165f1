import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, type PlatformError } from "effect"
import fc from "fast-check"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { contentCases, permissionCases } from "./contentCases.ts"
import { nameCases } from "./nameCases.ts"
import { dump, steps } from "./support.ts"

const cases = { ...contentCases, ...nameCases }
const asRoot = process.getuid?.() === 0

const onReal = <A>(
  use: (fs: FileSystem.FileSystem, root: string) => Effect.Effect<A, PlatformError.PlatformError>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped({ prefix: "looplane-fs-" }))
      return yield* use(fs, root)
    })
  ).pipe(Effect.provide(NodeFileSystem.layer))

const onMemory = <A>(
  use: (fs: FileSystem.FileSystem, root: string) => Effect.Effect<A, PlatformError.PlatformError>,
  options: Memory.MemoryOptions = {}
) => {
  const { fileSystem } = Memory.make({ umask: process.umask(), privileged: asRoot, ...options })
  return Effect.flatMap(fileSystem.makeTempDirectory(), (root) => use(fileSystem, root))
}

describe("the in-memory FileSystem behaves as the real one", () => {
  for (const [name, run] of Object.entries(asRoot ? cases : { ...cases, ...permissionCases })) {
    it.live(name, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* onMemory(run), yield* onReal(run))
      })
    )
  }

  const path = fc.array(fc.constantFrom("a", "b", "c", "..", "l"), { minLength: 1, maxLength: 3 })
  const operation = fc.record({
    kind: fc.constantFrom(
      "write",
      "write",
      "mkdir",
      "mkdir",
      "mkdirs",
      "rename",
      "rename",
      "remove",
      "removeAll",
      "link",
      "symlink",
      "truncate",
      "append",
      "read",
      "copyFile",
      "chmod"
    ),
    from: path,
    to: path
  })
  type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

  const perform = (fs: FileSystem.FileSystem, root: string, { from, kind, to }: Operation) => {
    // Three levels down, so that no ".." leads out of the place.
    const base = `${root}/x/y/z`
    const source = `${base}/${from.join("/")}`
    const target = `${base}/${to.join("/")}`
    switch (kind) {
      case "write":
        return fs.writeFileString(source, to.join(""))
      case "append":
        return fs.writeFileString(source, "+", { flag: "a" })
      case "mkdir":
        return fs.makeDirectory(source)
      case "mkdirs":
        return Effect.asVoid(fs.makeDirectory(source, { recursive: true }))
      case "rename":
        return fs.rename(source, target)
      // The real one normalises the names below what it removes as text: a ".." in them means another place there.
      case "remove":
        return fs.remove(`${base}/${from.filter((name) => name !== "..").join("/") || "a"}`)
      case "removeAll":
        return fs.remove(`${base}/${from.filter((name) => name !== "..").join("/") || "a"}`, {
          recursive: true,
          force: true
        })
      case "link":
        return fs.link(source, target)
      case "symlink":
        return fs.symlink(from.join("/"), target)
      case "truncate":
        return fs.truncate(source, 2)
      case "read":
        return fs.readFileString(source)
      case "copyFile":
        return fs.copyFile(source, target)
      default:
        return fs.chmod(source, 0o750)
    }
  }
  const program = (operations: ReadonlyArray<Operation>) =>
    Effect.fnUntraced(function* (fs: FileSystem.FileSystem, root: string) {
      yield* fs.makeDirectory(`${root}/x/y/z`, { recursive: true })
      const seen = yield* steps<unknown>(operations.map((one) => perform(fs, root, one)))
      return { seen, tree: yield* dump(fs, root) }
    })

  it.live("for random programs", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 30 }), async (operations) => {
          const real = await Effect.runPromise(onReal(program(operations)))
          assert.deepStrictEqual(await Effect.runPromise(onMemory(program(operations))), real)
        }),
        { numRuns: 150 }
      )
    )
  )
})
