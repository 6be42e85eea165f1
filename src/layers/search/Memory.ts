/**
 * Search in a workspace that exists only in memory.
 */
import { Effect, Layer } from "effect"
import { Search } from "../../services/Search.ts"
import type { MemoryWorkspace } from "../workspace/Memory.ts"
import { type Entry, searchTree, type Tree } from "./Walk.ts"

const treeOf = (memory: MemoryWorkspace): Tree => ({
  entries: (directory) =>
    Effect.map(memory.nodes, (nodes) => {
      const prefix = directory === "" ? "" : `${directory}/`
      const found = new Map<string, Entry>()
      for (const [path, node] of nodes) {
        if (!path.startsWith(prefix)) continue
        const [name = "", ...below] = path.slice(prefix.length).split("/")
        if (below.length > 0 || node._tag === "Directory") found.set(name, { name, kind: "directory" })
        else if (node._tag === "File") found.set(name, { name, kind: "file" })
      }
      return [...found.values()]
    }),
  read: (path, max_bytes) =>
    Effect.map(memory.nodes, (nodes) => {
      const node = nodes.get(path)
      return node?._tag === "File" && node.bytes.length <= max_bytes ? node.bytes : undefined
    })
})

/** Searches the workspace, whatever root a query names. */
export const layerMemory = (memory: MemoryWorkspace) =>
  Layer.succeed(Search, Search.of({ search: (query) => searchTree(treeOf(memory), query) }))
