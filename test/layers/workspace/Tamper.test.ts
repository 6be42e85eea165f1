/**
 * A check on the host can write wherever its user can. What it does to the run's own store must not end `verified`.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { deflateSync } from "node:zlib"
import { gitObject } from "../../../src/layers/git/Objects.ts"
import type { TreeId } from "../../../src/domain/Ids.ts"
import type { OpenWorkspace } from "../../../src/services/Workspace.ts"
import { live, openFor, repository, textOf, write } from "./support.ts"

const objectFile = (directory: string, id: string) =>
  join(directory, "git/objects", id.slice(0, 2), id.slice(2))

/** Puts other bytes in an object's place, the way a process of the same user can. */
const forge = (directory: string, id: string, kind: "blob" | "tree", content: Uint8Array) => {
  const at = objectFile(directory, id)
  mkdirSync(dirname(at), { recursive: true })
  rmSync(at, { force: true })
  writeFileSync(at, deflateSync(gitObject(kind, content, 40).bytes), { mode: 0o444 })
}

const blobId = (text: string) => gitObject("blob", Buffer.from(text), 40).id

const tracked = { "a.txt": "a\n", "test/t.txt": "must hold\n", link: { symlink: "a.txt" } } as const

/** What a place would say: the reason that there is none, or that it holds exactly these files. */
const placed = Effect.fnUntraced(function* (
  workspace: OpenWorkspace,
  tree: TreeId,
  expected: Readonly<Record<string, string>>
) {
  const result = yield* Effect.result(
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* workspace.materialise(tree)
        for (const [name, text] of Object.entries(expected))
          assert.strictEqual(readFileSync(join(place.root, name), "utf8"), text, name)
      })
    )
  )
  return Result.isSuccess(result) ? "whole" : result.failure.message
})

it.live.each([
  [
    "a blob of the base",
    (directory: string) => forge(directory, blobId("must hold\n"), "blob", Buffer.from("anything\n"))
  ],
  ["a blob of the patch", (directory: string) => forge(directory, blobId("b\n"), "blob", Buffer.from("c\n"))],
  [
    "a link's target",
    (directory: string) => forge(directory, blobId("a.txt"), "blob", Buffer.from("test/t.txt"))
  ],
  [
    "attributes and a filter",
    (directory: string) => {
      writeFileSync(join(directory, "git/info/attributes"), "* filter=x\n")
      appendFileSync(
        join(directory, "git/config"),
        '[filter "x"]\n\tsmudge = sed s/must/may/\n\tclean = sed s/may/must/\n'
      )
    }
  ],
  [
    "line endings",
    (directory: string) => {
      writeFileSync(join(directory, "git/info/attributes"), "* text eol=crlf\n")
    }
  ],
  [
    "another repository's settings",
    (directory: string) => writeFileSync(join(directory, "git/commondir"), "../elsewhere\n")
  ],
  [
    "the configuration",
    (directory: string) =>
      appendFileSync(join(directory, "git/config"), "[core]\n\tautocrlf = true\n\tsparseCheckout = true\n")
  ]
] as const)(
  "a store that was changed behind our back is never checked as if it were whole: %s",
  ([, tamper]) =>
    Effect.gen(function* () {
      const repo = yield* repository({ files: tracked })
      const { directory, workspace } = yield* openFor(repo)
      const tree = yield* workspace.apply([write("a.txt", "b\n")])
      tamper(directory)
      const said = yield* placed(workspace, tree, {
        "a.txt": "b\n",
        "test/t.txt": "must hold\n",
        link: "b\n"
      })
      assert.match(said, /own store|does not give the tree/)
    }).pipe(Effect.provide(live))
)

it.live("an untouched store is whole, however often it is asked", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: tracked })
    const { workspace } = yield* openFor(repo)
    const expected = { "a.txt": "b\n", "test/t.txt": "must hold\n", link: "b\n" }
    const tree = yield* workspace.apply([write("a.txt", "b\n")])
    assert.strictEqual(yield* placed(workspace, tree, expected), "whole")
    assert.strictEqual(yield* placed(workspace, tree, expected), "whole")
    assert.strictEqual(
      yield* placed(workspace, workspace.prepared.tree, { ...expected, "a.txt": "a\n", link: "a\n" }),
      "whole"
    )
  }).pipe(Effect.provide(live))
)

it.live("a tree that was put in another one's place is found out", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: tracked })
    const { directory, workspace } = yield* openFor(repo)
    const tree = yield* workspace.apply([write("test/t.txt", "c\n")])
    const easy = blobId("anything\n")
    forge(directory, easy, "blob", Buffer.from("anything\n"))
    const entry = (mode: string, name: string, id: string) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")])
    const inner = gitObject("tree", entry("100644", "t.txt", blobId("c\n")), 40).id
    forge(directory, inner, "tree", entry("100644", "t.txt", easy))
    assert.include(yield* placed(workspace, tree, {}), "own store")
  }).pipe(Effect.provide(live))
)

it.live("the patch is what it was before its first check ran, whatever that check did to the store", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: tracked })
    const { directory, workspace } = yield* openFor(repo)
    const tree = yield* workspace.apply([write("a.txt", "b\n"), write("new.txt", "n\n")])
    const before = yield* workspace.handOver(tree)
    yield* Effect.scoped(workspace.materialise(tree))
    for (const text of ["a\n", "b\n", "n\n"]) forge(directory, blobId(text), "blob", Buffer.from("evil\n"))
    writeFileSync(join(directory, "git/config"), "[diff]\n\tnoprefix = true\n")
    assert.deepStrictEqual(yield* workspace.diff(tree), before)
    assert.include(textOf(before.patch), "+b")
  }).pipe(Effect.provide(live))
)

it.live("a patch is never made against a base that is no longer the source's", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: tracked })
    const { directory, workspace } = yield* openFor(repo)
    forge(directory, blobId("a\n"), "blob", Buffer.from("z\n"))
    const tree = yield* workspace.apply([write("a.txt", "b\n")])
    const error = yield* Effect.flip(workspace.handOver(tree))
    assert.include(error.message, "own store")
  }).pipe(Effect.provide(live))
)

it.live(
  "a base that was made to hold what the agent added is found out: its patch would leave that out",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({ files: { "a.txt": "a\n", "in/b.txt": "b\n" } })
      const { directory, workspace } = yield* openFor(repo)
      const tree = yield* workspace.apply([write("in/b.txt", "c\n"), write("in/evil.txt", "e\n")])
      const entry = (name: string, text: string) =>
        Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blobId(text), "hex")])
      const held = gitObject("tree", entry("b.txt", "b\n"), 40).id
      forge(directory, held, "tree", Buffer.concat([entry("b.txt", "b\n"), entry("evil.txt", "e\n")]))
      const error = yield* Effect.flip(workspace.handOver(tree))
      assert.match(error.message, /own store|does not give the tree/)
    }).pipe(Effect.provide(live))
)

it.live("a submodule is checked as it was when the run began, or not at all", () =>
  Effect.gen(function* () {
    const inner = yield* repository({ files: { "in.txt": "in\n" } })
    const repo = yield* repository({ files: tracked })
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.root, "mod")
    repo.git("commit", "-qm", "submodule")
    const source = { root: repo.root, head: repo.git("rev-parse", "HEAD") }
    const forged = yield* openFor(source)
    const expected = { "mod/in.txt": "in\n" }
    assert.strictEqual(yield* placed(forged.workspace, forged.workspace.prepared.tree, expected), "whole")
    const id = blobId("in\n")
    const at = join(forged.directory, "modules/0/objects", id.slice(0, 2), id.slice(2))
    rmSync(at, { force: true })
    mkdirSync(dirname(at), { recursive: true })
    writeFileSync(at, deflateSync(gitObject("blob", Buffer.from("other\n"), 40).bytes))
    assert.include(yield* placed(forged.workspace, forged.workspace.prepared.tree, expected), "own store")
    const planted = yield* openFor(source)
    writeFileSync(join(planted.directory, "modules/0/info/attributes"), "* text eol=crlf\n")
    assert.include(yield* placed(planted.workspace, planted.workspace.prepared.tree, expected), "own store")
  }).pipe(Effect.provide(live))
)

it.live("what set-up installed is checked as it was put aside, or not at all", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { ...tracked, ".gitignore": "node_modules/\n" } })
    const setup = [["sh", "-c", "mkdir -p node_modules/x && echo 1 > node_modules/x/i.js"]] as const
    const { directory, workspace } = yield* openFor(repo, { setup })
    const name = "node_modules/x/i.js"
    const at = join(directory, "deps", name)
    assert.strictEqual(yield* placed(workspace, workspace.prepared.tree, { [name]: "1\n" }), "whole")
    const { atime, mtime } = statSync(at)
    writeFileSync(at, "2\n")
    utimesSync(at, atime, mtime)
    assert.include(yield* placed(workspace, workspace.prepared.tree, {}), "what set-up had installed")
  }).pipe(Effect.provide(live))
)
