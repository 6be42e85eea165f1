/** Tools over a workspace in memory. */
import { Effect, Layer, Ref } from "effect"
import { layerMemory } from "../../../src/layers/search/Memory.ts"
import { layer } from "../../../src/layers/tools/Tools.ts"
import { makeMemoryWorkspace, type MemoryFile } from "../../../src/layers/workspace/Memory.ts"
import type { FileNode } from "../../../src/domain/patch/FileSet.ts"
import type { CheckOutcome } from "../../../src/domain/Result.ts"
import { defaultLimits, type Limits } from "../../../src/domain/Task.ts"
import { Tools, type EditedFiles, type ToolContext } from "../../../src/services/Tools.ts"

export interface Options {
  readonly limits?: Partial<Limits>
  readonly allowed_paths?: ReadonlyArray<string>
  readonly protected_paths?: ReadonlyArray<string>
  readonly checks?: Readonly<Record<string, CheckOutcome>>
}

/** A tree as a test speaks of it: paths to text, with what is no plain text file spelled out. */
export const show = (nodes: ReadonlyMap<string, FileNode>): Record<string, string> =>
  Object.fromEntries(
    [...nodes]
      .filter(([, node]) => node._tag !== "Directory")
      .map(([path, node]) => [path, shown(node)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
  )

const shown = (node: FileNode): string => {
  if (node._tag === "Symlink") return `-> ${node.target}`
  if (node._tag !== "File") return node._tag
  return `${node.executable ? "+x " : ""}${Buffer.from(node.bytes).toString("latin1")}`
}

/** A workspace with the tools of a run in it. */
export const open = Effect.fnUntraced(function* (
  files: Readonly<Record<string, MemoryFile>>,
  options: Options = {}
) {
  const memory = yield* makeMemoryWorkspace(files)
  const checks = options.checks ?? {}
  const context: ToolContext = {
    edited: yield* Ref.make<EditedFiles>(new Map()),
    workspace: memory.workspace,
    limits: { ...defaultLimits, ...options.limits },
    allowed_paths: options.allowed_paths ?? ["**"],
    protected_paths: options.protected_paths ?? [],
    run_check: (name) => Effect.succeed(checks[name] ?? null)
  }
  const toolset = yield* Tools.use((tools) =>
    Effect.sync(() => tools.toolset({ check_names: Object.keys(checks) }))
  ).pipe(Effect.provide(Layer.provide(layer, layerMemory(memory))))
  const toolNamed = (name: string) =>
    Effect.fromNullishOr(toolset.find((tool) => tool.definition.name === name)).pipe(Effect.orDie)
  return {
    memory,
    toolset,
    call: (name: string, args: Readonly<Record<string, unknown>>) =>
      Effect.flatMap(toolNamed(name), (tool) => tool.call(args, context)),
    preview: (name: string, args: Readonly<Record<string, unknown>>) =>
      Effect.map(toolNamed(name), (tool) => tool.preview(args)),
    tree: Effect.map(memory.nodes, show)
  }
})
