/**
 * Paths that try to leave the workspace, on a real disk.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join, resolve } from "node:path"
import { checkWorkspacePath } from "../../../src/domain/WorkspacePath.ts"
import { type OpenWorkspace, WorkspaceError, Workspaces } from "../../../src/services/Workspace.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, scratch, taskFor, textOf, write } from "./support.ts"

const Text = Schema.optionalKey(Schema.String)
const Operation = Schema.Struct({ tool: Schema.String, path: Text, text: Text, oldText: Text, newText: Text })
const Case = Schema.Struct({
  id: Schema.String,
  setup: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        file: Text,
        text: Text,
        symlink: Text,
        hardlink: Text,
        fifo: Text,
        dir: Text,
        mode: Text,
        to: Text,
        note: Text,
        git: Schema.optionalKey(Schema.Array(Schema.String))
      })
    )
  ),
  op: Schema.Union([Operation, Schema.Array(Operation)]),
  expect: Schema.String,
  rules: Schema.optionalKey(Schema.Unknown)
})
type Case = typeof Case.Type
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ cases: Schema.Array(Case) })))

const file = resolve(import.meta.dirname, "../../../../shared/cases/paths/path-policy.json")

/** What the tools do with a path: the words first, then the disk. */
const perform = Effect.fnUntraced(function* (workspace: OpenWorkspace, op: typeof Operation.Type) {
  const checked = checkWorkspacePath(op.path ?? "")
  if (Result.isFailure(checked)) {
    return yield* new WorkspaceError({ reason: "refused_path", message: checked.failure })
  }
  const path = yield* workspace.resolve(checked.success)
  if (op.tool === "write") return yield* workspace.apply([write(path, op.text ?? "")])
  const node = yield* workspace.read(path, 100_000)
  if (node?._tag !== "File") return yield* new WorkspaceError({ reason: "not_a_file", message: "no file" })
  if (op.tool === "read") return yield* workspace.tree
  const text = textOf(node.bytes)
  assert.include(text, op.oldText ?? "?")
  return yield* workspace.apply([
    write(path, text.replace(op.oldText ?? "", op.newText ?? ""), node.executable)
  ])
})

/** The set-up of a case below `root`, with <W> the workspace and <O> a directory beside it. */
const arrange = (test: Case, root: string, outside: string): void => {
  const at = (text: string) => text.replaceAll("<W>", root).replaceAll("<O>", outside)
  mkdirSync(outside, { recursive: true })
  writeFileSync(join(outside, "evil"), "untouched\n")
  for (const step of test.setup ?? []) {
    if (step.file !== undefined) {
      mkdirSync(dirname(at(step.file)), { recursive: true })
      writeFileSync(at(step.file), step.text ?? "")
    }
    if (step.symlink !== undefined) symlinkSync(at(step.to ?? ""), at(step.symlink))
    if (step.hardlink !== undefined) linkSync(at(step.to ?? ""), at(step.hardlink))
    if (step.fifo !== undefined) execFileSync("mkfifo", [at(step.fifo)])
    if (step.dir !== undefined) {
      mkdirSync(at(step.dir), { recursive: true })
      if (step.mode !== undefined) chmodSync(at(step.dir), Number.parseInt(step.mode, 8))
    }
    const where = step.git?.[1]
    if (where !== undefined) execFileSync("git", ["init", "-q", at(where)], { env: gitEnvironment(outside) })
  }
}

const tools = new Set(["read", "write", "exact_replace"])
const isRoot = process.getuid?.() === 0

it.live.skipIf(!existsSync(file))(
  "path cases: nothing leaves, what is allowed works",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({ files: { "kept.txt": "kept\n" } })
      const { directory, workspace } = yield* openFor(repo)
      const outside = join(directory, "O")
      let run = 0
      for (const test of decode(readFileSync(file, "utf8")).cases) {
        const op = "tool" in test.op ? test.op : undefined
        if (op === undefined || !tools.has(op.tool) || test.rules !== undefined) continue
        // Root may write anywhere: the case is about those who may not.
        if (test.setup?.some((step) => step.mode !== undefined) === true && isRoot) continue
        run += 1
        arrange(test, workspace.root, outside)
        const before = snapshotTree(outside)
        const beside = readdirSync(directory).toSorted()
        const path = (op.path ?? "").replaceAll("<W>", workspace.root).replaceAll("<O>", outside)
        const outcome = yield* Effect.result(perform(workspace, { ...op, path }))
        const allowed = Result.isSuccess(outcome)
        if (test.expect === "allow") assert.isTrue(allowed, `${test.id}: ${JSON.stringify(outcome)}`)
        if (["deny", "error", "error-not-found"].includes(test.expect)) assert.isFalse(allowed, test.id)
        assertUntouched(before, snapshotTree(outside))
        assert.deepStrictEqual(readdirSync(directory).toSorted(), beside, test.id)
        rmSync(outside, { recursive: true })
        for (const name of readdirSync(workspace.root)) {
          if (name !== ".git") rmSync(join(workspace.root, name), { recursive: true })
        }
        yield* workspace.restore(workspace.prepared.tree)
      }
      console.log(`handed cases: ${run} run`)
      assert.isAbove(run, 35)
    }).pipe(Effect.provide(live)),
  120_000
)
if (!existsSync(file)) console.log("handed cases: absent")

it.live("looks at links, loops, devices and pipes without following or waiting", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* repository({ files: { "a.txt": "0123456789", "d/x": "x" } }))
    const at = (name: string) => join(workspace.root, name)
    symlinkSync("b", at("a"))
    symlinkSync("a", at("b"))
    symlinkSync("/dev/zero", at("zero"))
    symlinkSync("d", at("inside"))
    symlinkSync(at("d"), at("absolute"))
    symlinkSync("missing/deep", at("dangling"))
    symlinkSync(".git/config", at("config"))
    symlinkSync("../../..", at("up"))
    execFileSync("mkfifo", [at("pipe")])
    assert.deepStrictEqual(yield* workspace.read("zero", 10), { _tag: "Symlink", target: "/dev/zero" })
    assert.deepStrictEqual(yield* workspace.read("pipe", 10), { _tag: "Special" })
    assert.deepStrictEqual(yield* workspace.read("d", 10), { _tag: "Directory" })
    assert.strictEqual((yield* workspace.read("inside/x", 10))?._tag, "File")
    assert.isUndefined(yield* workspace.read("nothing/here", 10))
    assert.isUndefined(yield* workspace.read("a.txt/below", 10))
    assert.strictEqual(yield* workspace.resolve("absolute/x"), "d/x")
    assert.strictEqual(yield* workspace.resolve("dangling"), "missing/deep")
    for (const path of ["a", "zero", "config", "up", "up/x", "a/x"]) {
      assert.strictEqual((yield* Effect.flip(workspace.resolve(path))).reason, "refused_path", path)
    }
    for (const path of ["up/etc/passwd", ".git/config", ".git"]) {
      assert.strictEqual((yield* Effect.flip(workspace.read(path, 10))).reason, "refused_path", path)
    }
    assert.strictEqual((yield* Effect.flip(workspace.read("a.txt", 9))).reason, "too_large")
    assert.strictEqual((yield* Effect.flip(workspace.apply([write("pipe", "x")]))).reason, "not_a_file")
  }).pipe(Effect.provide(live))
)

it.live("opens through a symlink to the run directory", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { x: "x\n" } })
    const folder = yield* scratch
    mkdirSync(join(folder, "real"))
    symlinkSync("real", join(folder, "link"))
    const workspaces = yield* Workspaces
    const workspace = yield* workspaces.open({ task: taskFor(repo), directory: join(folder, "link/run") })
    symlinkSync(join(folder, "link/run/workspace/x"), join(workspace.root, "y"))
    assert.strictEqual(yield* workspace.resolve("y"), "x")
    yield* workspace.apply([write("x", "y\n")])
    assert.strictEqual(readFileSync(join(folder, "real/run/workspace/x"), "utf8"), "y\n")
  }).pipe(Effect.provide(live))
)
