/**
 * A complete FileSystem in memory, with the semantics of a POSIX one: a program cannot tell it from a disk. Paths are
 * `/`-separated; relative ones start at the root. There is one owner; permission bits bind it unless `privileged`.
 * What was not synced is lost in a `crash`, so that the order of a program's writes can be tested.
 */
import { Context, Effect, FileSystem, Layer, PlatformError, Stream } from "effect"
import { attempt, Errno, raise } from "./memory/Errno.ts"
import { makeOpen } from "./memory/Handle.ts"
import { infoOf } from "./memory/Info.ts"
import * as Names from "./memory/Names.ts"
import {
  contentOf,
  demand,
  directoryAt,
  fileAt,
  locate,
  loseUnsynced,
  makeTree,
  nodeAt,
  pathOf,
  resize,
  type Tree
} from "./memory/Tree.ts"

export interface MemoryOptions {
  readonly umask?: number
  /** Permission bits do not bind, as for root. */
  readonly privileged?: boolean
}

/** The disk below an in-memory FileSystem. */
export class Disk extends Context.Service<
  Disk,
  {
    /** Power loss: content that no `File.sync` covered is gone. Names that no sync of their directory covered are gone
     * too (`"lost"`, the default), or all got through (`"kept"`): a real disk may do either. */
    readonly crash: (options?: { readonly names?: "lost" | "kept" }) => Effect.Effect<void>
  }
>()("looplane/layers/fs/Memory/Disk") {}

const isDirectory = (tree: Tree, path: string): boolean => {
  try {
    return locate(tree, path, true).node?.kind === "Directory"
  } catch (error) {
    if (error instanceof Errno) return false
    throw error
  }
}

/** Symbolic links to directories are entered, as the platform does, until there are too many of them in a path. */
const readNames = (tree: Tree, path: string, recursive: boolean, prefix = ""): Array<string> => {
  const directory = directoryAt(tree, path)
  demand(tree, directory, 4)
  const names: Array<string> = []
  for (const name of directory.entries.keys()) {
    names.push(prefix + name)
    if (recursive && isDirectory(tree, `${path}/${name}`))
      names.push(...readNames(tree, `${path}/${name}`, true, `${prefix}${name}/`))
  }
  return names
}

/** A fresh, empty file system with a `/tmp`, and its disk. */
export const make = (
  options: MemoryOptions = {}
): { readonly fileSystem: FileSystem.FileSystem; readonly disk: Disk["Service"] } => {
  const tree = makeTree({ umask: options.umask ?? 0o022, privileged: options.privileged ?? false })
  Names.makeDirectory(tree, "/tmp", { recursive: false, mode: 0o1777 }, 0)
  let descriptor = 2
  let temporary = 0
  const open = makeOpen(tree, () => ++descriptor)

  const makeTempDirectory: FileSystem.FileSystem["makeTempDirectory"] = (place) =>
    attempt("makeTempDirectory", place?.directory ?? "/tmp", (now) => {
      for (;;) {
        const suffix = (++temporary).toString(36).padStart(6, "0")
        const path = `${place?.directory ?? "/tmp"}/${place?.prefix ?? ""}${suffix}`
        if (locate(tree, path, false).node !== undefined) continue
        Names.makeDirectory(tree, path, { recursive: false, mode: 0o700 }, now)
        return path
      }
    })
  const makeTempFile: FileSystem.FileSystem["makeTempFile"] = Effect.fnUntraced(function* (place) {
    const directory = yield* makeTempDirectory(place)
    const path = `${directory}/file${place?.suffix ?? ""}`
    yield* writeFile(path, new Uint8Array())
    return path
  })
  const remove: FileSystem.FileSystem["remove"] = (path, settings) =>
    attempt("remove", path, (now) =>
      Names.remove(
        tree,
        path,
        { recursive: settings?.recursive ?? false, force: settings?.force ?? false },
        now
      )
    )
  const writeFile: FileSystem.FileSystem["writeFile"] = (path, data, settings) =>
    Effect.scoped(
      Effect.flatMap(open(path, { flag: settings?.flag ?? "w", mode: settings?.mode }), (file) =>
        file.writeAll(data)
      )
    )

  const fileSystem = FileSystem.make({
    access: (path, wanted) =>
      attempt("access", path, () =>
        demand(tree, nodeAt(tree, path, true), (wanted?.readable ? 4 : 0) | (wanted?.writable ? 2 : 0))
      ),
    chmod: (path, mode) =>
      attempt("chmod", path, () => {
        nodeAt(tree, path, true).mode = mode & 0o7777
      }),
    chown: (path) =>
      attempt("chown", path, () => {
        nodeAt(tree, path, true)
        if (!tree.privileged) raise("EPERM")
      }),
    copy: (from, to, settings) =>
      attempt("copy", from, (now) =>
        Names.copy(
          tree,
          from,
          to,
          {
            overwrite: settings?.overwrite ?? false,
            preserveTimestamps: settings?.preserveTimestamps ?? false
          },
          now
        )
      ),
    copyFile: (from, to) => attempt("copyFile", from, (now) => Names.copyFile(tree, from, to, now)),
    link: (from, to) => attempt("link", from, (now) => Names.link(tree, from, to, now)),
    lstat: (path) => attempt("lstat", path, () => infoOf(nodeAt(tree, path, false))),
    makeDirectory: (path, settings) =>
      attempt("makeDirectory", path, (now) =>
        Names.makeDirectory(
          tree,
          path,
          { recursive: settings?.recursive ?? false, mode: settings?.mode ?? 0o777 },
          now
        )
      ),
    makeTempDirectory,
    makeTempDirectoryScoped: (place) =>
      Effect.acquireRelease(makeTempDirectory(place), (path) =>
        Effect.orDie(remove(path, { recursive: true, force: true }))
      ),
    makeTempFile,
    makeTempFileScoped: (place) =>
      Effect.acquireRelease(makeTempFile(place), (path) =>
        Effect.orDie(remove(path.slice(0, path.lastIndexOf("/")), { recursive: true, force: true }))
      ),
    open,
    readDirectory: (path, settings) =>
      attempt("readDirectory", path, () => readNames(tree, path, settings?.recursive ?? false)),
    readDirectoryEntries: (path) =>
      attempt("readDirectoryEntries", path, () => {
        const directory = directoryAt(tree, path)
        demand(tree, directory, 4)
        return [...directory.entries].map(([name, node]) => ({ name, type: node.kind }))
      }),
    readFile: (path) =>
      attempt("readFile", path, () => {
        const file = fileAt(tree, path)
        demand(tree, file, 4)
        return contentOf(file)
      }),
    readLink: (path) =>
      attempt("readLink", path, () => {
        const node = nodeAt(tree, path, false)
        return node.kind === "SymbolicLink" ? node.target : raise("EINVAL")
      }),
    realPath: (path) =>
      attempt("realPath", path, () => {
        const place = locate(tree, path, true)
        return place.node === undefined ? raise("ENOENT") : pathOf(place)
      }),
    remove,
    rename: (from, to) => attempt("rename", from, (now) => Names.rename(tree, from, to, now)),
    stat: (path) => attempt("stat", path, () => infoOf(nodeAt(tree, path, true))),
    symlink: (target, path) => attempt("symlink", target, (now) => Names.symlink(tree, target, path, now)),
    truncate: (path, length) =>
      attempt("truncate", path, (now) => {
        const file = fileAt(tree, path)
        demand(tree, file, 2)
        resize(file, Math.max(0, length ?? 0), now)
      }),
    utimes: (path, atime, mtime) =>
      attempt("utime", path, () => {
        const millis = (time: Date | number) => (typeof time === "number" ? time * 1000 : time.getTime())
        Object.assign(nodeAt(tree, path, true), { atime: millis(atime), mtime: millis(mtime) })
      }),
    watch: () =>
      Stream.fail(
        PlatformError.badArgument({
          module: "FileSystem",
          method: "watch",
          description: "a file system in memory cannot be watched"
        })
      ),
    writeFile
  })
  return {
    fileSystem,
    disk: Disk.of({ crash: (settings) => Effect.sync(() => loseUnsynced(tree, settings?.names ?? "lost")) })
  }
}

/** A fresh file system for each time that the layer is built. */
export const layer = (options: MemoryOptions = {}): Layer.Layer<FileSystem.FileSystem | Disk> =>
  Layer.effectContext(
    Effect.sync(() => {
      const { disk, fileSystem } = make(options)
      return Context.make(FileSystem.FileSystem, fileSystem).pipe(Context.add(Disk, disk))
    })
  )
