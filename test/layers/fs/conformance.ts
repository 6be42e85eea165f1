/**
 * What a program may expect of a FileSystem, asked of any implementation: each case works in an empty directory and
 * returns what a program can see. The real one decides what is right.
 */
import { Effect, FileSystem, Option, PlatformError, Result, Stream } from "effect"

const text = new TextEncoder()
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** A failure as a program tells it from others. */
const failure = (error: PlatformError.PlatformError): string => {
  const { cause, _tag } = error.reason
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : "none"
  return `${_tag} ${code}`
}
const outcome = <A, R>(effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.result(effect).pipe(
    Effect.map((result) => (Result.isSuccess(result) ? { ok: result.success } : { failed: failure(result.failure) }))
  )

type Case = (
  fs: FileSystem.FileSystem,
  root: string
) => Effect.Effect<unknown, PlatformError.PlatformError>

/** A tree as data, so that two file systems can be compared. */
export const dump = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, root: string) {
  const seen: Record<string, unknown> = {}
  const pending = [root]
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    for (const { name } of yield* fs.readDirectoryEntries(at)) {
      const path = `${at}/${name}`
      const info = yield* fs.lstat(path)
      const mode = (info.mode & 0o7777).toString(8)
      const key = path.slice(root.length)
      if (info.type === "File") {
        seen[key] = [mode, decode(yield* fs.readFile(path)), Number(Option.getOrThrow(info.nlink))]
      } else if (info.type === "SymbolicLink") {
        seen[key] = ["->", (yield* fs.readLink(path)).replaceAll(root, "ROOT")]
      } else {
        seen[key] = [mode, info.type]
        pending.push(path)
      }
    }
  }
  return seen
})

export const steps = <A>(list: ReadonlyArray<Effect.Effect<A, PlatformError.PlatformError>>) =>
  Effect.forEach(list, outcome)

export const cases: Readonly<Record<string, Case>> = {
  "write, read, overwrite and modes": Effect.fnUntraced(function* (fs, root) {
    yield* fs.writeFileString(`${root}/a`, "one")
    yield* fs.writeFileString(`${root}/a`, "two!", { mode: 0o600 })
    yield* fs.writeFileString(`${root}/b`, "b", { mode: 0o600 })
    yield* fs.writeFileString(`${root}/a`, "+", { flag: "a" })
    yield* fs.chmod(`${root}/b`, 0o444)
    return [
      yield* dump(fs, root),
      yield* steps([
        fs.writeFileString(`${root}/a`, "no", { flag: "wx" }),
        fs.writeFileString(`${root}/new`, "x", { flag: "ax" }),
        fs.writeFileString(`${root}/missing`, "x", { flag: "r+" })
      ]),
      yield* fs.exists(`${root}/a`),
      yield* fs.exists(`${root}/c`)
    ]
  }),
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
  "directories": Effect.fnUntraced(function* (fs, root) {
    yield* fs.makeDirectory(`${root}/a/b/c`, { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(`${root}/a/b/f`, "f")
    yield* fs.symlink(`${root}/a/b`, `${root}/a/l`)
    const entries = (yield* fs.readDirectoryEntries(`${root}/a/b`)).map((e) => `${e.name}:${e.type}`).sort()
    const recursive = (yield* fs.readDirectory(root, { recursive: true })).sort()
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
  "rename": Effect.fnUntraced(function* (fs, root) {
    for (const name of ["full", "empty", "deep/er"]) yield* fs.makeDirectory(`${root}/${name}`, { recursive: true })
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
  }),
  "handles": (fs, root) =>
    Effect.scoped(
      Effect.gen(function* () {
        const w = yield* fs.open(`${root}/f`, { flag: "w+", mode: 0o600 })
        yield* w.writeAll(text.encode("0123456789"))
        yield* w.seek(2n, "start")
        const two = decode(Option.getOrThrow(yield* w.readAlloc(3)))
        const at = yield* w.seek(-1n, "current")
        yield* w.write(text.encode("XX"))
        const explicit = new Uint8Array(4)
        const read = yield* w.read(explicit, { position: 7n })
        yield* w.truncate(5)
        yield* w.seek(8n, "start")
        yield* w.writeAll(text.encode("!"))
        yield* w.sync
        const end = yield* w.readAlloc(1)
        const info = yield* w.stat
        const a = yield* fs.open(`${root}/f`, { flag: "a+" })
        yield* a.writeAll(text.encode("end"))
        const appended = decode(Option.getOrThrow(yield* a.readAlloc(100)))
        const r = yield* fs.open(`${root}/f`)
        const only = yield* fs.open(`${root}/f`, { flag: "a" })
        const directory = yield* fs.open(root)
        yield* directory.sync
        yield* fs.remove(`${root}/f`)
        yield* w.seek(0n, "start")
        return [
          [two, at, read, decode(explicit), Option.isNone(end), Number(info.size), appended],
          yield* steps<unknown>([
            w.seek(-1n, "start"),
            r.write(text.encode("x")),
            r.truncate(0),
            only.readAlloc(1),
            directory.readAlloc(1),
            w.readAlloc(-1),
            w.read(new Uint8Array(1), { position: -1n }),
            Effect.map(w.readAlloc(20), Option.map(decode)),
            Effect.map(w.stat, (stat) => Number(Option.getOrThrow(stat.nlink)))
          ]),
          yield* dump(fs, root)
        ]
      })
    ),
  "open flags": Effect.fnUntraced(function* (fs, root) {
    yield* fs.writeFileString(`${root}/f`, "content")
    yield* fs.makeDirectory(`${root}/d`)
    const flags = ["r", "r+", "w", "wx", "w+", "wx+", "a", "ax", "a+", "ax+"] as const
    const open = (path: string, flag: FileSystem.OpenFlag) =>
      Effect.scoped(
        Effect.flatMap(fs.open(path, { flag }), (file) =>
          Effect.all([outcome(file.write(text.encode("12"))), outcome(file.readAlloc(3)), outcome(file.truncate(4))])
        )
      )
    const seen: Array<unknown> = []
    for (const flag of flags) {
      for (const name of ["f", "d", `new-${flag}`]) seen.push(flag, name, yield* outcome(open(`${root}/${name}`, flag)))
      yield* fs.writeFileString(`${root}/f`, "content")
    }
    return [seen, yield* dump(fs, root)]
  }),
  "copy": Effect.fnUntraced(function* (fs, root) {
    yield* fs.makeDirectory(`${root}/from/sub`, { recursive: true })
    yield* fs.writeFileString(`${root}/from/a`, "a", { mode: 0o640 })
    yield* fs.writeFileString(`${root}/from/sub/b`, "b")
    yield* fs.symlink("../a", `${root}/from/sub/l`)
    yield* fs.makeDirectory(`${root}/there`)
    yield* fs.writeFileString(`${root}/there/a`, "mine")
    const seen = yield* steps([
      fs.copy(`${root}/from`, `${root}/to`),
      fs.copy(`${root}/from`, `${root}/there`),
      fs.copy(`${root}/from/a`, `${root}/one`),
      fs.copy(`${root}/from/sub/b`, `${root}/one`),
      fs.copy(`${root}/from/sub/b`, `${root}/one`, { overwrite: true }),
      fs.copy(`${root}/none`, `${root}/x`),
      fs.copy(`${root}/from`, `${root}/one`),
      fs.copy(`${root}/one`, `${root}/from`),
      fs.copy(`${root}/from`, `${root}/from/inside`),
      fs.copyFile(`${root}/from/a`, `${root}/copied`),
      fs.copyFile(`${root}/from/sub/b`, `${root}/copied`),
      fs.copyFile(`${root}/from/sub/l`, `${root}/through`),
      fs.copyFile(`${root}/none`, `${root}/x`),
      fs.copyFile(`${root}/from/a`, `${root}/there`),
      fs.copyFile(`${root}/from`, `${root}/x`)
    ])
    return [seen, yield* dump(fs, root)]
  }),
  "times, truncate, streams and sinks": Effect.fnUntraced(function* (fs, root) {
    yield* fs.writeFileString(`${root}/f`, "0123456789")
    yield* fs.utimes(`${root}/f`, 10, new Date(20_000))
    const info = yield* fs.stat(`${root}/f`)
    yield* fs.truncate(`${root}/f`, 12)
    const grown = (yield* fs.readFile(`${root}/f`)).length
    yield* fs.truncate(`${root}/f`, 6)
    const streamed = yield* Stream.runCollect(fs.stream(`${root}/f`, { offset: 1, bytesToRead: 4, chunkSize: 3 }))
    yield* Stream.run(Stream.make(text.encode("to"), text.encode("day")), fs.sink(`${root}/sunk`))
    return [
      Option.getOrThrow(info.mtime).getTime(),
      Option.getOrThrow(info.atime).getTime(),
      grown,
      streamed.map(decode),
      yield* dump(fs, root)
    ]
  }),
  "temporary places": (fs, root) =>
    Effect.gen(function* () {
      const kept = yield* fs.makeTempDirectory({ directory: root, prefix: "kept-" })
      const file = yield* fs.makeTempFile({ directory: root, suffix: ".txt" })
      const inside = yield* Effect.scoped(
        Effect.gen(function* () {
          const scoped = yield* fs.makeTempDirectoryScoped({ directory: root })
          const scopedFile = yield* fs.makeTempFileScoped({ directory: root })
          return [yield* fs.exists(scoped), yield* fs.exists(scopedFile)]
        })
      )
      return [
        kept.startsWith(`${root}/kept-`),
        ((yield* fs.stat(kept)).mode & 0o777).toString(8),
        file.endsWith(".txt"),
        inside,
        (yield* fs.readDirectory(root)).length,
        yield* outcome(fs.makeTempDirectory({ directory: `${root}/none` }))
      ]
    })
}

/** Only where permission bits bind: not as root. */
export const permissionCases: Readonly<Record<string, Case>> = {
  "permissions": Effect.fnUntraced(function* (fs, root) {
    yield* fs.makeDirectory(`${root}/d`)
    yield* fs.writeFileString(`${root}/d/f`, "f")
    yield* fs.chmod(`${root}/d/f`, 0o000)
    const file = yield* steps<unknown>([
      fs.readFile(`${root}/d/f`),
      fs.writeFileString(`${root}/d/f`, "x"),
      fs.access(`${root}/d/f`, { readable: true }),
      fs.access(`${root}/d/f`)
    ])
    yield* fs.chmod(`${root}/d`, 0o500)
    const readOnly = yield* steps<unknown>([
      fs.writeFileString(`${root}/d/new`, "x"),
      fs.makeDirectory(`${root}/d/new`),
      fs.symlink("x", `${root}/d/new`),
      fs.rename(`${root}/d/f`, `${root}/g`),
      fs.remove(`${root}/d/f`),
      fs.readDirectory(`${root}/d`)
    ])
    yield* fs.chmod(`${root}/d`, 0o200)
    const closed = yield* steps<unknown>([fs.stat(`${root}/d/f`), fs.readDirectory(`${root}/d`)])
    yield* fs.chmod(`${root}/d`, 0o700)
    return [file, readOnly, closed]
  })
}
