import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { CommitId } from "../../../src/domain/Ids.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { hostileRepo } from "../../support/repos/hostile.ts"
import { live, openFor, scratch, textOf, write } from "./support.ts"

const hostile = Effect.gen(function* () {
  const folder = yield* scratch
  return yield* Effect.acquireRelease(
    Effect.sync(() => hostileRepo(join(folder, "marker"))),
    (repo) => Effect.sync(() => repo.dispose())
  )
})

it.live("runs nothing that a repository planted, and leaves it byte for byte as it was", () =>
  Effect.gen(function* () {
    const repo = yield* hostile
    repo.write({ "README.md": "changed in the source\n", "untracked.js": "x\n" })
    const before = snapshotTree(repo.root)
    const { workspace } = yield* openFor(repo)
    const tree = yield* workspace.apply([write("picture.bin", "\0new"), write("shown.txt", "other\n")])
    yield* workspace.scan
    const { files, patch } = yield* workspace.diff(tree)
    yield* Effect.scoped(Effect.flatMap(workspace.materialise(tree), (place) => place.wrote))
    yield* workspace.unrecorded
    yield* workspace.restore(workspace.prepared.tree)
    assert.deepStrictEqual(repo.ran(), [])
    assertUntouched(before, snapshotTree(repo.root))
    assert.deepStrictEqual(
      files.map((file) => file.path),
      ["picture.bin", "shown.txt"]
    )
    // Raw attributes must not turn texts into binary patches.
    assert.include(textOf(patch), "-handled by the diff command\n+other\n")
    assert.includeMembers([...workspace.prepared.left_out], ["README.md", "untracked.js"])
  }).pipe(Effect.provide(live))
)

it.live("takes the working tree of a hostile repository without running anything", () =>
  Effect.gen(function* () {
    const repo = yield* hostile
    repo.write({ "src/extra.js": "export const extra = 1\n", "long.txt": "changed\n" })
    const before = snapshotTree(repo.root)
    const { workspace } = yield* openFor(repo, {
      base: { kind: "working_tree", commit: CommitId.make(repo.head) }
    })
    assert.deepStrictEqual(repo.ran(), [])
    assertUntouched(before, snapshotTree(repo.root))
    assert.strictEqual(readFileSync(join(workspace.root, "long.txt"), "utf8"), "changed\n")
    assert.strictEqual(readFileSync(join(workspace.root, "src/extra.js"), "utf8"), "export const extra = 1\n")
  }).pipe(Effect.provide(live))
)
