import { Result } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import type { FileChange, FileNode } from "../../../src/domain/patch/FileSet.ts"
import { type PatchError, refuse } from "../../../src/domain/patch/PatchError.ts"
import { replaceText } from "../../../src/domain/patch/Replace.ts"
import { applyPatch, file, readerOf, shown, type Tree, utf8, withChanges } from "./support.ts"

const folder = fileURLToPath(new URL("../../../../shared/cases/patch/", import.meta.url))
const sources = ["codex-scenarios.json", "edits.json", "unified-diff.json"]
const present = sources.every((name) => existsSync(folder + name))
if (!present) console.log("handed cases: absent")

/** About a disk that refuses to be written: the workspace's tests run it. */
const elsewhere = ["codex-unit/read-only-dir"]

/**
 * Good tools differ on these. Ours does what is written here: "expected" as the case's own tools do, "refused" with the
 * tree unchanged, or the tree that the case's `alsoOk` names.
 */
const contested: Readonly<Record<string, "expected" | "refused" | Readonly<Record<string, string>>>> = {
  "codex-scenario/010_move_overwrites_existing_destination": "refused",
  "codex-scenario/011_add_overwrites_existing_file": "refused",
  "codex-scenario/014_update_file_appends_trailing_newline": "expected",
  "codex-scenario/015_failure_after_partial_success_leaves_changes": "refused",
  "codex-scenario/016_pure_addition_update_chunk": "expected",
  "exact/first-of-many": "refused",
  "exact/crlf-file-lf-args": "expected",
  "exact/dup-across-endings": "refused",
  "exact/bom-crlf": "expected",
  "exact/trailing-blanks": "refused",
  "exact/smart-quotes": "refused",
  "exact/tabs-vs-spaces": "refused",
  "exact/empty-old-missing": "refused",
  "exact/no-change": "refused",
  "codex-unit/append-after-blank-crlf": "expected",
  "codex-unit/crlf-no-final-newline": { "n.txt": "ONE\r\ntwo" },
  "codex-unit/pure-add-then-removal": "expected",
  "codex-unit/unicode-dash-fuzzy": "refused",
  "codex-unit/absolute-path-inside": "refused",
  "codex-unit/move-without-change": { b: "1\n" },
  "codex-unit/add-over-binary": "refused",
  "codex-unit/add-then-update-same": "expected",
  "codex-unit/heredoc-wrapped": "expected",
  "codex-unit/update-empty-file": "expected",
  "codex-unit/add-empty-file": "expected",
  "unified/absolute-path": "refused",
  "unified/append-fragment-not-at-end": "refused",
  "unified/prepend-fragment-not-at-start": "refused",
  "unified/wrong-counts": "refused",
  "unified/no-counts": "refused",
  "unified/offset": "refused",
  "unified/lf-file-crlf-patch": "refused",
  "unified/empty-not-removed": "expected",
  "unified/bom-missing-in-patch": "refused",
  "unified/no-prefix": "refused",
  "unified/submodule-pointer": "refused"
}

type Json = Readonly<Record<string, unknown>>
const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null

const text = (value: unknown): string => {
  if (typeof value !== "string") assert.fail(`no text: ${JSON.stringify(value)}`)
  return value
}

const nodeOf = (value: unknown): FileNode => {
  if (typeof value === "string") return file(value)
  if (!isRecord(value)) assert.fail(`no file: ${JSON.stringify(value)}`)
  if (value["b64"] !== undefined) return file(new Uint8Array(Buffer.from(text(value["b64"]), "base64")))
  if (value["symlink"] !== undefined) return { _tag: "Symlink", target: text(value["symlink"]) }
  const executable = value["mode"] !== undefined && (Number.parseInt(text(value["mode"]), 8) & 0o100) !== 0
  return file(text(value["text"]), executable)
}

const treeOf = (value: unknown): Tree => {
  if (!isRecord(value)) assert.fail("no tree")
  return new Map(Object.entries(value).map(([path, node]) => [path, nodeOf(node)]))
}

const run = (each: Json, tree: Tree): Result.Result<ReadonlyArray<FileChange>, PatchError> => {
  const args = isRecord(each["args"]) ? each["args"] : {}
  if (each["op"] !== "exact_replace") return applyPatch(text(args["patch"]), readerOf(tree))
  const path = text(args["path"])
  const node = tree.get(path)
  if (node?._tag !== "File") return refuse("not_a_file", path)
  const { bytes, executable } = node
  const after = replaceText({
    path,
    bytes,
    oldText: text(args["oldText"]),
    newText: text(args["newText"]),
    all: args["all"] === true
  })
  return Result.map(after, (bytes) => [{ _tag: "Write", path, bytes, executable }])
}

describe("handed patch cases", () => {
  it.skipIf(!present)("come out as each case or its contested choice says", () => {
    const all = sources.flatMap((name) => {
      const content: unknown = JSON.parse(readFileSync(folder + name, "utf8"))
      const cases = isRecord(content) ? content["cases"] : undefined
      return Array.isArray(cases) ? cases.filter(isRecord) : []
    })
    const names = all.map((each) => text(each["name"]))
    const left = names.filter((name) => elsewhere.includes(name))
    assert.deepStrictEqual(left, elsewhere)
    const wrong: Array<unknown> = []
    for (const each of all) {
      const name = text(each["name"])
      if (elsewhere.includes(name)) continue
      const before = treeOf(each["files"])
      const result = run(each, before)
      const choice = contested[name]
      if (each["contested"] === true && choice === undefined)
        wrong.push(`${name}: contested, without a choice`)
      const fails = each["expectError"] !== undefined || each["guarded"] === "refuse"
      const refuses = choice === "refused" || (fails && (choice === undefined || choice === "expected"))
      const given = typeof choice === "object" ? treeOf(choice) : treeOf(each["expectFiles"])
      const expected = refuses ? "refused" : shown(given)
      const actual = Result.match(result, {
        onFailure: (): unknown => "refused",
        onSuccess: (changes): unknown => shown(withChanges(before, changes))
      })
      if (JSON.stringify(actual) !== JSON.stringify(expected)) {
        const why = Result.isFailure(result) ? result.failure.message : undefined
        wrong.push({ name, actual, expected, why })
      }
    }
    console.log(`handed cases: ${all.length - left.length} run, ${left.length} left to the workspace's tests`)
    assert.deepStrictEqual(wrong, [])
  })

  it("shows trees byte for byte", () => {
    assert.deepStrictEqual(shown(new Map([["a", file(utf8("é\n"), true)]])), { a: 'x "Ã©\\n"' })
  })
})
