/**
 * The workspace in memory is the real one's stand-in: what the real one refuses it refuses, and it is opened again alike.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { FileChange } from "../../../src/domain/patch/FileSet.ts"
import { layerWorkspaces } from "../../../src/layers/Test.ts"
import { makeMemoryWorkspace } from "../../../src/layers/workspace/Memory.ts"
import { Workspaces } from "../../../src/services/Workspace.ts"
import { exampleTask } from "../../support/tasks.ts"
import { live, openFor, remove, repository, textOf, write } from "./support.ts"

const files = { "a.txt": "a\n", "dir/b.txt": "b\n" } as const
const options = { task: exampleTask, directory: "/runs/one" }

it.effect("is put back to the recorded tree, says what stood there, and keeps its trees", () =>
  Effect.gen(function* () {
    const memory = yield* makeMemoryWorkspace(files)
    yield* Effect.gen(function* () {
      const workspaces = yield* Workspaces
      const first = yield* workspaces.open(options)
      assert.isNull(first.found)
      const { prepared } = first
      const tree = yield* first.apply([write("a.txt", "edited\n")])
      yield* memory.put("a.txt", "half")
      const again = yield* workspaces.open({ ...options, resume: { prepared, tree } })
      assert.strictEqual(
        again.found,
        yield* first.restore(again.found ?? tree).pipe(Effect.andThen(first.scan))
      )
      assert.notStrictEqual(again.found, tree)
      const third = yield* workspaces.open({ ...options, resume: { prepared, tree } })
      assert.strictEqual(yield* third.scan, tree)
      assert.include(textOf((yield* third.diff(tree)).patch), "+edited")
      const clean = yield* workspaces.open({ ...options, resume: { prepared, tree } })
      assert.strictEqual(clean.found, tree)
      const anew = yield* workspaces.open(options)
      assert.strictEqual(yield* anew.scan, prepared.tree)
      const back = yield* workspaces.open({ ...options, resume: { prepared, tree } })
      assert.strictEqual(yield* back.scan, tree)
    }).pipe(Effect.scoped, Effect.provide(layerWorkspaces(memory)))
  })
)

const edits: ReadonlyArray<readonly [name: string, changes: ReadonlyArray<FileChange>]> = [
  ["a file", [write("a.txt", "x")]],
  ["a new file", [write("new/deep.txt", "x")]],
  ["a path twice", [write("a.txt", "x"), write("a.txt", "y")]],
  ["a path and its link", [write("link", "x"), write("a.txt", "y")]],
  ["through a link", [write("link", "x")]],
  ["a link away", [remove("link")]],
  ["out through a link", [write("out/x", "x")]],
  ["a directory", [write("dir", "x")]],
  ["a directory whose files go", [remove("dir/b.txt"), write("dir", "x")]],
  ["below a file", [write("a.txt/x", "x")]],
  ["below a file that goes", [remove("a.txt"), write("a.txt/x", "x")]],
  ["a directory away", [remove("dir")]],
  ["nothing away", [remove("missing")]],
  ["the root", [write("dir/..", "x")]],
  ["a git directory", [write("dir/.git/x", "x")]]
]

it.live(
  "takes and refuses the edits that the real one does, and holds the same afterwards",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({
        files: { ...files, link: { symlink: "a.txt" }, out: { symlink: "/etc" } }
      })
      const { workspace: real } = yield* openFor(repo)
      const memory = yield* makeMemoryWorkspace({
        ...files,
        link: { _tag: "Symlink", target: "a.txt" },
        out: { _tag: "Symlink", target: "/etc" }
      })
      for (const [name, changes] of edits) {
        const outcomes = yield* Effect.forEach([real, memory.workspace], (workspace) =>
          Effect.gen(function* () {
            const reason = yield* Effect.match(workspace.apply(changes), {
              onFailure: (error) => error.reason,
              onSuccess: () => "made"
            })
            const paths = yield* workspace.list(".")
            const shown = yield* Effect.forEach(paths, (path) =>
              Effect.map(workspace.read(path, 100), (node) =>
                node?._tag === "File" ? [textOf(node.bytes), node.executable] : node
              )
            )
            yield* workspace.restore(workspace.prepared.tree)
            return { reason, paths, shown }
          })
        )
        assert.deepStrictEqual(outcomes[1], outcomes[0], name)
      }
    }).pipe(Effect.provide(live)),
  60_000
)
