/**
 * A FileSystem that fails on purpose: every step that changes a disk is counted, and a plan says which of them fail.
 */
import { Context, type Duration, Effect, FileSystem, Layer, type PlatformError } from "effect"
import { Errno, platformError, type ErrnoCode } from "./memory/Errno.ts"

export type StepKind =
  | "write"
  | "sync"
  | "truncate"
  | "rename"
  | "remove"
  | "link"
  | "copy"
  | "create"
  | "makeDirectory"
  | "metadata"

/** One step that changes a disk. `index` counts from 0 over all kinds. */
export interface Step {
  readonly index: number
  readonly kind: StepKind
  /** The path as the program gave it; of an open file, the one that it was opened by. */
  readonly path: string
}

export type Fault =
  | {
      readonly error: ErrnoCode
      /** Of a write: this many bytes get through before it fails. */
      readonly shortWrite?: number
    }
  /** The step happens, later. */
  | { readonly delay: Duration.Duration }

/** Wraps a file system. `plan` is asked before each step, and null lets it happen. */
export const make = (
  inner: FileSystem.FileSystem,
  plan: (step: Step) => Fault | null
): FileSystem.FileSystem => {
  let count = 0
  const guard = <A, R>(
    kind: StepKind,
    method: string,
    path: string,
    step: Effect.Effect<A, PlatformError.PlatformError, R>,
    short: (bytes: number) => Effect.Effect<unknown, PlatformError.PlatformError, R> = () => Effect.void
  ): Effect.Effect<A, PlatformError.PlatformError, R> =>
    Effect.suspend(() => {
      const fault = plan({ index: count++, kind, path })
      if (fault === null) return step
      if ("delay" in fault) return Effect.andThen(Effect.sleep(fault.delay), step)
      const failure = Effect.fail(platformError(method, path, new Errno({ code: fault.error })))
      return fault.shortWrite === undefined ? failure : Effect.andThen(short(fault.shortWrite), failure)
    })

  const wrapFile = (file: FileSystem.File, path: string): FileSystem.File => ({
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    stat: file.stat,
    seek: (offset, from) => file.seek(offset, from),
    read: (buffer, options) => file.read(buffer, options),
    readAlloc: (size, options) => file.readAlloc(size, options),
    sync: guard("sync", "sync", path, file.sync),
    truncate: (length) => guard("truncate", "truncate", path, file.truncate(length)),
    write: (buffer) =>
      guard("write", "write", path, file.write(buffer), (bytes) => file.writeAll(buffer.subarray(0, bytes))),
    writeAll: (buffer) =>
      guard("write", "writeAll", path, file.writeAll(buffer), (bytes) =>
        file.writeAll(buffer.subarray(0, bytes))
      )
  })

  return FileSystem.make({
    ...inner,
    chmod: (path, mode) => guard("metadata", "chmod", path, inner.chmod(path, mode)),
    chown: (path, uid, gid) => guard("metadata", "chown", path, inner.chown(path, uid, gid)),
    utimes: (path, atime, mtime) => guard("metadata", "utime", path, inner.utimes(path, atime, mtime)),
    copy: (from, to, options) => guard("copy", "copy", to, inner.copy(from, to, options)),
    copyFile: (from, to) => guard("copy", "copyFile", to, inner.copyFile(from, to)),
    link: (from, to) => guard("link", "link", to, inner.link(from, to)),
    symlink: (target, path) => guard("link", "symlink", path, inner.symlink(target, path)),
    rename: (from, to) => guard("rename", "rename", to, inner.rename(from, to)),
    remove: (path, options) => guard("remove", "remove", path, inner.remove(path, options)),
    truncate: (path, length) => guard("truncate", "truncate", path, inner.truncate(path, length)),
    makeDirectory: (path, options) =>
      guard("makeDirectory", "makeDirectory", path, inner.makeDirectory(path, options)),
    makeTempDirectory: (options) =>
      guard("makeDirectory", "makeTempDirectory", options?.directory ?? "", inner.makeTempDirectory(options)),
    makeTempDirectoryScoped: (options) =>
      guard(
        "makeDirectory",
        "makeTempDirectoryScoped",
        options?.directory ?? "",
        inner.makeTempDirectoryScoped(options)
      ),
    makeTempFile: (options) =>
      guard("create", "makeTempFile", options?.directory ?? "", inner.makeTempFile(options)),
    makeTempFileScoped: (options) =>
      guard("create", "makeTempFileScoped", options?.directory ?? "", inner.makeTempFileScoped(options)),
    open: (path, options) => {
      const opened = Effect.map(inner.open(path, options), (file) => wrapFile(file, path))
      const creates = options?.flag !== undefined && !options.flag.startsWith("r")
      return creates ? guard("create", "open", path, opened) : opened
    },
    writeFile: (path, data, options) =>
      guard("write", "writeFile", path, inner.writeFile(path, data, options), (bytes) =>
        inner.writeFile(path, data.subarray(0, bytes), options)
      )
  })
}

/** A plan: everything from the step `failAt` on fails, of the named kinds or of all. A full disk and a dead process both
 * look so; `once` lets the later steps happen. */
export const failFrom = (options: {
  readonly failAt: number
  readonly error: ErrnoCode
  readonly kinds?: ReadonlyArray<StepKind>
  readonly shortWrite?: number
  readonly once?: boolean
}): ((step: Step) => Fault | null) => {
  let seen = 0
  return (step) => {
    if (options.kinds !== undefined && !options.kinds.includes(step.kind)) return null
    const at = seen++
    if (at < options.failAt || (options.once === true && at > options.failAt)) return null
    const short = at === options.failAt ? options.shortWrite : undefined
    return { error: options.error, ...(short === undefined ? {} : { shortWrite: short }) }
  }
}

/** The FileSystem of the context, with a plan of faults. */
export const layerFaulty = (
  plan: (step: Step) => Fault | null
): Layer.Layer<FileSystem.FileSystem, never, FileSystem.FileSystem> =>
  Layer.effectContext(
    Effect.map(FileSystem.FileSystem, (inner) => Context.make(FileSystem.FileSystem, make(inner, plan)))
  )
