/** The handed edit cases, through the tools: the right tree, or an error and the tree as it was. */
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { MemoryFile } from "../../../src/layers/workspace/Memory.ts"
import { open, show } from "./harness.ts"

const folder = fileURLToPath(new URL("../../../../shared/cases/patch/", import.meta.url))

const HandedFile = Schema.Union([
  Schema.String,
  Schema.Struct({ b64: Schema.String }),
  Schema.Struct({ text: Schema.String, mode: Schema.String }),
  Schema.Struct({ symlink: Schema.String }),
  Schema.Struct({ dir: Schema.Literal(true), mode: Schema.optionalKey(Schema.String) })
])
type HandedFile = typeof HandedFile.Type
const Files = Schema.Record(Schema.String, HandedFile)

const Case = Schema.Struct({
  name: Schema.String,
  op: Schema.Literals(["exact_replace", "apply_patch", "unified_diff"]),
  files: Files,
  args: Schema.Record(Schema.String, Schema.Unknown),
  expectFiles: Files,
  expectError: Schema.optionalKey(Schema.String),
  contested: Schema.optionalKey(Schema.Boolean),
  alsoOk: Schema.optionalKey(Schema.Unknown),
  guarded: Schema.optionalKey(Schema.String)
})
type Case = typeof Case.Type
const decodeFile = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ cases: Schema.Array(Case) }))
)
const isFiles = Schema.is(Files)

/** What this product does on cases where good tools differ and the case's own words are no tree. */
const decided: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "codex-unit/crlf-no-final-newline": { "n.txt": "ONE\r\ntwo" }
}

/** A workspace in memory has no permissions: shown on disk, by the real workspace. */
const needsDisk = new Set(["codex-unit/read-only-dir"])

const toMemory = (file: HandedFile): MemoryFile => {
  if (typeof file === "string") return file
  if ("b64" in file) return new Uint8Array(Buffer.from(file.b64, "base64"))
  if ("symlink" in file) return { _tag: "Symlink", target: file.symlink }
  if ("dir" in file) return { _tag: "Directory" }
  return {
    _tag: "File",
    bytes: new TextEncoder().encode(file.text),
    executable: /[1357]\d\d$/.test(file.mode)
  }
}
const toMemoryFiles = (files: Readonly<Record<string, HandedFile>>): Record<string, MemoryFile> =>
  Object.fromEntries(Object.entries(files).map(([path, file]) => [path, toMemory(file)]))

const asShown = (files: Readonly<Record<string, HandedFile>>) =>
  Effect.gen(function* () {
    return show(yield* (yield* open(toMemoryFiles(files))).memory.nodes)
  })

const toolCall = ({ args, op }: Case): readonly [string, Readonly<Record<string, unknown>>] =>
  op === "exact_replace"
    ? [
        "replace_text",
        { path: args["path"], old_text: args["oldText"], new_text: args["newText"], replace_all: args["all"] }
      ]
    : ["apply_patch", { patch: String(args["patch"]).replaceAll("<WORKSPACE>", "/workspace") }]

const judge = Effect.fnUntraced(function* (handed: Case) {
  const { call, memory, tree } = yield* open(toMemoryFiles(handed.files))
  const before = yield* tree
  const treeBefore = yield* memory.workspace.tree
  const observation = yield* call(...toolCall(handed))
  const after = yield* tree
  const expected = yield* asShown(handed.expectFiles)
  if (!observation.ok) {
    assert.deepStrictEqual(after, before, "an error leaves everything as it was")
    assert.strictEqual(yield* memory.workspace.tree, treeBefore)
    assert.isNotEmpty(observation.content)
    if (handed.contested !== true) assert.isString(handed.expectError, observation.content)
    return
  }
  assert.notStrictEqual(handed.guarded, "refuse", "must be refused")
  assert.strictEqual(yield* memory.workspace.tree, observation.tree)
  if (handed.contested !== true) {
    assert.isUndefined(handed.expectError, "must fail")
    assert.deepStrictEqual(after, expected)
    return
  }
  const accepted = [
    ...(handed.expectError === undefined ? [expected] : []),
    ...(isFiles(handed.alsoOk) ? [yield* asShown(handed.alsoOk)] : []),
    ...(decided[handed.name] === undefined ? [] : [decided[handed.name]])
  ]
  assert.deepInclude(accepted, after)
})

const names = ["codex-scenarios.json", "edits.json", "unified-diff.json"]
const present = names.every((name) => existsSync(folder + name))
const cases = present
  ? names
      .flatMap((name) => decodeFile(readFileSync(folder + name, "utf8")).cases)
      .filter(({ name }) => !needsDisk.has(name))
  : []

describe("handed cases", () => {
  it("are here, or it is said that they are not", (test) => {
    console.log(present ? `handed cases: ${cases.length} run` : "handed cases: absent")
    if (!present) test.skip()
    assert.isAbove(cases.length, 100)
  })
  for (const handed of cases) it.effect(handed.name, () => judge(handed))
})
