import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Git from "../../../src/layers/receipt/Git.ts"
import { Reproduction } from "../../../src/services/Reproduction.ts"
import { Workspaces } from "../../../src/services/Workspace.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { live, openFor, repository, taskFor } from "../workspace/support.ts"

const world = Layer.mergeAll(live, Git.layer.pipe(Layer.provide(NodeServices.layer)))

/** Everything that a plain text diff is not enough for. */
const odd = {
  files: {
    "bin.dat": { b64: Buffer.from([0, 1, 2, 255, 10, 0]).toString("base64") },
    "gone.dat": { b64: Buffer.from([0, 7]).toString("base64") },
    "tool.sh": { text: "#!/bin/sh\n", mode: 0o755 },
    "crlf.txt": "one\r\ntwo\r\n",
    link: { symlink: "tool.sh" },
    ".gitattributes": "*.txt text eol=lf\n*.dat filter=planted diff=planted\n* ident\n",
    ".gitignore": "ignored/\n"
  }
}

/** What an agent leaves in a workspace. */
const change = (root: string) => {
  writeFileSync(join(root, "bin.dat"), Buffer.from([0, 1, 3, 255, 10, 0, 0]))
  rmSync(join(root, "gone.dat"))
  chmodSync(join(root, "tool.sh"), 0o644)
  writeFileSync(join(root, "crlf.txt"), "one\r\nthree\ntwo\r\n$Id$")
  rmSync(join(root, "link"))
  symlinkSync("crlf.txt", join(root, "link"))
  mkdirSync(join(root, "new dir"))
  writeFileSync(join(root, "new dir", "ü.txt"), "no newline at the end")
  writeFileSync(join(root, ".gitignore"), "")
  mkdirSync(join(root, "empty"))
  writeFileSync(join(root, "empty", "e"), "")
}

describe("a patch on its base again", () => {
  it.effect("gives the tree that it was made from, whatever is in it, and the source stays as it is", () =>
    Effect.gen(function* () {
      const repo = yield* repository(odd)
      const made = yield* openFor(repo)
      change(made.workspace.root)
      const tree = yield* made.workspace.scan
      const { patch } = yield* made.workspace.handOver(tree)
      const before = snapshotTree(repo.root)
      const reproduction = yield* Reproduction
      const workspaces = yield* Workspaces
      const place = yield* reproduction.place
      const workspace = yield* workspaces.open({ task: taskFor(repo), directory: place })
      assert.strictEqual(yield* reproduction.patched({ place, workspace, patch }), tree)
      assert.strictEqual(
        yield* reproduction.patched({ place, workspace, patch: new Uint8Array() }),
        workspace.prepared.tree
      )
      assert.strictEqual(yield* workspace.scan, workspace.prepared.tree, "the workspace itself is the base")
      const fresh = yield* workspace.materialise(tree)
      assert.isTrue(existsSync(join(fresh.root, "new dir", "ü.txt")))
      const other = yield* reproduction.patched({
        place,
        workspace,
        patch: Buffer.from(Buffer.from(patch).toString("latin1").replace("+three", "+four"), "latin1")
      })
      assert.notStrictEqual(other, tree)
      assertUntouched(before, snapshotTree(repo.root))
    }).pipe(Effect.scoped, Effect.provide(world))
  )

  it.effect("that does not apply, or leads out of the tree, changes nothing", () =>
    Effect.gen(function* () {
      const repo = yield* repository({ files: { a: "1\n" } })
      const reproduction = yield* Reproduction
      const workspaces = yield* Workspaces
      const place = yield* reproduction.place
      const workspace = yield* workspaces.open({ task: taskFor(repo), directory: place })
      const header = (path: string) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n`
      for (const text of [
        `${header("a")}@@ -1 +1 @@\n-2\n+3\n`,
        `${header("b")}@@ -1 +1 @@\n-1\n+3\n`,
        "diff --git a/../out b/../out\nnew file mode 100644\n--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n",
        "no patch at all\n"
      ]) {
        const error = yield* Effect.flip(
          reproduction.patched({ place, workspace, patch: new TextEncoder().encode(text) })
        )
        assert.include(error.message, "does not apply", text)
        assert.notInclude(error.message, "\n")
      }
      assert.isFalse(existsSync(join(place, "out")))
      assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
    }).pipe(Effect.scoped, Effect.provide(world))
  )

  it.effect("happens in a place that is gone afterwards, whatever was done to it", () =>
    Effect.gen(function* () {
      const reproduction = yield* Reproduction
      const made = yield* Effect.scoped(
        Effect.map(reproduction.place, (place) => {
          mkdirSync(join(place, "locked"))
          writeFileSync(join(place, "locked", "x"), "x")
          chmodSync(join(place, "locked"), 0o500)
          return place
        })
      )
      assert.isFalse(existsSync(made))
      assert.isFalse(readdirSync(tmpdir()).some((name) => made.endsWith(name)))
    }).pipe(Effect.provide(world))
  )
})
