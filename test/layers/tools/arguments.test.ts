/** Arguments that are not what a tool asks for come back as observations that name the field. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import fc from "fast-check"
import { expect } from "vitest"
import { byteLength } from "../../../src/domain/Text.ts"
import { parametersOf } from "../../../src/layers/tools/Define.ts"
import { open } from "./harness.ts"

const files = { "a.txt": "one\ntwo\n", "b/c.txt": "three\n" }
const passing = {
  name: "test",
  argv: ["node", "--test"],
  verdict: "passed",
  exit_code: 0,
  duration_seconds: 1.25,
  tests: 3,
  reason: null,
  output: "ok"
} as const

describe("definitions", () => {
  it("are these, in this order", async () => {
    const { toolset } = await Effect.runPromise(
      open(files, { checks: { test: passing, lint: { ...passing, name: "lint" } } })
    )
    const seen = toolset.map(({ concurrent, definition, effect }) => ({ effect, concurrent, definition }))
    await expect(`${JSON.stringify(seen, null, 2)}\n`).toMatchFileSnapshot("definitions.snap")
  })

  it.effect("offer run_check only where a check is declared", () =>
    Effect.gen(function* () {
      const { toolset } = yield* open(files)
      assert.notInclude(
        toolset.map((tool) => tool.definition.name),
        "run_check"
      )
    })
  )

  it.effect("are closed objects without references or alternatives", () =>
    Effect.gen(function* () {
      const { toolset } = yield* open(files, { checks: { test: passing } })
      for (const { definition } of toolset) {
        assert.strictEqual(definition.parameters["type"], "object")
        assert.strictEqual(definition.parameters["additionalProperties"], false)
        assert.notMatch(JSON.stringify(definition), /\$|anyOf|allOf|oneOf|9007199254740991/)
      }
    })
  )

  it("keep real bounds", () => {
    const schema = Schema.Struct({ n: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 5 })) })
    assert.deepStrictEqual(parametersOf(schema), {
      type: "object",
      properties: { n: { type: "integer", minimum: 2, maximum: 5 } },
      required: ["n"],
      additionalProperties: false
    })
  })
})

describe("arguments", () => {
  it.effect("name every field that is wrong, and the fields there are", () =>
    Effect.gen(function* () {
      const { call } = yield* open(files)
      const { content, ok } = yield* call("read_file", { file_path: "a.txt", offset: 0, limit: "ten" })
      assert.isFalse(ok)
      assert.strictEqual(
        content,
        [
          "the arguments are not valid, so nothing was done:",
          "- file_path: there is no such field",
          "- path: is missing",
          "- offset: expected a value greater than or equal to 1, got 0",
          '- limit: expected number, got "ten"',
          "fields: path (required), offset, limit"
        ].join("\n")
      )
    })
  )

  it.effect("refuse a check that was not declared, naming those that were", () =>
    Effect.gen(function* () {
      const { call } = yield* open(files, { checks: { test: passing } })
      const { content, ok } = yield* call("run_check", { name: "rm" })
      assert.isFalse(ok)
      assert.include(content, '- name: expected "test", got "rm"')
    })
  )

  it.effect("take null in an optional field as its absence, and nowhere else", () =>
    Effect.gen(function* () {
      const { call } = yield* open(files)
      assert.deepStrictEqual(yield* call("read_file", { path: "a.txt", offset: null, limit: null }), {
        ok: true,
        content: "one\ntwo\n"
      })
      assert.include((yield* call("read_file", { path: null })).content, "- path: expected string, got null")
      assert.include(
        (yield* call("git_diff", { x: null })).content,
        "- x: there is no such field\nthe tool takes no arguments"
      )
    })
  )

  it.effect("have a preview, whatever they are", () =>
    Effect.gen(function* () {
      const { preview } = yield* open(files)
      assert.strictEqual(
        yield* preview("replace_text", { path: "a.txt", old_text: "one\ntwo", new_text: "1" }),
        "edit a.txt\n- one\n- two\n+ 1"
      )
      assert.strictEqual(yield* preview("create_file", { path: "a" }), 'create_file {"path":"a"}')
    })
  )

  it("of any shape never fail a call and never make its answer longer than allowed", async () => {
    const { call, toolset } = await Effect.runPromise(open(files, { limits: { max_tool_output_bytes: 200 } }))
    const names = toolset.map((tool) => tool.definition.name)
    const fields = fc.constantFrom("path", "query", "patch", "old_text", "content", "x")
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.dictionary(fields, fc.anything()),
        async (name, given) => {
          const { content } = await Effect.runPromise(call(name, given))
          assert.isAtMost(byteLength(content), 200)
        }
      ),
      { numRuns: 300 }
    )
  })
})
