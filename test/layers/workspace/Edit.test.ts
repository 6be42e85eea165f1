import { assert, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { live, openFor, remove, repository, textOf, write } from "./support.ts"

const files = {
  "a.txt": "a\n",
  "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
  "dir/only.txt": "only\n",
  "dir2/x.txt": "x\n",
  link: { symlink: "a.txt" },
  ".gitignore": "*.log\n"
}

it.live("writes, creates, deletes and changes kinds in one edit, and the tree says so", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* repository({ files }))
    const tree = yield* workspace.apply([
      write("a.txt", "A\n"),
      write("deep/er/new.sh", "new\n", true),
      remove("dir/only.txt"),
      remove("dir2/x.txt"),
      write("dir2", "a file now\n"),
      write("forced.log", "ignored, and ours\n")
    ])
    assert.strictEqual(yield* workspace.tree, tree)
    assert.strictEqual(yield* workspace.scan, tree)
    const { files: changed } = yield* workspace.diff(tree)
    assert.deepStrictEqual(changed, [
      { path: "a.txt", change: "modified" },
      { path: "deep/er/new.sh", change: "added" },
      { path: "dir/only.txt", change: "deleted" },
      { path: "dir2", change: "added" },
      { path: "dir2/x.txt", change: "deleted" },
      { path: "forced.log", change: "added" }
    ])
    assert.isFalse(existsSync(join(workspace.root, "dir")))
    assert.strictEqual(lstatSync(join(workspace.root, "deep/er/new.sh")).mode & 0o111, 0o111)
    const place = yield* workspace.materialise(tree)
    assert.strictEqual(readFileSync(join(place.root, "forced.log"), "utf8"), "ignored, and ours\n")
    assert.deepStrictEqual(yield* place.wrote, [])
  }).pipe(Effect.provide(live))
)

it.live("keeps the mode of a file and the symlink that leads to it", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* repository({ files }))
    chmodSync(join(workspace.root, "a.txt"), 0o640)
    yield* workspace.apply([write("link", "through\n"), write("run.sh", "#!/bin/sh\nexit 0\n", true)])
    assert.strictEqual(readlinkSync(join(workspace.root, "link")), "a.txt")
    assert.strictEqual(readFileSync(join(workspace.root, "a.txt"), "utf8"), "through\n")
    assert.strictEqual(lstatSync(join(workspace.root, "a.txt")).mode & 0o7777, 0o640)
    const { patch } = yield* workspace.diff(yield* workspace.tree)
    assert.notMatch(textOf(patch), /^(old|new) mode/m)
    yield* workspace.apply([remove("link")])
    assert.isTrue(existsSync(join(workspace.root, "a.txt")))
  }).pipe(Effect.provide(live))
)

it.live("undoes every change when one of them cannot be made, and leaves no litter", () =>
  Effect.gen(function* () {
    const { directory, workspace } = yield* openFor(yield* repository({ files }))
    mkdirSync(join(workspace.root, "occupied"))
    writeFileSync(join(workspace.root, "occupied/x"), "x")
    const before = snapshotTree(workspace.root)
    const tree = yield* workspace.tree
    const good = [remove("dir/only.txt"), write("a.txt", "changed\n"), write("deep/er/new.txt", "new\n")]
    const bad = [
      write("occupied", "x"),
      write("run.sh/below", "x"),
      write("../out", "x"),
      write(".git/hooks/pre-commit", "x"),
      remove("missing"),
      write("a.txt", "twice\n")
    ]
    for (const change of bad) {
      const exit = yield* Effect.exit(workspace.apply([...good, change]))
      assert.isTrue(Exit.isFailure(exit), change.path)
      assertUntouched(before, snapshotTree(workspace.root))
      assert.strictEqual(yield* workspace.tree, tree)
    }
    assert.deepStrictEqual(readdirSync(join(directory, "staging")), [])
    assert.isFalse(existsSync(join(directory, "git", "index.lock")))
  }).pipe(Effect.provide(live))
)

it.live("undoes what is on disk when the tree cannot be recorded", () =>
  Effect.gen(function* () {
    const { directory, workspace } = yield* openFor(yield* repository({ files }))
    const before = snapshotTree(workspace.root)
    rmSync(join(directory, "git/refs/looplane/trees"), { recursive: true })
    writeFileSync(join(directory, "git/refs/looplane/trees"), "")
    const error = yield* Effect.flip(workspace.apply([write("a.txt", "changed\n"), remove("dir/only.txt")]))
    assert.strictEqual(error._tag, "WorkspaceError")
    assertUntouched(before, snapshotTree(workspace.root))
    rmSync(join(directory, "git/refs/looplane/trees"))
    mkdirSync(join(directory, "git/refs/looplane/trees"))
    const tree = yield* workspace.apply([write("a.txt", "changed\n")])
    assert.strictEqual(yield* workspace.scan, tree)
  }).pipe(Effect.provide(live))
)

it.live("puts the workspace back to any state that it had", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* repository({ files }))
    const first = yield* workspace.apply([write("a.txt", "1\n"), write("forced.log", "kept\n")])
    const one = snapshotTree(workspace.root)
    yield* workspace.apply([remove("forced.log"), remove("a.txt"), write("a.txt/below", "2\n")])
    mkdirSync(join(workspace.root, "made/by/command"), { recursive: true })
    writeFileSync(join(workspace.root, "made/by/command/x"), "x")
    writeFileSync(join(workspace.root, "run.sh"), "changed unseen")
    yield* workspace.restore(first)
    const without = (all: ReturnType<typeof snapshotTree>) =>
      new Map([...all].filter(([path]) => path !== ".git" && !path.startsWith(".git/")))
    assertUntouched(without(one), without(snapshotTree(workspace.root)))
    assert.strictEqual(yield* workspace.tree, first)
    assert.strictEqual(yield* workspace.scan, first)
    yield* workspace.restore(workspace.prepared.tree)
    assert.isFalse(existsSync(join(workspace.root, "forced.log")))
  }).pipe(Effect.provide(live))
)

it.live("lists what a check wrote in its place, and removes the place whatever modes it left", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* repository({ files }))
    const root = yield* Effect.scoped(
      Effect.gen(function* () {
        const place = yield* workspace.materialise(workspace.prepared.tree)
        writeFileSync(join(place.root, "a.txt"), "written\n")
        writeFileSync(join(place.root, "out.log"), "ignored\n")
        mkdirSync(join(place.root, "locked"))
        writeFileSync(join(place.root, "locked/x"), "x")
        symlinkSync("/etc", join(place.root, "locked/etc"))
        chmodSync(join(place.root, "locked"), 0o555)
        assert.deepStrictEqual(yield* place.wrote, ["a.txt", "locked/etc", "locked/x", "out.log"])
        assert.strictEqual(readFileSync(join(workspace.root, "a.txt"), "utf8"), "a\n")
        return place.root
      })
    )
    assert.isFalse(existsSync(root))
    assert.isTrue(existsSync("/etc"))
  }).pipe(Effect.provide(live))
)
