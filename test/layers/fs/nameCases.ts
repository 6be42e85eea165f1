/** Cases about names: directories, links, renames, and paths that lead nowhere. */
import { Effect } from "effect"
import { dump, steps, type Case } from "./support.ts"

export const nameCases: Readonly<Record<string, Case>> = {
  "missing paths and wrong types": Effect.fnUntraced(function* (fs, root) {
    yield* fs.makeDirectory(`${root}/d`)
    yield* fs.writeFileString(`${root}/f`, "f")
    return yield* steps<unknown>([
      fs.readFile(`${root}/none`),
      fs.readFile(`${root}/d`),
      fs.readFile(`${root}/f/x`),
      fs.readFile(`${root}/f/`),
      fs.stat(`${root}/f/`),
      fs.stat(`${root}/f/.`),
      fs.writeFileString(`${root}/none/x`, "x"),
      fs.writeFileString(`${root}/d`, "x"),
      fs.writeFileString(`${root}/fresh/`, "x"),
      fs.readDirectory(`${root}/f`),
      fs.readDirectory(`${root}/none`),
      fs.readLink(`${root}/f`),
      fs.realPath(`${root}/none`),
      fs.makeDirectory(`${root}/d`),
      fs.makeDirectory(`${root}/f`),
      fs.makeDirectory(`${root}/f/x`),
      fs.makeDirectory(`${root}/none/x`),
      Effect.asVoid(fs.makeDirectory(`${root}/d`, { recursive: true })),
      fs.makeDirectory(`${root}/f`, { recursive: true }),
      fs.makeDirectory(`${root}/f/x/y`, { recursive: true }),
      fs.access(`${root}/none`),
      fs.access(`${root}/f/x`),
      fs.chmod(`${root}/none`, 0o600),
      fs.utimes(`${root}/none`, 1, 1),
      fs.truncate(`${root}/none`),
      fs.truncate(`${root}/d`),
      fs.readFile(""),
      fs.stat(`${root}/${"n".repeat(256)}`)
    ])
  }),
  directories: Effect.fnUntraced(function* (fs, root) {
    yield* fs.makeDirectory(`${root}/a/b/c`, { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(`${root}/a/b/f`, "f")
    yield* fs.symlink(`${root}/a/b`, `${root}/a/l`)
    const entries = (yield* fs.readDirectoryEntries(`${root}/a/b`))
      .map((e) => `${e.name}:${e.type}`)
      .toSorted()
    const recursive = (yield* fs.readDirectory(root, { recursive: true })).toSorted()
    const globbed = yield* fs.glob("**/*", { root })
    const removal = yield* steps([
      fs.remove(`${root}/a`),
      fs.remove(`${root}/none`),
      fs.remove(`${root}/none`, { force: true }),
      fs.remove(`${root}/none/x`, { force: true }),
      fs.remove(`${root}/a/l`),
      fs.remove(`${root}/a/b/c`, { recursive: true }),
      fs.remove(`${root}/a`, { recursive: true })
    ])
    return [entries, recursive, globbed, removal, yield* dump(fs, root)]
  }),
  "symbolic links": Effect.fnUntraced(function* (fs, root) {
    yield* fs.makeDirectory(`${root}/d/e`, { recursive: true })
    yield* fs.writeFileString(`${root}/d/f`, "f")
    yield* fs.symlink("d/f", `${root}/relative`)
    yield* fs.symlink(`${root}/d`, `${root}/absolute`)
    yield* fs.symlink("../f", `${root}/d/e/up`)
    yield* fs.symlink("nowhere", `${root}/dangling`)
    yield* fs.symlink("loop", `${root}/loop`)
    yield* fs.symlink("made", `${root}/maker`)
    for (let n = 0; n <= 42; n++) yield* fs.symlink(n === 0 ? "d" : `chain${n - 1}`, `${root}/chain${n}`)
    const seen = yield* steps<unknown>([
      fs.readFileString(`${root}/relative`),
      fs.readFileString(`${root}/absolute/f`),
      fs.readFileString(`${root}/absolute/e/up`),
      fs.readFileString(`${root}/absolute/../relative`),
      fs.readFile(`${root}/dangling`),
      fs.readFile(`${root}/loop`),
      fs.readFile(`${root}/relative/`),
      Effect.map(fs.stat(`${root}/relative`), (info) => info.type),
      Effect.map(fs.lstat(`${root}/relative`), (info) => info.type),
      Effect.map(fs.lstat(`${root}/absolute/`), (info) => info.type),
      fs.exists(`${root}/dangling`),
      fs.writeFileString(`${root}/maker`, "made through"),
      fs.writeFileString(`${root}/dangling`, "x", { flag: "wx" }),
      fs.makeDirectory(`${root}/loop`),
      fs.makeDirectory(`${root}/loop`, { recursive: true }),
      Effect.asVoid(fs.makeDirectory(`${root}/absolute/new/er`, { recursive: true })),
      Effect.map(fs.realPath(`${root}/absolute/e/up`), (path) => path.slice(root.length)),
      Effect.map(fs.realPath(`${root}/absolute/e/..`), (path) => path.slice(root.length)),
      Effect.map(fs.stat(`${root}/chain39`), (info) => info.type),
      Effect.map(fs.stat(`${root}/chain40`), (info) => info.type),
      fs.symlink("x", `${root}/relative`),
      fs.symlink("", `${root}/empty`),
      Effect.scoped(Effect.as(fs.open(`${root}/relative`, { noFollow: true }), "open")),
      Effect.scoped(Effect.as(fs.open(`${root}/d/f`, { noFollow: true }), "open"))
    ])
    return [seen, yield* dump(fs, root)]
  }),
  "hard links": Effect.fnUntraced(function* (fs, root) {
    yield* fs.writeFileString(`${root}/a`, "a")
    yield* fs.makeDirectory(`${root}/d`)
    yield* fs.link(`${root}/a`, `${root}/d/b`)
    yield* fs.writeFileString(`${root}/d/b`, "both")
    const seen = yield* steps([
      fs.link(`${root}/d`, `${root}/e`),
      fs.link(`${root}/none`, `${root}/e`),
      fs.link(`${root}/a`, `${root}/d/b`)
    ])
    const before = yield* dump(fs, root)
    yield* fs.remove(`${root}/a`)
    return [seen, before, yield* dump(fs, root)]
  }),
  rename: Effect.fnUntraced(function* (fs, root) {
    for (const name of ["full", "empty", "deep/er"])
      yield* fs.makeDirectory(`${root}/${name}`, { recursive: true })
    for (const name of ["a", "b", "full/x"]) yield* fs.writeFileString(`${root}/${name}`, name)
    yield* fs.link(`${root}/a`, `${root}/same`)
    yield* fs.symlink("b", `${root}/l`)
    const rename = (from: string, to: string) => fs.rename(`${root}/${from}`, `${root}/${to}`)
    const seen = yield* steps([
      rename("none", "x"),
      rename("a", "none/x"),
      rename("a", "full"),
      rename("empty", "a"),
      rename("empty", "full"),
      rename("full", "full/inside"),
      rename("full/x", "full"),
      rename("a", "same"),
      rename("a", "a"),
      rename("a/", "z"),
      rename("a", "b"),
      rename("l", "moved"),
      rename("deep", "empty"),
      rename("full", "empty/er/full")
    ])
    return [seen, yield* dump(fs, root)]
  })
}
