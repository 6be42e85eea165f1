import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CommitId } from "../../../src/domain/Ids.ts"
import type { FileChange } from "../../../src/domain/patch/FileSet.ts"
import type { Task } from "../../../src/domain/Task.ts"
import { layerHost } from "../../../src/layers/sandbox/Host.ts"
import { layer } from "../../../src/layers/workspace/Workspace.ts"
import { type OpenWorkspace, Workspaces } from "../../../src/services/Workspace.ts"
import { makeRepo, type Repo, type RepoSpec } from "../../support/Repo.ts"
import { exampleTask } from "../../support/tasks.ts"

/** Real git and a real disk. */
export const live = layer.pipe(Layer.provide(layerHost), Layer.provideMerge(NodeServices.layer))

/** A folder that is gone with the scope. */
export const scratch = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "looplane-test-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A repository that is gone with the scope. */
export const repository = (spec: RepoSpec) =>
  Effect.acquireRelease(
    Effect.sync(() => makeRepo(spec)),
    (repo) => Effect.sync(() => repo.dispose())
  )

export const taskFor = (repo: Pick<Repo, "root" | "head">, changes: Partial<Task> = {}): Task => ({
  ...exampleTask,
  repository: repo.root,
  base: { kind: "commit", commit: CommitId.make(repo.head) },
  ...changes
})

/** A workspace of the repository in a scratch folder. */
export const openFor = Effect.fnUntraced(function* (
  repo: Pick<Repo, "root" | "head">,
  changes: Partial<Task> = {}
) {
  const folder = yield* scratch
  const workspaces = yield* Workspaces
  const workspace: OpenWorkspace = yield* workspaces.open({
    task: taskFor(repo, changes),
    directory: join(folder, "run")
  })
  return { workspace, folder, directory: join(folder, "run") }
})

export const write = (path: string, text: string, executable = false): FileChange => ({
  _tag: "Write",
  path,
  bytes: Buffer.from(text),
  executable
})

export const remove = (path: string): FileChange => ({ _tag: "Delete", path })

export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")
