/**
 * A check on the host can write wherever its user can. What it does to the run's own store must not end `verified`.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { execFileSync } from "node:child_process"
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { deflateSync } from "node:zlib"
import { gitObject } from "../../../src/layers/git/Objects.ts"
import type { TreeId } from "../../../src/domain/Ids.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, textOf, write } from "./support.ts"

const objectFile = (directory: string, id: string) => join(directory, "git/objects", id.slice(0, 2), id.slice(2))

/** Puts other bytes in an object's place, the way a process of the same user can. */
const forge = (directory: string, id: string, kind: "blob" | "tree", content: Uint8Array) => {
  const at = objectFile(directory, id)
  mkdirSync(dirname(at), { recursive: true })
  rmSync(at, { force: true })
  writeFileSync(at, deflateSync(gitObject(kind, content, 40).bytes), { mode: 0o444 })
}

const blobId = (text: string) => gitObject("blob", Buffer.from(text), 40).id

const tracked = { "a.txt": "a\n", "test/t.txt": "must hold\n", link: { symlink: "a.txt" } } as const

const refusedOrExact = Effect.fnUntraced(function* (
  workspace: import("../../../src/services/Workspace.ts").OpenWorkspace,
  tree: TreeId,
  expected: Readonly<Record<string, string>>
) {
  const placed = yield* Effect.result(Effect.scoped(
    Effect.gen(function* () {
      const place = yield* workspace.materialise(tree)
      for (const [name, text] of Object.entries(expected))
        assert.strictEqual(readFileSync(join(place.root, name), "utf8"), text, name)
    })
  ))
  return Result.isSuccess(placed) ? "exact" : placed.failure.message
})

it.live.each([
  ["a blob of the base", (directory: string) => forge(directory, blobId("must hold\n"), "blob", Buffer.from("anything\n"))],
  ["a blob of the patch", (directory: string) => forge(directory, blobId("b\n"), "blob", Buffer.from("c\n"))],
  ["a link's target", (directory: string) => forge(directory, blobId("a.txt"), "blob", Buffer.from("test/t.txt"))],
  [
    "attributes and a filter",
    (directory: string) => {
      writeFileSync(join(directory, "git/info/attributes"), "* filter=x\n")
      appendFileSync(join(directory, "git/config"), '[filter "x"]\n\tsmudge = sed s/must/may/\n\tclean = sed s/may/must/\n')
    }
  ],
  [
    "line endings",
    (directory: string) => {
      writeFileSync(join(directory, "git/info/attributes"), "* text eol=crlf\n")
    }
  ],
  ["the configuration", (directory: string) => appendFileSync(join(directory, "git/config"), "[core]\n\tautocrlf = true\n\tsparseCheckout = true\n")]
] as const)("a store that was changed behind our back is never checked as if it were whole: %s", ([, tamper]) =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: tracked })
    const { directory, workspace } = yield* openFor(repo)
    const tree = yield* workspace.apply([write("a.txt", "b\n")])
    tamper(directory)
    const outcome = yield* refusedOrExact(workspace, tree, { "a.txt": "b\n", "test/t.txt": "must hold\n", link: "b\n" })
    if (outcome !== "exact") assert.include(outcome, "store")
  }).pipe(Effect.provide(live))
)
