/** The handed path cases that a workspace in memory can show, through the tools. */
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { MemoryFile } from "../../../src/layers/workspace/Memory.ts"
import { open } from "./harness.ts"

const file = fileURLToPath(new URL("../../../../shared/cases/paths/path-policy.json", import.meta.url))

const Setup = Schema.Record(Schema.String, Schema.Unknown)
const Operation = Schema.Struct({
  tool: Schema.Literals(["write", "read", "exact_replace"]),
  path: Schema.String,
  text: Schema.optionalKey(Schema.String),
  oldText: Schema.optionalKey(Schema.String),
  newText: Schema.optionalKey(Schema.String)
})
const Case = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  setup: Schema.Array(Setup),
  op: Schema.Unknown,
  expect: Schema.String,
  rules: Schema.optionalKey(Schema.Unknown)
})
const decodeFile = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ cases: Schema.Array(Case) }))
)
const isOperation = Schema.is(Operation)

const place = (text: string): string => text.replaceAll("<W>", "/workspace").replaceAll("<O>", "/outside")
const inside = (path: unknown): string | undefined => {
  const real = place(String(path))
  return real.startsWith("/workspace/") ? real.slice("/workspace/".length) : undefined
}

/** Undefined where a case needs what memory has not: permissions, hard links, odd names. */
const filesOf = (setup: ReadonlyArray<typeof Setup.Type>): Record<string, MemoryFile> | undefined => {
  const files: Record<string, MemoryFile> = {}
  for (const step of setup) {
    if ("mode" in step || "hardlink" in step || ("note" in step && setup.length === 1)) return undefined
    const at = inside(step["file"] ?? step["symlink"] ?? step["dir"])
    if (at === undefined) continue
    if ("symlink" in step) files[at] = { _tag: "Symlink", target: place(String(step["to"])) }
    else files[at] = "dir" in step ? { _tag: "Directory" } : String(step["text"])
  }
  return files
}

const call = (op: typeof Operation.Type): readonly [string, Readonly<Record<string, unknown>>] => {
  const path = place(op.path).replace(/^\.\.\/O\//, "../outside/")
  switch (op.tool) {
    case "write":
      return ["create_file", { path, content: op.text ?? "" }]
    case "read":
      return ["read_file", { path }]
    case "exact_replace":
      return ["replace_text", { path, old_text: op.oldText, new_text: op.newText }]
  }
}

const present = existsSync(file)
const cases = (present ? decodeFile(readFileSync(file, "utf8")).cases : []).flatMap((handed) => {
  const files = filesOf(handed.setup)
  return files === undefined || handed.rules !== undefined || !isOperation(handed.op)
    ? []
    : [{ ...handed, files, op: handed.op }]
})

describe("handed path cases", () => {
  it("are here, or it is said that they are not", (test) => {
    console.log(present ? `handed cases: ${cases.length} run` : "handed cases: absent")
    if (!present) test.skip()
    assert.isAbove(cases.length, 30)
  })
  for (const handed of cases) {
    it.effect(`${handed.id} ${handed.name}`, () =>
      Effect.gen(function* () {
        const tools = yield* open(handed.files)
        const before = yield* tools.tree
        const { content, ok } = yield* tools.call(...call(handed.op))
        if (/^(?:deny|error)/.test(handed.expect)) assert.isFalse(ok, content)
        if (handed.expect === "allow") assert.isTrue(ok, content)
        if (!ok) assert.deepStrictEqual(yield* tools.tree, before)
      })
    )
  }
})
