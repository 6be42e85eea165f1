/**
 * The fakes: a whole world in memory that a program cannot tell from the real one. Deterministic: the clock is the
 * test's, ids count up, the disk is a map, and models, checks and answers follow a script.
 */
import { Effect, Layer, Path } from "effect"
import { Digest, SecureRandom } from "effect/crypto"
import type { ApprovalDecision } from "../domain/Event.ts"
import type { CheckOutcome } from "../domain/Result.ts"
import { CommitId, TreeId } from "../domain/Ids.ts"
import { Approval, ApprovalUnavailable, type ApprovalRequest } from "../services/Approval.ts"
import { Checks } from "../services/Checks.ts"
import { Git, GitError } from "../services/Git.ts"
import { Models, type Model } from "../services/Model.ts"
import { Programs } from "../services/Programs.ts"
import { Sandbox, SandboxError, type SandboxResult } from "../services/Sandbox.ts"
import { Settings } from "../services/Settings.ts"
import { Workspaces } from "../services/Workspace.ts"
import * as MemoryFs from "./fs/Memory.ts"
import * as Store from "./journal/Store.ts"
import { layerMemory as layerReproduction } from "./receipt/Memory.ts"
import * as MemorySearch from "./search/Memory.ts"
import * as Tools from "./tools/Tools.ts"
import type { MemoryFile, MemoryWorkspace } from "./workspace/Memory.ts"

/** Bytes that count up: every id of a test is the same in every run. */
export const layerRandom = Layer.sync(SecureRandom.SecureRandom, () => {
  let next = 0
  return SecureRandom.make((size) => Uint8Array.from({ length: size }, () => next++ % 256))
})

/** A check's outcome, from the files of the place that it ran in. */
export type CheckScript = (
  argv: ReadonlyArray<string>,
  files: ReadonlyMap<string, string>
) => Partial<CheckOutcome>

/** Passes when the file holds the text, fails otherwise. */
export const passesWhen =
  (path: string, text: string): CheckScript =>
  (_argv, files) =>
    files.get(path)?.includes(text) === true ? {} : { verdict: "failed", exit_code: 1, reason: "exit 1" }

/** The tree that a fresh place of a memory workspace holds: its root ends in it. */
const treeAt = (root: string): TreeId => TreeId.make(root.slice(root.lastIndexOf("@") + 1))

/** Checks that follow a script over the trees of a workspace in memory. */
export const layerChecks = (memory: MemoryWorkspace, script: CheckScript) =>
  Layer.succeed(
    Checks,
    Checks.of({
      run: (check, place, options) =>
        Effect.sync((): CheckOutcome => {
          const outcome: CheckOutcome = {
            name: check.name,
            argv: check.argv,
            verdict: "passed",
            exit_code: 0,
            duration_seconds: 0,
            tests: 1,
            reason: null,
            output: ""
          }
          if (place.distrust !== null)
            return { ...outcome, verdict: "could_not_verify", reason: place.distrust }
          if (options.remaining_ms <= 0)
            return { ...outcome, verdict: "failed", exit_code: 124, reason: "timed out" }
          const decoder = new TextDecoder()
          const files = new Map(
            [...memory.nodesOf(treeAt(place.root))].flatMap(([path, node]) =>
              node._tag === "File" ? [[path, decoder.decode(node.bytes)] as const] : []
            )
          )
          return { ...outcome, ...script(check.argv, files) }
        })
    })
  )

/** A workspace that is already there: at the base for a run that begins, where it was left for one that is resumed. */
export const layerWorkspaces = (memory: MemoryWorkspace) =>
  Layer.succeed(Workspaces, Workspaces.of({ open: ({ resume }) => memory.open(resume) }))

/** The head of every repository of `layerGit`. */
export const testCommit = CommitId.make("0123456789abcdef0123456789abcdef01234567")

/** A repository whose one commit holds these files. */
export const layerGit = (files: Readonly<Record<string, MemoryFile>>, root = "/repo") => {
  const bytesOf = (path: string) => {
    const file = files[path]
    if (typeof file === "string") return new TextEncoder().encode(file)
    return file instanceof Uint8Array ? file : null
  }
  return Layer.succeed(
    Git,
    Git.of({
      source: (directory) =>
        directory === root || directory.startsWith(`${root}/`)
          ? Effect.succeed({ root, subdirectory: directory.slice(root.length + 1), head: testCommit })
          : Effect.fail(
              new GitError({ reason: "not_a_repository", message: `${directory} is not in a git repository` })
            ),
      resolve: (_root, revision) =>
        revision === "HEAD" || testCommit.startsWith(revision)
          ? Effect.succeed(testCommit)
          : Effect.fail(
              new GitError({ reason: "unknown_commit", message: `there is no commit ${revision}` })
            ),
      file: (_root, _commit, path, max_bytes) =>
        Effect.sync(() => {
          const bytes = bytesOf(path)
          return bytes === null || bytes.length > max_bytes ? null : bytes
        }),
      paths: () => Effect.succeed(Object.keys(files).toSorted())
    })
  )
}

/** Answers in order; when they are used up nobody answers. Edits and checks are asked about too. */
export const layerApproval = (answers: ReadonlyArray<ApprovalDecision>) =>
  Layer.sync(Approval, () => {
    let asked = 0
    return Approval.of({
      standing: (request) => (request.effect === "read" ? "allow_once" : null),
      ask: (request: ApprovalRequest) =>
        Effect.suspend(() => {
          const answer = answers[asked]
          asked += 1
          return answer === undefined
            ? Effect.fail(new ApprovalUnavailable({ message: `nobody answers ${request.action_id}` }))
            : Effect.succeed(answer)
        })
    })
  })

/** Commands that follow a script; one that it does not know ends with 127. */
export const layerSandbox = (script: (argv: ReadonlyArray<string>) => Partial<SandboxResult> | null) =>
  Layer.succeed(
    Sandbox,
    Sandbox.of({
      kind: "none",
      overlays: false,
      run: ({ argv }) =>
        Effect.suspend(() => {
          const result = script(argv)
          return result === null
            ? Effect.fail(new SandboxError({ reason: "not_found", message: `${argv[0]} was not found` }))
            : Effect.succeed({
                exit_code: 0,
                timed_out: false,
                stopped: null,
                output: "",
                output_bytes: 0,
                duration_ms: 0,
                ...result
              })
        })
    })
  )

/** A machine that has these programs. */
export const layerPrograms = (names: ReadonlyArray<string>) =>
  Layer.succeed(Programs, Programs.of({ has: (program) => Effect.succeed(names.includes(program)) }))

/** Settings as a user without an environment and a configuration has them, and what is laid over that. */
export const layerSettings = (settings: Partial<Settings["Service"]> = {}) =>
  Layer.succeed(
    Settings,
    Settings.of({
      run_root: "/runs",
      config_path: "/config.json",
      cache_root: null,
      config: Effect.succeed({}),
      provider: null,
      model: null,
      api_url: null,
      apiKey: () => null,
      baseUrl: () => null,
      ...settings
    })
  )

export interface TestWorld {
  readonly memory: MemoryWorkspace
  /** What the repository holds, as the workspace was made from. */
  readonly files: Readonly<Record<string, MemoryFile>>
  readonly models: readonly [Model, ...ReadonlyArray<Model>]
  readonly checks: CheckScript
}

/** Everything that `run` needs, on a disk of the caller's, except somebody who answers. */
export const layerTestOn = (world: TestWorld) =>
  Layer.mergeAll(
    Store.layerMemory({ run_root: "/runs" }),
    Layer.succeed(Models, Models.of({ candidates: world.models })),
    layerGit(world.files),
    layerSandbox(() => null),
    layerWorkspaces(world.memory),
    layerChecks(world.memory, world.checks),
    layerReproduction(world.memory),
    Digest.layerWebCrypto,
    Tools.layer.pipe(Layer.provide(MemorySearch.layerMemory(world.memory)))
  )

/** Everything that `run` needs, except somebody who answers: add `layerApproval`, or the headless one. */
export const layerTest = (world: TestWorld) =>
  layerTestOn(world).pipe(Layer.provideMerge(Layer.mergeAll(MemoryFs.layer(), Path.layer, layerRandom)))
