/**
 * Repositories that are odd or were made to attack whoever clones them: what opening, diffing and handing over does with
 * them. The handed path cases on what the product itself does (058, 069, 070) are among them, as their kinds.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, write } from "./support.ts"

const blob = (repo: { readonly root: string; readonly folder: string }, content: string) =>
  execFileSync("git", ["hash-object", "-w", "--stdin"], {
    cwd: repo.root,
    env: gitEnvironment(repo.folder),
    input: content,
    encoding: "utf8"
  }).trim()

/** A commit whose tree was made entry by entry, past everything that git checks when it adds. */
const commitOf = (
  repo: { readonly root: string; readonly folder: string; readonly head: string },
  lines: ReadonlyArray<Buffer>
) => {
  const git = (args: ReadonlyArray<string>, input: Buffer) =>
    execFileSync("git", args, { cwd: repo.root, env: gitEnvironment(repo.folder), input })
      .toString()
      .trim()
  const tree = git(
    ["mktree", "-z", "--missing"],
    Buffer.concat(lines.map((line) => Buffer.concat([line, Buffer.from([0])])))
  )
  return git(["commit-tree", "-m", "crafted", "-p", repo.head, tree], Buffer.alloc(0))
}

it.live("a submodule whose path or name leads out writes nothing outside", () =>
  Effect.gen(function* () {
    for (const [path, name] of [
      ["../../O/s", "x"],
      ["s", "../../../O/s"],
      ["s", "../x"],
      ["-u./evil", "x"]
    ] as const) {
      const repo = yield* repository({ files: { "kept.txt": "kept\n" } })
      const outside = join(repo.folder, "O")
      mkdirSync(outside)
      const modules = blob(repo, `[submodule "${name}"]\n\tpath = ${path}\n\turl = ./x\n`)
      const head = commitOf(repo, [
        Buffer.from(`100644 blob ${modules}\t.gitmodules`),
        Buffer.from(`160000 commit ${repo.head}\ts`)
      ])
      const before = snapshotTree(repo.folder)
      const opened = yield* Effect.result(openFor({ root: repo.root, head }))
      assertUntouched(before, snapshotTree(repo.folder))
      assert.deepStrictEqual(readdirSync(outside), [], path)
      if (opened._tag === "Success") {
        const { directory, workspace } = opened.success
        assert.deepStrictEqual(readdirSync(workspace.root).toSorted(), [".git", ".gitmodules", "s"])
        assert.notInclude(readdirSync(directory), "O")
      }
    }
  }).pipe(Effect.provide(live))
)

it.live("a tree with a git directory, in whatever spelling, or a path that climbs, plants none", () =>
  Effect.gen(function* () {
    for (const name of [".git", ".GIT", "git~1", ".git\u200c", "..", "a\\..\\b"]) {
      const repo = yield* repository({ files: { "kept.txt": "kept\n" } })
      const evil = blob(repo, "[core]\n\tfsmonitor = touch planted\n")
      const inner = commitOf(repo, [Buffer.from(`100644 blob ${evil}\tconfig`)])
      const tree = execFileSync("git", ["rev-parse", `${inner}^{tree}`], {
        cwd: repo.root,
        encoding: "utf8"
      }).trim()
      const head = commitOf(repo, [
        Buffer.from(`040000 tree ${tree}\t${name}`),
        Buffer.from(`100644 blob ${evil}\tplain`)
      ])
      const before = snapshotTree(repo.folder)
      const opened = yield* Effect.result(openFor({ root: repo.root, head }))
      assertUntouched(before, snapshotTree(repo.folder))
      if (opened._tag === "Failure") continue
      const { directory, workspace } = opened.success
      yield* workspace.scan
      assert.isFalse(existsSync(join(workspace.root, "planted")), name)
      assert.isFalse(existsSync(join(directory, "config")), name)
    }
  }).pipe(Effect.provide(live))
)

it.live("of files that Git LFS keeps elsewhere, a check sees the content, and the patch the pointers", () =>
  Effect.gen(function* () {
    const content = "the real content\n".repeat(100)
    const oid = createHash("sha256").update(content).digest("hex")
    const pointerTo = (id: string) =>
      `version https://git-lfs.github.com/spec/v1\noid sha256:${id}\nsize ${content.length}\n`
    const repo = yield* repository({
      files: {
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        "a.bin": pointerTo(oid),
        "missing.bin": pointerTo("0".repeat(64)),
        "code.js": "1\n"
      }
    })
    const store = join(repo.root, ".git/lfs/objects", oid.slice(0, 2), oid.slice(2, 4))
    mkdirSync(store, { recursive: true })
    writeFileSync(join(store, oid), content)
    const { workspace } = yield* openFor(repo)
    const tree = yield* workspace.apply([write("code.js", "2\n")])
    const place = yield* workspace.materialise(tree)
    assert.strictEqual(readFileSync(join(place.root, "a.bin"), "utf8"), content)
    assert.strictEqual(readFileSync(join(place.root, "missing.bin"), "utf8"), pointerTo("0".repeat(64)))
    assert.deepStrictEqual(yield* place.wrote, [])
    assert.deepStrictEqual(
      (yield* workspace.handOver(tree)).files.map(({ path }) => path),
      ["code.js"]
    )
  }).pipe(Effect.scoped, Effect.provide(live))
)

it.live("names that are no UTF-8, or that only differ in case or form, are neither lost nor confused", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "Readme.md": "x\n", "kept.txt": "kept\n" } })
    const bytes = Buffer.from([0x66, 0xff, 0x6f])
    const held = blob(repo, "bytes\n")
    const head = commitOf(repo, [
      Buffer.from(`100644 blob ${held}\tReadme.md`),
      Buffer.from(`100644 blob ${held}\tcafe\u0301`),
      Buffer.from(`100644 blob ${held}\tcaf\u00e9`),
      Buffer.concat([Buffer.from(`100644 blob ${held}\t`), bytes])
    ])
    const { workspace } = yield* openFor({ root: repo.root, head })
    const names = yield* workspace.list("")
    assert.strictEqual(names.length, 4)
    assert.includeMembers([...names], ["Readme.md", "cafe\u0301", "caf\u00e9"])
    // Only the case changes.
    const tree = yield* workspace.apply([
      { _tag: "Delete", path: "Readme.md" },
      write("README.md", "x\n"),
      write("caf\u00e9", "changed\n")
    ])
    const { files, patch } = yield* workspace.handOver(tree)
    assert.deepStrictEqual(files.map(({ change, path }) => `${change} ${path}`).toSorted(), [
      "added README.md",
      "deleted Readme.md",
      "modified caf\u00e9"
    ])
    writeFileSync(join(repo.folder, "p.patch"), patch)
    const copy = join(repo.folder, "copy")
    execFileSync("git", ["clone", "-q", "--no-checkout", repo.root, copy], {
      env: gitEnvironment(repo.folder)
    })
    const git = (...args: ReadonlyArray<string>) =>
      execFileSync("git", args, { cwd: copy, env: gitEnvironment(repo.folder), encoding: "utf8" }).trim()
    git("fetch", "-q", repo.root, head)
    git("checkout", "-q", head)
    git("apply", "--index", join(repo.folder, "p.patch"))
    assert.strictEqual(git("write-tree"), tree)
  }).pipe(Effect.provide(live))
)
