import { Result } from "effect"
import { assert, describe, it } from "vitest"
import type { FileNode } from "../../../src/domain/patch/FileSet.ts"
import { pathsOf, planPatch } from "../../../src/domain/patch/Patch.ts"
import { applyPatch, file, limits, readerOf, renderDiff, treeOf } from "./support.ts"

const paths = (patch: string): ReadonlyArray<string> | string =>
  Result.match(pathsOf(patch), { onFailure: ({ reason }) => reason, onSuccess: (found) => found })

const codex =
  "*** Begin Patch\n*** Add File: ./new/a\n+x\n*** Update File: b\n*** Move to: d/c\n@@\n-1\n+2\n" +
  "*** Delete File: e\n*** Update File: new/a\n@@\n-x\n+y\n*** End Patch\n"

const unified =
  renderDiff("new/a", undefined, "x\n") +
  "diff --git a/b b/d/c\nsimilarity index 100%\nrename from b\nrename to d/c\n" +
  renderDiff("e", "1\n", undefined)

describe("pathsOf", () => {
  it("names every path of either format once, in order", () => {
    assert.deepStrictEqual(paths(codex), ["new/a", "b", "d/c", "e"])
    assert.deepStrictEqual(paths(unified), ["new/a", "b", "d/c", "e"])
  })

  it.each([
    ["", "empty"],
    ["hello", "malformed"],
    ["*** Begin Patch\n*** Delete File: x\n", "truncated"],
    ["*** Begin Patch\n*** Add File: .git/config\n+x\n*** End Patch", "invalid_path"],
    ["*** Begin Patch\n*** Update File: a\n*** Move to: ../a\n*** End Patch", "invalid_path"],
    [renderDiff("../a", "x\n", "y\n"), "invalid_path"],
    ["--- src/f\n+++ src/f\n@@ -1 +1 @@\n-a\n+b\n", "malformed"]
  ])("fails on %j as applying would", (patch, reason) => {
    assert.strictEqual(paths(patch), reason)
    const applied = applyPatch(patch, () => undefined)
    assert.strictEqual(Result.isFailure(applied) ? applied.failure.reason : "", reason)
  })

  it("is all that applying reads, with the directories above", () => {
    const nodes = Result.getOrThrow(planPatch(codex, limits)).nodes
    assert.deepStrictEqual(nodes, ["new", "new/a", "b", "d", "d/c", "e"])
    const asked = new Set<string>()
    const tree = new Map<string, FileNode>([
      ["b", file("1\n")],
      ["e", file("1\n")]
    ])
    for (const patch of [codex, unified]) {
      const read = (path: string): FileNode | undefined => {
        asked.add(path)
        return tree.get(path)
      }
      assert.isTrue(Result.isSuccess(applyPatch(patch, read)))
    }
    assert.deepStrictEqual(
      [...asked].filter((path) => !nodes.includes(path)),
      []
    )
  })
})

describe("planPatch", () => {
  it("gives each path once, deletions first", () => {
    const tree = treeOf({ b: file("1\n", true), e: "1\n" })
    const changes = Result.getOrThrow(applyPatch(codex, readerOf(tree)))
    assert.deepStrictEqual(
      changes.map((change) => [change._tag, change.path, change._tag === "Write" && change.executable]),
      [
        ["Delete", "b", false],
        ["Delete", "e", false],
        ["Write", "new/a", false],
        ["Write", "d/c", true]
      ]
    )
  })

  it("leaves out what comes back to what it was", () => {
    const back =
      "*** Begin Patch\n*** Update File: b\n@@\n-1\n+2\n*** Update File: b\n@@\n-2\n+1\n*** Add File: n\n+x\n*** End Patch"
    const changes = Result.getOrThrow(applyPatch(back, readerOf(treeOf({ b: "1\n" }))))
    assert.deepStrictEqual(
      changes.map(({ path }) => path),
      ["n"]
    )
  })

  const three = ["a", "b", "c"].map((path) => renderDiff(path, undefined, "é\n")).join("")
  const sized = { bytes: new TextEncoder().encode(three).length, lines: three.split("\n").length - 1 }
  it.each([
    ["bytes", { ...limits, max_patch_bytes: sized.bytes }, { ...limits, max_patch_bytes: sized.bytes - 1 }],
    ["lines", { ...limits, max_patch_lines: sized.lines }, { ...limits, max_patch_lines: sized.lines - 1 }],
    ["files", { ...limits, max_changed_files: 3 }, { ...limits, max_changed_files: 2 }]
  ])("holds the limit of %s exactly", (_, enough, less) => {
    assert.isTrue(Result.isSuccess(applyPatch(three, () => undefined, enough)))
    const refused = applyPatch(three, () => undefined, less)
    assert.strictEqual(Result.isFailure(refused) ? refused.failure.reason : "", "too_large")
  })

  it("patches a large file in many places in time that grows with its size", () => {
    const lines = Array.from({ length: 50_000 }, (_, at) => `line ${at % 7 === 0 ? at : at % 3}\n`)
    const after = lines.map((line, at) => (at % 150 === 0 ? `changed ${at}\n` : line))
    const before = treeOf({ big: `shift\n${lines.join("")}` })
    const hunks = after.flatMap((line, at) => {
      const around = (from: number, to: number) =>
        lines
          .slice(Math.max(0, from), to)
          .map((text) => ` ${text}`)
          .join("")
      if (at % 150 !== 0 || at === 0) return []
      const body = `${around(at - 4, at)}-${lines[at]}+${line}${around(at + 1, at + 5)}`
      return [`@@ -${at - 3},9 +${at - 3},9 @@\n${body}`]
    })
    const patch = `--- a/big\n+++ b/big\n${hunks.join("")}`
    const changes = Result.getOrThrow(applyPatch(patch, readerOf(before)))
    const change = changes[0]
    const expected = `shift\n${lines[0]}${after.slice(1).join("")}`
    assert.strictEqual(change?._tag === "Write" ? new TextDecoder().decode(change.bytes) : "", expected)
  })
})
