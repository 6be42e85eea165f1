/**
 * A workspace that exists only in memory, with the semantics of the real one: containment, all-or-nothing edits, trees
 * that can be restored. For tests and for people who embed looplane and want to test against it.
 */
import { createHash } from "node:crypto"
import { Effect, TextDiff } from "effect"
import { CommitId, TreeId } from "../../domain/Ids.ts"
import { changeOf, type FileChange, type FileNode } from "../../domain/patch/FileSet.ts"
import { isGitSegment, parentsOf, quotePath } from "../../domain/WorkspacePath.ts"
import { type OpenWorkspace, WorkspaceError, type Workspaces } from "../../services/Workspace.ts"
import { byBytes } from "../git/GitBinary.ts"

/** A file's text or bytes, or a node of another kind. */
export type MemoryFile = string | Uint8Array | FileNode

export interface MemoryWorkspace {
  readonly workspace: OpenWorkspace
  /** Hands it out as `Workspaces.open` does: at the base, or put back to a tree that it had. */
  readonly open: (resume: Resume | undefined) => Effect.Effect<OpenWorkspace, WorkspaceError>
  /** What is there now, without the directories that its paths imply. */
  readonly nodes: Effect.Effect<ReadonlyMap<string, FileNode>>
  /** What a tree holds; empty for one that never was. */
  readonly nodesOf: (tree: TreeId) => ReadonlyMap<string, FileNode>
  /** Changes a path behind the workspace's back, as a command would: `scan` finds it. Undefined removes it. */
  readonly put: (path: string, file: MemoryFile | undefined) => Effect.Effect<void>
}

type Resume = NonNullable<Parameters<Workspaces["Service"]["open"]>[0]["resume"]>
type Nodes = ReadonlyMap<string, FileNode>
type Reason = WorkspaceError["reason"]

const maxLinks = 40
const fail = (reason: Reason, message: string): WorkspaceError => new WorkspaceError({ reason, message })

const toNode = (file: MemoryFile): FileNode => {
  if (typeof file === "string")
    return { _tag: "File", bytes: new TextEncoder().encode(file), executable: false }
  return file instanceof Uint8Array ? { _tag: "File", bytes: file, executable: false } : file
}

const nodeAt = (nodes: Nodes, path: string): FileNode | undefined => {
  const node = path === "." ? { _tag: "Directory" as const } : nodes.get(path)
  if (node !== undefined) return node
  for (const other of nodes.keys()) if (other.startsWith(`${path}/`)) return { _tag: "Directory" }
  return undefined
}

const sorted = (nodes: Nodes): ReadonlyArray<readonly [string, FileNode]> =>
  [...nodes].toSorted(([left], [right]) => byBytes(left, right))

/** Where a path leads with its symlinks followed, the last one too when `final`; "." for the root. */
const follow = (
  root: string,
  nodes: Nodes,
  path: string,
  final: boolean
): Effect.Effect<string, WorkspaceError> => {
  const refuse = (why: string) => Effect.fail(fail("refused_path", `${quotePath(path)} ${why}`))
  let links = 0
  const todo = path.split("/")
  let done: Array<string> = []
  for (let name = todo.shift(); name !== undefined; name = todo.shift()) {
    if (name === "" || name === ".") continue
    if (name === "..") {
      if (done.pop() === undefined) return refuse("leads out of the workspace")
      continue
    }
    if (isGitSegment(name)) return refuse("leads into a git directory")
    done.push(name)
    const node = nodes.get(done.join("/"))
    if (node?._tag !== "Symlink" || (todo.length === 0 && !final)) continue
    if (++links > maxLinks) return refuse("leads through too many symlinks")
    const inside = node.target.startsWith(`${root}/`)
    if (node.target.startsWith("/") && !inside) return refuse("leads out of the workspace")
    if (inside) done = []
    else done.pop()
    todo.unshift(...node.target.slice(inside ? root.length : 0).split("/"))
  }
  return Effect.succeed(done.length === 0 ? "." : done.join("/"))
}

const treeOf = (nodes: Nodes): TreeId => {
  const hash = createHash("sha1")
  for (const [path, node] of sorted(nodes)) {
    if (node._tag === "File")
      hash.update(`${path}\0${node.executable}\0${node.bytes.length}\0`).update(node.bytes)
    if (node._tag === "Symlink") hash.update(`${path}\0->\0${node.target}\0`)
  }
  return TreeId.make(hash.digest("hex"))
}

/** Why a change cannot be made of what is there now, or null. */
const refusal = (node: FileNode | undefined, { _tag, path }: FileChange): WorkspaceError | null => {
  if (path === ".") return fail("refused_path", `${quotePath(path)} is the workspace itself, not a file`)
  if (_tag === "Delete") {
    if (node === undefined) return fail("not_found", `${quotePath(path)} does not exist`)
    return node._tag === "File" || node._tag === "Symlink"
      ? null
      : fail("not_a_file", `${quotePath(path)} is not a file`)
  }
  return node === undefined || node._tag === "File" || node._tag === "Directory"
    ? null
    : fail("not_a_file", `${quotePath(path)} is neither a file nor a directory`)
}

/** Every change made, deletions first, or why one of them cannot be. Paths are free of symlinks. */
const changed = (nodes: Nodes, changes: ReadonlyArray<FileChange>): Nodes | WorkspaceError => {
  const next = new Map(nodes)
  for (const change of changes) if (change._tag === "Delete") next.delete(change.path)
  for (const change of changes) {
    if (change._tag === "Delete") continue
    const { bytes, executable, path } = change
    for (const parent of parentsOf(path)) {
      const node = next.get(parent)
      if (node !== undefined && node._tag !== "Directory")
        return fail("not_found", `${quotePath(path)} is below something that is not a directory`)
    }
    if (nodeAt(next, path)?._tag === "Directory")
      return fail("not_a_file", `${quotePath(path)} is a directory`)
    next.set(path, { _tag: "File", bytes, executable })
  }
  return next
}

const modeOf = (node: FileNode): string =>
  node._tag === "Symlink" ? "120000" : node._tag === "File" && node.executable ? "100755" : "100644"
const bytesOf = (node: FileNode | undefined): Uint8Array =>
  node?._tag === "File" ? node.bytes : new TextEncoder().encode(node?._tag === "Symlink" ? node.target : "")
const sameNode = (left: FileNode | undefined, right: FileNode | undefined): boolean =>
  left?._tag === right?._tag &&
  (left === undefined || right === undefined || modeOf(left) === modeOf(right)) &&
  Buffer.compare(bytesOf(left), bytesOf(right)) === 0

const diffOf = (path: string, before: FileNode | undefined, after: FileNode | undefined): string => {
  const head = [`diff --git a/${path} b/${path}`]
  if (before === undefined && after !== undefined) head.push(`new file mode ${modeOf(after)}`)
  else if (after === undefined && before !== undefined) head.push(`deleted file mode ${modeOf(before)}`)
  else if (before !== undefined && after !== undefined && modeOf(before) !== modeOf(after)) {
    head.push(`old mode ${modeOf(before)}`, `new mode ${modeOf(after)}`)
  }
  const [old, now] = [bytesOf(before), bytesOf(after)]
  if (old.includes(0) || now.includes(0))
    return [...head, `Binary files a/${path} and b/${path} differ`, ""].join("\n")
  const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
  const body = TextDiff.unified(TextDiff.lines(decode(old), decode(now)), {
    fromFile: before === undefined ? "/dev/null" : `a/${path}`,
    toFile: after === undefined ? "/dev/null" : `b/${path}`
  })
  return `${head.join("\n")}\n${body}`
}

/** Opens a workspace over files by path. Directories that hold nothing are given as `Directory` nodes. */
export const makeMemoryWorkspace = (
  files: Readonly<Record<string, MemoryFile>>,
  options: { readonly root?: string } = {}
): Effect.Effect<MemoryWorkspace> =>
  Effect.sync(() => {
    const root = options.root ?? "/workspace"
    const base: Nodes = new Map(Object.entries(files).map(([path, file]) => [path, toNode(file)] as const))
    const baseTree = treeOf(base)
    const snapshots = new Map<TreeId, Nodes>([[baseTree, base]])
    let nodes = base
    let recorded = baseTree

    const record = (): TreeId => {
      recorded = treeOf(nodes)
      snapshots.set(recorded, nodes)
      return recorded
    }
    const snapshot = (tree: TreeId): Effect.Effect<Nodes, WorkspaceError> =>
      Effect.suspend(() => {
        const known = snapshots.get(tree)
        return known === undefined
          ? Effect.fail(fail("failed", `there is no tree ${tree}`))
          : Effect.succeed(known)
      })

    const diff: OpenWorkspace["diff"] = Effect.fnUntraced(function* (tree) {
      const after = yield* snapshot(tree)
      const paths = [...new Set([...base.keys(), ...after.keys()])]
        .filter((path) => !sameNode(base.get(path), after.get(path)))
        .toSorted(byBytes)
      return {
        patch: new TextEncoder().encode(
          paths.map((path) => diffOf(path, base.get(path), after.get(path))).join("")
        ),
        files: paths.map((path) => ({ path, change: changeOf(base.get(path), after.get(path)) }))
      }
    })

    const workspace: OpenWorkspace = {
      root,
      found: null,
      prepared: {
        base_sha: CommitId.make(createHash("sha1").update(baseTree).digest("hex")),
        tree: baseTree,
        left_out: [],
        dependencies: { requested: { mode: "none" }, copied: [], lock_digest: null, reason: null },
        setup: []
      },
      read: Effect.fnUntraced(function* (path, max_bytes) {
        const node = nodeAt(nodes, yield* follow(root, nodes, path, false))
        if (node?._tag === "File" && node.bytes.length > max_bytes) {
          return yield* fail(
            "too_large",
            `${quotePath(path)} has ${node.bytes.length} bytes, more than ${max_bytes}`
          )
        }
        return node
      }),
      resolve: (path) => Effect.suspend(() => follow(root, nodes, path, true)),
      list: Effect.fnUntraced(function* (directory) {
        const at = yield* follow(root, nodes, directory, true)
        const node = nodeAt(nodes, at)
        if (node === undefined) return yield* fail("not_found", `${quotePath(directory)} does not exist`)
        if (node._tag !== "Directory")
          return yield* fail("not_a_file", `${quotePath(directory)} is not a directory`)
        const prefix = at === "." ? "" : `${at}/`
        return sorted(nodes)
          .filter(([path, file]) => path.startsWith(prefix) && file._tag !== "Directory")
          .map(([path]) => path)
      }),
      apply: Effect.fnUntraced(function* (changes) {
        const meant: Array<FileChange> = []
        for (const change of changes) {
          const path = yield* follow(root, nodes, change.path, change._tag === "Write")
          if (meant.some((other) => other.path === path))
            return yield* fail("refused_path", `${quotePath(path)} is changed twice by one edit`)
          const real = { ...change, path }
          const why = refusal(nodeAt(nodes, path), real)
          if (why !== null) return yield* why
          meant.push(real)
        }
        const next = changed(nodes, meant)
        if (next instanceof WorkspaceError) return yield* next
        nodes = next
        return record()
      }),
      scan: Effect.sync(record),
      tree: Effect.sync(() => recorded),
      diff,
      handOver: diff,
      restore: Effect.fnUntraced(function* (tree) {
        nodes = yield* snapshot(tree)
        recorded = tree
      }),
      materialise: Effect.fnUntraced(function* (tree) {
        yield* snapshot(tree)
        return { root: `${root}@${tree}`, layers: [], wrote: Effect.succeed([]), distrust: null }
      }),
      unrecorded: Effect.succeed([])
    }
    return {
      workspace,
      open: Effect.fnUntraced(function* (resume) {
        if (resume === undefined) {
          nodes = base
          recorded = baseTree
          return workspace
        }
        const recalled = yield* snapshot(resume.tree)
        const found = record()
        nodes = recalled
        recorded = resume.tree
        return { ...workspace, prepared: resume.prepared, found }
      }),
      nodes: Effect.sync(() => nodes),
      nodesOf: (tree) => snapshots.get(tree) ?? new Map(),
      put: (path, file) =>
        Effect.sync(() => {
          const next = new Map(nodes)
          if (file === undefined) next.delete(path)
          else next.set(path, toNode(file))
          nodes = next
        })
    }
  })
