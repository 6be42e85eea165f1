/**
 * What `stat` says of a node.
 */
import { ByteSize, Option, type FileSystem } from "effect"
import type { Node } from "./Tree.ts"

const typeBits = { File: 0o100000, Directory: 0o040000, SymbolicLink: 0o120000 } as const
const blockSize = 4096

const sizeOf = (node: Node): number => {
  switch (node.kind) {
    case "File":
      return node.size
    case "Directory":
      return blockSize
    case "SymbolicLink":
      return new TextEncoder().encode(node.target).length
  }
}

export const infoOf = (node: Node): FileSystem.File.Info => ({
  type: node.kind,
  mtime: Option.some(new Date(node.mtime)),
  atime: Option.some(new Date(node.atime)),
  birthtime: Option.some(new Date(node.birthtime)),
  dev: 1n,
  ino: Option.some(BigInt(node.ino)),
  mode: typeBits[node.kind] | node.mode,
  nlink: Option.some(BigInt(node.links)),
  uid: Option.some(1000),
  gid: Option.some(1000),
  rdev: Option.some(0n),
  size: ByteSize.bytes(sizeOf(node)),
  blksize: Option.some(ByteSize.bytes(blockSize)),
  blocks: Option.some(BigInt(Math.ceil(sizeOf(node) / 512)))
})
