import { assert, describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { renderSection } from "../../src/domain/Prompt.ts"
import {
  nudges,
  overviewOf,
  promptVersion,
  systemPrompt,
  taskMessage
} from "../../src/domain/SystemPrompt.ts"
import { Task } from "../../src/domain/Task.ts"
import { exampleTask } from "../support/tasks.ts"

const tools = [
  { name: "read_file", description: "Reads a file.", effect: "read" },
  { name: "replace_text", description: "Replaces one exact piece of text.", effect: "modify" }
] as const
const sections = systemPrompt({
  task: exampleTask,
  tools,
  repository: { files: 2, overview: "package.json\nsrc/add.js", instructions: [] }
})

describe("systemPrompt", () => {
  it("is exactly these bytes; a change of them is a change of the version", () => {
    expect({
      promptVersion,
      system: sections.map(renderSection).join("\n\n"),
      task: taskMessage(exampleTask),
      nudges: [
        nudges.lengthCut,
        nudges.emptyAnswer,
        nudges.readOnlyStall(4, 10),
        nudges.windDown,
        nudges.checksFailed("OUT")
      ]
    }).toMatchSnapshot()
  })

  it("puts the stable sections first and keeps them the same for every task of a toolset", () => {
    const firstDynamic = sections.findIndex((section) => section.cache === "dynamic")
    assert.isTrue(sections.slice(firstDynamic).every((section) => section.cache === "dynamic"))
    const other = Schema.decodeSync(Task)({
      ...exampleTask,
      instruction: "Another.",
      subdirectory: "packages/a"
    })
    const again = systemPrompt({
      task: other,
      tools,
      repository: { files: 0, overview: "", instructions: [{ source: "AGENTS.md", content: "Be brief." }] }
    })
    const stable = (all: typeof sections) => all.filter((section) => section.cache === "stable")
    assert.deepStrictEqual(stable(again), stable(sections))
    assert.include(
      again.find((section) => section.name === "instructions")?.content,
      "From AGENTS.md:\nBe brief."
    )
  })

  it("stays bounded for a repository of any size and instructions of any length", () => {
    const paths = Array.from({ length: 100_000 }, (_, i) => `d${i % 3}/f${i}`)
    const big = systemPrompt({
      task: exampleTask,
      tools,
      repository: {
        files: paths.length,
        overview: overviewOf(paths),
        instructions: [{ source: "AGENTS.md", content: "x".repeat(1_000_000) }]
      }
    })
    assert.isBelow(big.map(renderSection).join("").length, 40_000)
    assert.include(big.at(-1)?.content, "d0/ (33334 files)")
  })
})
