/** Cases about content: handles, flags, copies, times, and who may do what. */
import { Effect, type FileSystem, Option, Stream } from "effect"
import { decode, dump, outcome, steps, text, type Case } from "./support.ts"

export const contentCases: Readonly<Record<string, Case>> = {
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
  handles: (fs, root) =>
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
          Effect.all([
            outcome(file.write(text.encode("12"))),
            outcome(file.readAlloc(3)),
            outcome(file.truncate(4))
          ])
        )
      )
    const seen: Array<unknown> = []
    for (const flag of flags) {
      for (const name of ["f", "d", `new-${flag}`])
        seen.push(flag, name, yield* outcome(open(`${root}/${name}`, flag)))
      yield* fs.writeFileString(`${root}/f`, "content")
    }
    return [seen, yield* dump(fs, root)]
  }),
  copy: Effect.fnUntraced(function* (fs, root) {
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
    const streamed = yield* Stream.runCollect(
      fs.stream(`${root}/f`, { offset: 1, bytesToRead: 4, chunkSize: 3 })
    )
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
  permissions: Effect.fnUntraced(function* (fs, root) {
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
