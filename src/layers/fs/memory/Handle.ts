/**
 * Open files of the in-memory file system.
 */
import { Effect, FileSystem, Option, PlatformError } from "effect"
import { attempt, raise } from "./Errno.ts"
import { infoOf } from "./Info.ts"
import { demand, locate, newFile, attach, resize, syncNode, writeAt, type Node, type Tree } from "./Tree.ts"

interface Access {
  readonly read: boolean
  readonly write: boolean
  readonly append: boolean
  readonly create: boolean
  readonly exclusive: boolean
  readonly truncate: boolean
}

const accessOf = (flag: FileSystem.OpenFlag): Access => {
  const [kind] = flag
  return {
    read: kind === "r" || flag.includes("+"),
    write: kind !== "r" || flag.includes("+"),
    append: kind === "a",
    create: kind !== "r",
    exclusive: flag.includes("x"),
    truncate: kind === "w"
  }
}

/** Finds, makes or empties what `open` names. */
const openNode = (
  tree: Tree,
  path: string,
  access: Access,
  options: { readonly mode: number; readonly noFollow: boolean },
  now: number
): Node => {
  const place = locate(tree, path, !access.exclusive && !options.noFollow)
  const { node } = place
  if (node === undefined) {
    if (!access.create) return raise("ENOENT")
    if (place.slash) return raise("EISDIR")
    const made = newFile(tree, options.mode, now)
    attach(tree, place, made, now)
    return made
  }
  if (access.create && access.exclusive) return raise("EEXIST")
  if (node.kind === "SymbolicLink") return raise("ELOOP")
  if (node.kind === "Directory" && (access.write || access.create)) return raise("EISDIR")
  demand(tree, node, (access.read ? 4 : 0) | (access.write ? 2 : 0))
  if (access.truncate && node.kind === "File" && node.size > 0) resize(node, 0, now)
  return node
}

const badArgument = (method: string, description: string) =>
  Effect.fail(PlatformError.badArgument({ module: "FileSystem", method, description }))

class Handle implements FileSystem.File {
  readonly [FileSystem.FileTypeId]: typeof FileSystem.FileTypeId = FileSystem.FileTypeId
  private readonly node: Node
  private readonly access: Access
  private readonly fd: number
  private position = 0n
  private open = true

  constructor(node: Node, access: Access, fd: number) {
    this.node = node
    this.access = access
    this.fd = fd
  }

  close(): void {
    this.open = false
  }

  private attempt<A>(
    method: string,
    step: (now: number) => A
  ): Effect.Effect<A, PlatformError.PlatformError> {
    return attempt(method, this.fd, (now) => (this.open ? step(now) : raise("EBADF")))
  }

  get stat() {
    return this.attempt("stat", () => infoOf(this.node))
  }

  get sync() {
    return this.attempt("sync", () => syncNode(this.node))
  }

  seek(offset: bigint, from: FileSystem.SeekMode) {
    return Effect.suspend(() => {
      const position = from === "start" ? offset : this.position + offset
      if (position < 0n) return badArgument("seek", "Cannot seek before the start of the file")
      this.position = position
      return Effect.succeed(position)
    })
  }

  private readInto(method: string, buffer: Uint8Array, explicit: bigint | undefined) {
    if (explicit !== undefined && explicit < 0n)
      return badArgument(method, "Cannot read before the start of the file")
    return this.attempt(method, () => {
      if (!this.access.read) return raise("EBADF")
      if (this.node.kind !== "File") return raise("EISDIR")
      const start = Math.min(Number(explicit ?? this.position), this.node.size)
      const end = Math.min(start + buffer.length, this.node.size)
      buffer.set(this.node.bytes.subarray(start, end))
      if (explicit === undefined) this.position += BigInt(end - start)
      return end - start
    })
  }

  read(buffer: Uint8Array, options?: FileSystem.File.ReadOptions) {
    return Effect.suspend(() => this.readInto("read", buffer, options?.position))
  }

  readAlloc(size: number, options?: FileSystem.File.ReadOptions) {
    return Effect.suspend(() => {
      if (!Number.isInteger(size) || size < 0)
        return badArgument("readAlloc", "size must be a non-negative integer")
      const left =
        this.node.kind === "File" ? this.node.size - Number(options?.position ?? this.position) : size
      const buffer = new Uint8Array(Math.min(size, Math.max(left, 0)))
      return Effect.map(this.readInto("readAlloc", buffer, options?.position), (count) =>
        count === 0 ? Option.none() : Option.some(buffer)
      )
    })
  }

  truncate(length?: number) {
    return this.attempt("truncate", (now) => {
      const size = length ?? 0
      if (!this.access.write || size < 0 || this.node.kind !== "File") return raise("EINVAL")
      resize(this.node, size, now)
      if (!this.access.append && this.position > size) this.position = BigInt(size)
    })
  }

  private put(method: string, buffer: Uint8Array) {
    return this.attempt(method, (now) => {
      if (!this.access.write || this.node.kind !== "File") return raise("EBADF")
      if (buffer.length > 0)
        writeAt(this.node, this.access.append ? this.node.size : Number(this.position), buffer, now)
      if (!this.access.append) this.position += BigInt(buffer.length)
      return buffer.length
    })
  }

  write(buffer: Uint8Array) {
    return this.put("write", buffer)
  }

  writeAll(buffer: Uint8Array) {
    return Effect.asVoid(this.put("writeAll", buffer))
  }
}

/** `open` of a tree; `descriptors` hands out the numbers that errors of open files name. */
export const makeOpen =
  (tree: Tree, descriptors: () => number): FileSystem.FileSystem["open"] =>
  (path, options) =>
    Effect.acquireRelease(
      attempt("open", path, (now) => {
        const access = accessOf(options?.flag ?? "r")
        const settings = { mode: options?.mode ?? 0o666, noFollow: options?.noFollow ?? false }
        return new Handle(openNode(tree, path, access, settings, now), access, descriptors())
      }),
      (handle) => Effect.sync(() => handle.close())
    )
