import { Effect, FileSystem, Layer, Option, Path, Stream } from "effect"
import { SecureRandom } from "effect/crypto"
import { isKnownType, type EventData, type RunEvent, type UnknownEvent } from "../../../src/domain/Event.ts"
import { CommitId, RunId, ToolCallId, TreeId } from "../../../src/domain/Ids.ts"
import { noLine } from "../../../src/domain/JournalCodec.ts"
import type { CheckOutcome, RunResult } from "../../../src/domain/Result.ts"
import { artifactNames } from "../../../src/domain/Result.ts"
import { initial, reduce, type RunState } from "../../../src/domain/Run.ts"
import { defaultLimits, type Task } from "../../../src/domain/Task.ts"
import { zero } from "../../../src/domain/Usage.ts"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import type { Head, Mark } from "../../../src/layers/journal/Cursor.ts"
import type { Disk } from "../../../src/layers/journal/Disk.ts"
import { openHistory } from "../../../src/layers/journal/Reader.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import * as Store from "../../../src/layers/journal/Store.ts"
import type { Journal, StoredEntry, StoreError } from "../../../src/services/RunStore.ts"
import type { RunRequest } from "../../../src/domain/Request.ts"
import { RunStore } from "../../../src/services/RunStore.ts"

export const runId = (id: string): RunId => RunId.make(id)
export const root = "/state/runs"

const base = CommitId.make("1".repeat(40))
const tree = (digit: string): TreeId => TreeId.make(digit.repeat(40))

export const task: Task = {
  instruction: "Make add return the sum.",
  repository: "/home/someone/project",
  subdirectory: "",
  base: { kind: "commit", commit: base },
  allowed_paths: ["**"],
  verification: {
    mode: "checks",
    checks: [{ name: "node --test", argv: ["node", "--test"], timeout_seconds: 300 }]
  },
  limits: defaultLimits,
  dependencies: { mode: "auto" },
  setup: [],
  include: [],
  baseline: true
}

export const request: RunRequest = {
  schema_version: 1,
  task,
  models: [{ provider: "scripted", model: "recorded", endpoint: null }],
  prompt_version: "1",
  sandbox: "none"
}
export const created: Omit<EventData<"run.created">, "run_id" | "store_version"> = {
  provider: "scripted",
  model: "recorded",
  prompt_version: "1",
  base_sha: base
}

const usage = { ...zero, input_tokens: 120, output_tokens: 30, cached_input_tokens: 100 }
const call = ToolCallId.make("call_1")
export const outcome: CheckOutcome = {
  name: "node --test",
  argv: ["node", "--test"],
  verdict: "passed",
  exit_code: 0,
  duration_seconds: 0.25,
  tests: 2,
  reason: null,
  output: "ok 1 - adds\nok 2 - adds negative numbers\n"
}

/** The events of a whole run after `run.created`: an edit with text long enough for a blob, a check, an end. */
export const story: ReadonlyArray<RunEvent> = [
  {
    event_type: "prompt.built",
    data: {
      prompt_version: "1",
      sections: [{ name: "identity", cache: "stable", content: "You work on a repository." }],
      tools: [
        {
          name: "replace_text",
          description: "Replaces text of a file.",
          parameters: { type: "object", properties: {} }
        }
      ]
    }
  },
  {
    event_type: "workspace.prepared",
    data: {
      base_sha: base,
      tree: tree("3"),
      left_out: [],
      dependencies: { requested: { mode: "auto" }, copied: [], lock_digest: null, reason: null },
      setup: []
    }
  },
  { event_type: "conversation.appended", data: { item: { role: "user", content: task.instruction } } },
  {
    event_type: "model.requested",
    data: { step: 1, provider: "scripted", model: "recorded", lane: "primary", active_ms: 40 }
  },
  {
    event_type: "model.completed",
    data: {
      step: 1,
      provider: "scripted",
      model: "recorded",
      lane: "primary",
      turn: {
        text: "",
        reasoning: [],
        tool_calls: [
          {
            id: call,
            name: "replace_text",
            arguments: { path: "add.js", old: "a - b", new: "a + b", note: { $blob: "is a shell variable" } }
          }
        ],
        finish_reason: "tool_use",
        usage
      }
    }
  },
  { event_type: "tool.started", data: { tool_call_id: call, name: "replace_text", tree: tree("3") } },
  {
    event_type: "tool.completed",
    data: {
      tool_call_id: call,
      name: "replace_text",
      ok: true,
      content: "one line replaced\n".repeat(1200),
      tree: tree("4")
    }
  },
  { event_type: "verification.completed", data: { purpose: "final", tree: tree("4"), outcome, wrote: [] } },
  { event_type: "verification.settled", data: { tree: tree("4"), outcomes: [outcome] } },
  {
    event_type: "run.ended",
    data: {
      status: "completed",
      terminal_reason: "verified",
      error: null,
      changed_files: ["add.js"],
      tree: tree("4"),
      usage
    }
  }
]

export const resultOf = (run_id: RunId): RunResult => ({
  schema_version: 1,
  run_id,
  status: "completed",
  terminal_reason: "verified",
  summary: "add returns the sum.",
  error: null,
  changed_files: ["add.js"],
  verification: [outcome],
  usage: { ...usage, total_tokens: 150 },
  model_usage: [{ lane: "primary", provider: "scripted", model: "recorded", usage }],
  steps: 1,
  base_sha: base,
  tree: tree("4"),
  notes: [],
  artifacts: artifactNames
})

/** Random bytes that are the same in every test. */
const countedRandom = (first: number) =>
  Layer.sync(SecureRandom.SecureRandom, () => {
    let next = first
    return SecureRandom.make((size) => Uint8Array.from({ length: size }, () => next++ & 0xff))
  })

export const runPath = (id: string, name: string): string => `${root}/${id}/${name}`

/** The state that a run's entries make, one after the other. */
export const foldOf = (entries: ReadonlyArray<{ readonly event: RunEvent | UnknownEvent }>): RunState =>
  entries.reduce((state, { event }) => (isKnown(event) ? reduce(state, event) : state), initial)
const isKnown = (event: RunEvent | UnknownEvent): event is RunEvent => isKnownType(event.event_type)

/** Puts a changed line in its place and hangs everything behind it on the new hash. */
export const rechain = (
  log: string,
  at: number,
  change: (entry: Readonly<Record<string, unknown>>) => object
): string => {
  let previous: string = noLine
  return (log.match(/.*\n/g) ?? [])
    .map((line, index) => {
      const entry = { ...JSON.parse(line), previous }
      const text = `${JSON.stringify(index === at ? change(entry) : entry)}\n`
      previous = sha256(new TextEncoder().encode(text))
      return text
    })
    .join("")
}

export type JournalItem =
  | ({ readonly _tag: "Entry" } & StoredEntry)
  /** How far the history goes; the offset is that of the run's own file. */
  | ({ readonly _tag: "End" } & Mark)

/** The entries of a run in order, then one `End`. */
export const readJournal = (disk: Disk, directory: string, head: Head | null) =>
  Stream.unwrap(
    Effect.map(openHistory(disk, directory, { head, onBlob: () => Effect.void }), (cursor) =>
      Stream.paginate(null, () =>
        Effect.map(cursor.next, (entries): readonly [ReadonlyArray<JournalItem>, Option.Option<null>] =>
          entries === null
            ? [[{ _tag: "End", ...cursor.mark() }], Option.none()]
            : [entries.map((entry) => ({ _tag: "Entry", ...entry })), Option.some(null)]
        )
      )
    )
  )

/** Every file below a directory: its bytes as hex, its mode and the time of its last change. */
export const snapshot = (fs: FileSystem.FileSystem, directory: string) =>
  Effect.gen(function* () {
    const names = (yield* fs.readDirectory(directory, { recursive: true })).toSorted()
    return yield* Effect.forEach(names, (name) =>
      Effect.gen(function* () {
        const { mode, mtime, type } = yield* fs.stat(`${directory}/${name}`)
        const bytes = type === "File" ? yield* fs.readFile(`${directory}/${name}`) : new Uint8Array()
        return [name, type, mode, mtime, Buffer.from(bytes).toString("hex")]
      })
    )
  })

/** `first`: another one for a store that is to have random numbers of its own. */
export const storeOn = (
  fileSystem: FileSystem.FileSystem,
  run_root = root,
  first = 0
): Layer.Layer<RunStore | FileSystem.FileSystem | Path.Path> =>
  Store.layerMemory({ run_root }).pipe(
    Layer.provideMerge(
      Layer.mergeAll(Layer.succeed(FileSystem.FileSystem, fileSystem), Path.layer, countedRandom(first))
    )
  )

/** A store on a fresh file system. */
export const world = () => {
  const memory = Memory.make()
  return { ...memory, layer: storeOn(memory.fileSystem) }
}

export const create = (id: string) =>
  Effect.flatMap(RunStore, (store) => store.create({ run_id: runId(id), request, created }))

export const note = (text: string): RunEvent => ({ event_type: "run.noted", data: { note: text } })

/** A complete bundle. */
export const wholeRun = (
  id: string,
  events: ReadonlyArray<RunEvent> = story
): Effect.Effect<Journal, StoreError, RunStore> =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* create(id)
      for (const event of events) {
        yield* journal.append(event)
        if (event.event_type === "model.requested" || event.event_type === "tool.started")
          yield* journal.barrier
      }
      yield* journal.barrier
      yield* journal.checkpoint
      yield* journal.writeFile(artifactNames.patch, "diff --git a/add.js b/add.js\n")
      yield* journal.writeFile(artifactNames.test_log, "ok\n")
      yield* journal.writeFile(artifactNames.verification, JSON.stringify([outcome]))
      yield* journal.writeFile(artifactNames.receipt, JSON.stringify({ schema_version: 1 }))
      yield* journal.writeFile(artifactNames.result, JSON.stringify(resultOf(runId(id))))
      return journal
    })
  )

/** Puts beside a journal what other layers keep there. */
export const populate = (fs: FileSystem.FileSystem, id: string) =>
  Effect.gen(function* () {
    const files = {
      "git/HEAD": "ref: refs/heads/main",
      "git/index": "index",
      "git/index.lock": "",
      "git/objects/ab/cdef": "object",
      "git/objects/tmp_obj_1": "half",
      "deps/node_modules/tool.js": "run()",
      "workspace/add.js": "a + b"
    }
    for (const [name, content] of Object.entries(files)) {
      const file = runPath(id, name)
      yield* fs.makeDirectory(file.slice(0, file.lastIndexOf("/")), { recursive: true })
      yield* fs.writeFileString(file, content)
    }
    yield* fs.chmod(runPath(id, "deps/node_modules/tool.js"), 0o755)
    yield* fs.makeDirectory(runPath(id, "deps/node_modules/.bin"))
    yield* fs.symlink("../tool.js", runPath(id, "deps/node_modules/.bin/tool"))
  })

/** Makes all that lies below a directory, and its name, survive power loss. */
export const settle = (fs: FileSystem.FileSystem, directory: string) =>
  Effect.gen(function* () {
    const sync = (path: string) => Effect.scoped(Effect.flatMap(fs.open(path), (file) => file.sync))
    for (const name of yield* fs.readDirectory(directory, { recursive: true })) {
      const type = (yield* fs.lstat(`${directory}/${name}`)).type
      if (type !== "SymbolicLink") yield* sync(`${directory}/${name}`)
    }
    yield* sync(directory)
    yield* sync("/")
  })
