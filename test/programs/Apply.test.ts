import { NodeCrypto } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path, Stream } from "effect"
import type { SurveyedPath } from "../../src/domain/Apply.ts"
import type { ApplyStep } from "../../src/domain/ApplyPlan.ts"
import type { ApplyRecord } from "../../src/domain/ApplyRecord.ts"
import type { RunEvent } from "../../src/domain/Event.ts"
import { CommitId, Digest, RunId, TreeId } from "../../src/domain/Ids.ts"
import { toOctets } from "../../src/domain/Octets.ts"
import type { FileNode } from "../../src/domain/patch/FileSet.ts"
import type { TerminalReason } from "../../src/domain/Result.ts"
import { zero } from "../../src/domain/Usage.ts"
import { layer as layerMemory } from "../../src/layers/fs/Memory.ts"
import { applyRun, undoApply, type ApplyOptions } from "../../src/programs/Apply.ts"
import { Git, GitError } from "../../src/services/Git.ts"
import { RunStore, StoreError, type RunSummary } from "../../src/services/RunStore.ts"
import { UserTree, type ApplyAbout, type OpenUserTree } from "../../src/services/UserTree.ts"
import { exampleTask } from "../support/tasks.ts"

const commit = exampleTask.base.commit
const tree = TreeId.make("1".repeat(40))
const patch = new TextEncoder().encode("diff --git a/a b/a\n")

interface FakeRun {
  readonly run_id: string
  readonly repository: string
  /** null: it has not ended. */
  readonly reason: TerminalReason | null
  readonly version?: number
}

const summaryOf = ({ reason, repository, run_id }: FakeRun): RunSummary => ({
  run_id: RunId.make(run_id),
  directory: `/runs/${run_id}`,
  modified_ms: 0,
  manifest: null,
  missing: [],
  request: {
    schema_version: 1,
    task: { ...exampleTask, repository },
    models: [{ provider: "p", model: "m", endpoint: null }],
    prompt_version: "1",
    sandbox: "none"
  },
  result:
    reason === null
      ? null
      : {
          schema_version: 1,
          run_id: RunId.make(run_id),
          status: "failed",
          terminal_reason: reason,
          summary: "",
          error: null,
          changed_files: [],
          verification: [],
          usage: { ...zero, total_tokens: 0 },
          model_usage: [],
          steps: 1,
          base_sha: commit,
          tree,
          notes: [],
          artifacts: {}
        }
})

const eventsOf = ({ reason, run_id, version }: FakeRun): ReadonlyArray<RunEvent> => [
  {
    event_type: "run.created",
    data: {
      run_id: RunId.make(run_id),
      provider: "p",
      model: "m",
      prompt_version: "1",
      base_sha: commit,
      store_version: version ?? 2
    }
  },
  ...(version === 1
    ? []
    : [
        { event_type: "workspace.scanned", data: { tree } } as const,
        {
          event_type: "patch.collected",
          data: { tree, files: [], patch: toOctets(patch), unrecorded: [] }
        } as const
      ]),
  {
    event_type: "run.ended",
    data: {
      status: "failed",
      terminal_reason: reason ?? "error",
      error: null,
      changed_files: [],
      tree,
      usage: zero
    }
  }
]

const file = (text: string): FileNode => ({
  _tag: "File",
  bytes: new TextEncoder().encode(text),
  executable: false
})

const surveyed = (path: string, now: string): SurveyedPath => ({
  path,
  base: file("old\n"),
  patched: file("new\n"),
  now: file(now),
  obstacle: null,
  inside: null,
  rules: { text: "unspecified", eol: "unspecified", autocrlf: null, core_eol: null },
  conversion: null,
  modes: true,
  mark: null
})

const recordOf = (run_id: string, made: CommitId | null): ApplyRecord => ({
  version: 1,
  id: "1",
  run_id: RunId.make(run_id),
  patch_digest: Digest.make("0".repeat(64)),
  unverified: false,
  conflicts: false,
  created_at: "",
  phase: "done",
  commit: made,
  files: [
    { path: "a", change: "modified", merged: false, before: { kind: "absent" }, after: { kind: "absent" } }
  ],
  made: [],
  emptied: []
})

interface World {
  readonly runs: ReadonlyArray<FakeRun>
  readonly tree?: ReadonlyArray<SurveyedPath>
  readonly record?: ApplyRecord
  readonly changed?: ReadonlyArray<string>
}

interface Seen {
  readonly written: Array<{ readonly steps: ReadonlyArray<ApplyStep>; readonly about: ApplyAbout }>
  readonly opened: Array<boolean>
  readonly said: Array<string>
  readonly asked: Array<string | null>
}

const notFound = (run: string) =>
  Effect.fail(new StoreError({ reason: "not_found", path: run, message: `there is no run ${run}` }))

const worldOf = (world: World) => {
  const seen: Seen = { written: [], opened: [], said: [], asked: [] }
  const summaries = world.runs.map(summaryOf)
  const openTree: OpenUserTree = {
    recovered: [],
    survey: () => Effect.succeed(world.tree ?? [surveyed("a", "old\n")]),
    merge: () => Effect.succeed({ bytes: new TextEncoder().encode("<<<<<<<\n"), clean: false }),
    write: (steps, about, wanted) =>
      Effect.sync(() => {
        seen.written.push({ steps, about })
        return recordOf(about.run_id, wanted === null ? null : commit)
      }),
    last: (run_id) =>
      Effect.sync(() => {
        seen.asked.push(run_id)
        return world.record ?? null
      }),
    undo: () => Effect.succeed(world.changed ?? []),
    branch: () => Effect.succeed(commit),
    checkCommit: () => Effect.void
  }
  const find = (run: string) => {
    const found = summaries.find((each) => each.run_id === run)
    return found === undefined ? notFound(run) : Effect.succeed(found)
  }
  const layer = Layer.mergeAll(
    Layer.mock(RunStore)({
      find,
      list: () => Effect.succeed(summaries),
      entries: (directory) =>
        Stream.fromIterable(
          world.runs
            .filter((run) => directory === `/runs/${run.run_id}`)
            .flatMap(eventsOf)
            .map((event, sequence) => ({
              sequence,
              created_at: "",
              hash: Digest.make("0".repeat(64)),
              event
            }))
        )
    }),
    Layer.mock(Git)({
      source: (directory) =>
        directory.startsWith("/repo")
          ? Effect.succeed({ root: "/repo", subdirectory: "", head: commit })
          : Effect.fail(
              new GitError({ reason: "not_a_repository", message: `${directory} is no repository` })
            ),
      resolve: () => Effect.succeed(commit)
    }),
    Layer.succeed(UserTree, {
      open: (_root, { write }) => Effect.sync(() => (seen.opened.push(write), openTree))
    }),
    NodeCrypto.layerDigest,
    Path.layer,
    layerMemory()
  )
  const files = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    for (const { run_id } of world.runs) {
      yield* fs.makeDirectory(`/runs/${run_id}`, { recursive: true })
      yield* fs.writeFile(`/runs/${run_id}/changes.patch`, patch)
    }
  })
  const target = {
    run: null,
    directory: null,
    here: "/repo/src",
    say: (line: string) => Effect.sync(() => void seen.said.push(line))
  }
  const apply = (options: Partial<ApplyOptions> = {}) =>
    Effect.andThen(
      files,
      applyRun({
        ...target,
        unverified: false,
        check: false,
        conflicts: false,
        commit: false,
        branch: null,
        ...options
      })
    ).pipe(Effect.provide(layer))
  const undo = (run: string | null) => undoApply({ ...target, run }).pipe(Effect.provide(layer))
  return { seen, apply, undo }
}

const run: FakeRun = { run_id: "r1", repository: "/repo", reason: "unverified" }

describe("which run", () => {
  it.effect("is the newest one of the repository here", () =>
    Effect.gen(function* () {
      const { apply } = worldOf({
        runs: [{ ...run, run_id: "r0", repository: "/other" }, run, { ...run, run_id: "r2" }]
      })
      const outcome = yield* apply({ unverified: true })
      assert.strictEqual(outcome.run_id, "r1")
      assert.strictEqual(outcome.root, "/repo")
    })
  )

  it.effect("must be there, and have ended", () =>
    Effect.gen(function* () {
      const none = yield* Effect.flip(worldOf({ runs: [] }).apply())
      assert.match(none.message, /^no run of \/repo was found/)
      const open = yield* Effect.flip(
        worldOf({ runs: [{ ...run, reason: null }] }).apply({ unverified: true })
      )
      assert.match(open.message, /^run r1 has not ended.*looplane resume r1/)
    })
  )

  it.effect("is not looked for where there is no repository", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(worldOf({ runs: [run] }).apply({ here: "/elsewhere" }))
      assert.strictEqual(error.message, "/elsewhere is no repository")
    })
  )
})

describe("a patch that is less than verified", () => {
  const doubts: ReadonlyArray<readonly [FakeRun, RegExp]> = [
    [run, /it ended unverified/],
    [{ ...run, reason: "verified", version: 1 }, /its journal does not hold the patch/],
    [{ ...run, reason: "verified" }, /its receipt does not vouch for it/]
  ]
  it.effect.each(doubts)("is refused, and taken with --unverified, which is recorded (%#)", ([fake, why]) =>
    Effect.gen(function* () {
      const { apply, seen } = worldOf({ runs: [fake] })
      const error = yield* Effect.flip(apply())
      assert.match(error.message, why)
      assert.deepStrictEqual(seen.opened, [])
      yield* apply({ unverified: true })
      assert.isTrue(seen.written[0]?.about.unverified)
      assert.match(seen.said.join(), why)
      assert.match(seen.said.join(), /is applied unverified/)
    })
  )

  it.effect("is not said to be applied where it is only looked at", () =>
    Effect.gen(function* () {
      const { apply, seen } = worldOf({ runs: [run] })
      yield* apply({ unverified: true, check: true })
      assert.match(seen.said.join(), /^run r1 would be applied unverified: /)
    })
  )
})

describe("a plan", () => {
  it.effect("with a conflict is not written, unless markers are asked for", () =>
    Effect.gen(function* () {
      const { apply, seen } = worldOf({
        runs: [run],
        tree: [surveyed("a", "old\n"), surveyed("b", "mine\n")]
      })
      const outcome = yield* apply({ unverified: true })
      assert.strictEqual(outcome._tag, "Conflicted")
      assert.deepStrictEqual(seen.written, [])
      const marked = yield* apply({ unverified: true, conflicts: true })
      assert.strictEqual(marked._tag, "Applied")
      assert.deepStrictEqual(
        seen.written[0]?.steps.map((step) => step.path),
        ["a", "b"]
      )
      assert.isTrue(seen.written[0]?.about.conflicts)
    })
  )

  it.effect("is only told with --check", () =>
    Effect.gen(function* () {
      const { apply, seen } = worldOf({ runs: [run] })
      const outcome = yield* apply({ unverified: true, check: true })
      assert.isTrue(outcome._tag === "Applied" && outcome.dry)
      assert.deepStrictEqual(seen.written, [])
      assert.deepStrictEqual(seen.opened, [false])
    })
  )
})

describe("an undo", () => {
  it.effect("reports what was changed since", () =>
    Effect.gen(function* () {
      const { undo } = worldOf({ runs: [run], record: recordOf("r1", null), changed: ["a"] })
      const outcome = yield* undo(null)
      assert.isTrue(outcome._tag === "Changed" && outcome.paths.join() === "a")
    })
  )

  it.effect("does not take a commit back", () =>
    Effect.gen(function* () {
      const { undo } = worldOf({ runs: [run], record: recordOf("r1", CommitId.make(commit)) })
      const error = yield* Effect.flip(undo(null))
      assert.match(error.message, /git revert/)
    })
  )

  it.effect("needs nothing of the run but its id", () =>
    Effect.gen(function* () {
      const { seen, undo } = worldOf({ runs: [], record: recordOf("gone", null) })
      const outcome = yield* undo("gone")
      assert.strictEqual(outcome._tag, "Undone")
      assert.deepStrictEqual(seen.asked, ["gone"])
    })
  )
})
