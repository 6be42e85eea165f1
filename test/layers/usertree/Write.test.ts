import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync
} from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { parentsOf } from "../../../src/domain/WorkspacePath.ts"
import { diffTrees } from "../../support/Leaks.ts"
import { makeRepo, type Files, type FileSpec, type Repo } from "../../support/Repo.ts"
import { look, remains, sameLook, sourceOf, type Change } from "./support.ts"
import { about, applySource, message, planOf, withTree } from "./trees.ts"

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join("")

const files: Files = {
  "a.txt": lines(1, 30),
  "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
  "dir/gone.txt": "gone\n",
  "dir/deep/also.txt": "also\n",
  link: { symlink: "a.txt" },
  "bin.dat": { b64: Buffer.from([0, 1, 2, 255, 254, 10, 13]).toString("base64") },
  "näme with space.txt": "ü\n"
}

const fresh = (more: Files = {}) => makeRepo({ files: { ...files, ...more } })

/** Everything that a patch can do, at once. */
const everything: Change = {
  files: {
    "a.txt": lines(1, 30).replace("line 3\n", "line three\n"),
    "run.sh": { text: "#!/bin/sh\n", mode: 0o644 },
    "näme with space.txt": { text: "ö\n", mode: 0o755 },
    "new/file.txt": "new\n",
    link: { symlink: "run.sh" },
    "bin.dat": { b64: Buffer.from([0, 9, 9, 255]).toString("base64") }
  },
  removed: ["dir"]
}

const status = (repo: Repo) => repo.git("status", "--porcelain", "--untracked-files=all")

describe("a clean apply", () => {
  it.effect("writes every kind of change, as git apply would, and leaves the index alone", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      repo.write({ "staged.txt": "staged\n" })
      repo.git("add", "staged.txt")
      const source = sourceOf(repo, everything)
      const index = readFileSync(join(repo.root, ".git", "index"))
      const { plan, record } = yield* applySource(repo.root, source)
      assert.deepStrictEqual(plan.conflicts, [])
      assert.strictEqual(record?.phase, "done")
      assert.deepStrictEqual(readFileSync(join(repo.root, ".git", "index")), index)
      repo.git("add", "--all", "--force")
      repo.git("rm", "--quiet", "--cached", "staged.txt")
      assert.strictEqual(repo.git("write-tree"), source.tree)
      assert.strictEqual(readlinkSync(join(repo.root, "link")), "run.sh")
      assert.strictEqual(lstatSync(join(repo.root, "run.sh")).mode & 0o777, 0o644)
      assert.isUndefined(lstatSync(join(repo.root, "dir"), { throwIfNoEntry: false }))
    })
  )

  it.effect("undone is the tree of before, modes and empty places included", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      chmodSync(join(repo.root, "dir"), 0o750)
      chmodSync(join(repo.root, "a.txt"), 0o640)
      const before = look(repo.root)
      const source = sourceOf(repo, everything)
      yield* applySource(repo.root, source)
      assert.isFalse(sameLook(before, look(repo.root)))
      assert.strictEqual(lstatSync(join(repo.root, "a.txt")).mode & 0o777, 0o640)
      const changed = yield* withTree(repo.root, (tree) =>
        Effect.flatMap(tree.last(about.run_id), (record) =>
          record === null ? Effect.succeed(["no record"]) : tree.undo(record)
        )
      )
      assert.deepStrictEqual(changed, [])
      assert.isTrue(sameLook(before, look(repo.root)))
      assert.strictEqual(status(repo), "")
      assert.deepStrictEqual(remains(repo.root), [])
    })
  )

  it.effect("turns a directory into a file and a file into a directory, and back", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const before = look(repo.root)
      const source = sourceOf(repo, {
        removed: ["dir", "a.txt"],
        files: { dir: "now a file\n", "a.txt/inside.txt": "now a directory\n" }
      })
      const { plan } = yield* applySource(repo.root, source)
      assert.deepStrictEqual(plan.conflicts, [])
      assert.strictEqual(repo.read("dir"), "now a file\n")
      assert.strictEqual(repo.read("a.txt/inside.txt"), "now a directory\n")
      yield* withTree(repo.root, (tree) =>
        Effect.flatMap(tree.last(null), (record) => (record === null ? Effect.void : tree.undo(record)))
      )
      assert.isTrue(sameLook(before, look(repo.root)))
    })
  )
})

describe("whatever the patch and whatever the user did", () => {
  const names = ["a.txt", "dir/gone.txt", "dir/deep/also.txt", "run.sh", "link", "new", "new/file.txt"]
  const contents = fc.oneof(
    fc.constantFrom<FileSpec>(lines(1, 30), lines(2, 31), "short\n", "", { symlink: "a.txt" }),
    fc.record({ text: fc.constantFrom("#!/bin/sh\n", lines(1, 29)), mode: fc.constantFrom(0o644, 0o755) })
  )
  const edits = fc.array(fc.tuple(fc.constantFrom(...names), fc.option(contents)), { maxLength: 5 })
  // A file cannot stand below another one.
  const sound = (list: ReadonlyArray<readonly [string, FileSpec | null]>) => {
    const last = new Map(list)
    if (last.has("new/file.txt")) last.delete("new")
    return [...last]
  }
  const changeOf = (list: ReadonlyArray<readonly [string, FileSpec | null]>): Change => ({
    files: Object.fromEntries(sound(list).flatMap(([path, spec]) => (spec === null ? [] : [[path, spec]]))),
    removed: sound(list).flatMap(([path, spec]) => (spec === null && path in files ? [path] : []))
  })
  const meddle = (repo: Repo, { files: written = {}, removed = [] }: Change) => {
    for (const path of removed) rmSync(join(repo.root, path))
    repo.write(written)
  }
  const runs = 12

  it.live(
    "an apply and its undo are the identity, and nothing outside of the patch is ever touched",
    () =>
      Effect.gen(function* () {
        let written = 0
        for (const [patch, user] of fc.sample(fc.tuple(edits, edits), { numRuns: runs, seed: 3 })) {
          const repo = fresh()
          const source = sourceOf(repo, changeOf(patch))
          if (source.patch.length === 0) {
            repo.dispose()
            continue
          }
          meddle(repo, changeOf(user))
          const before = look(repo.root)
          const { plan, record } = yield* applySource(repo.root, source)
          const touched = diffTrees(before, look(repo.root)).map(
            (line) => line.slice(2).split(/[:\s]/)[0] ?? ""
          )
          const allowed = new Set(plan.steps.flatMap(({ path }) => [path, ...parentsOf(path)]))
          assert.deepStrictEqual(
            touched.filter((path) => !allowed.has(path)),
            []
          )
          if (record !== null && plan.steps.length > 0) {
            written++
            yield* withTree(repo.root, (tree) => tree.undo(record))
          }
          assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
          repo.dispose()
        }
        assert.isAbove(written, 2)
        console.log(`apply and undo: ${runs} trees and patches, ${written} of them written`)
      }),
    60_000
  )
})

describe("a tree that moved on", () => {
  it.effect("is merged where both changed different lines", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      repo.write({ "a.txt": lines(1, 30).replace("line 25\n", "mine\n") })
      const { plan } = yield* applySource(repo.root, source)
      assert.deepStrictEqual(
        plan.steps.filter((step) => step.merged).map((step) => step.path),
        ["a.txt"]
      )
      assert.strictEqual(
        repo.read("a.txt"),
        lines(1, 30).replace("line 3\n", "line three\n").replace("line 25\n", "mine\n")
      )
    })
  )

  const clashes: ReadonlyArray<readonly [string, (repo: Repo) => void, string]> = [
    ["the same line", (repo) => repo.write({ "a.txt": lines(1, 30).replace("line 3\n", "mine\n") }), "a.txt"],
    ["a deleted file", (repo) => repo.write({ "dir/gone.txt": "mine\n" }), "dir/gone.txt"],
    ["a file that is gone", (repo) => rmSync(join(repo.root, "a.txt")), "a.txt"],
    ["a binary file", (repo) => repo.write({ "bin.dat": { b64: "AAEC" } }), "bin.dat"],
    ["an untracked file in the way", (repo) => repo.write({ "new/file.txt": "mine\n" }), "new/file.txt"],
    ["a file where a directory must be", (repo) => repo.write({ new: "mine\n" }), "new/file.txt"],
    ["a link", (repo) => repo.write({ link: { symlink: "mine" } }), "link"]
  ]
  it.effect.each(clashes)("conflicts in %s, and nothing is written", ([, meddle, path]) =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      meddle(repo)
      const before = look(repo.root)
      const { plan, record } = yield* applySource(repo.root, source)
      assert.deepStrictEqual(
        plan.conflicts.map((each) => each.path),
        [path]
      )
      assert.isNull(record)
      assert.isTrue(sameLook(before, look(repo.root)))
    })
  )

  it.effect("gets conflict markers when that is asked for, and loses none of the user's lines", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      repo.write({ "a.txt": lines(1, 30).replace("line 3\n", "mine\n"), "bin.dat": { b64: "AAEC" } })
      const plan = yield* withTree(repo.root, (tree) =>
        Effect.gen(function* () {
          const plan = yield* planOf(tree, source, true)
          yield* tree.write(plan.steps, about, null)
          return plan
        })
      )
      assert.deepStrictEqual(
        plan.conflicts.map((each) => each.path),
        ["a.txt", "bin.dat"]
      )
      const merged = repo.read("a.txt")
      assert.match(
        merged,
        /<<<<<<< yours\nmine\n\|\|\|\|\|\|\| base\nline 3\n=======\nline three\n>>>>>>> patch\n/
      )
      assert.deepStrictEqual(readFileSync(join(repo.root, "bin.dat")), Buffer.from("AAEC", "base64"))
    })
  )

  it.effect(
    "keeps what it has merged already: a second apply writes nothing, and the first can be undone",
    () =>
      Effect.gen(function* () {
        const repo = fresh()
        yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
        const source = sourceOf(repo, {
          files: { "a.txt": lines(1, 30).replace("line 3\n", "line three\n") }
        })
        const mine = lines(1, 30).replace("line 25\n", "mine\n")
        repo.write({ "a.txt": mine })
        yield* applySource(repo.root, source)
        const { plan } = yield* applySource(repo.root, source)
        assert.deepStrictEqual([plan.steps, plan.kept], [[], ["a.txt"]])
        yield* withTree(repo.root, (tree) =>
          Effect.gen(function* () {
            const record = yield* tree.last(null)
            if (record !== null) assert.deepStrictEqual(yield* tree.undo(record), [])
          })
        )
        assert.strictEqual(repo.read("a.txt"), mine)
      })
  )

  it.effect("of which a sparse checkout leaves out what the patch changes: says so", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, { files: { "a.txt": "changed\n" } })
      repo.git("update-index", "--skip-worktree", "a.txt")
      rmSync(join(repo.root, "a.txt"))
      const { plan } = yield* applySource(repo.root, source)
      assert.match(plan.conflicts[0]?.reason ?? "", /left out of your checkout.*--branch NAME/)
    })
  )

  it.effect("keeps what it has already", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      yield* applySource(repo.root, source)
      const { plan } = yield* applySource(repo.root, source)
      assert.deepStrictEqual(plan.steps, [])
      assert.deepStrictEqual(plan.conflicts, [])
    })
  )
})

describe("line endings", () => {
  const crlf = (text: string) => text.replaceAll("\n", "\r\n")
  const checkout = (repo: Repo, setting: string) => {
    repo.git("config", "core.autocrlf", setting)
    rmSync(join(repo.root, "a.txt"))
    repo.git("checkout", "--", "a.txt")
  }

  it.effect("of a checkout with core.autocrlf stay, and git sees only what the patch changed", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      checkout(repo, "true")
      assert.strictEqual(repo.read("a.txt"), crlf(lines(1, 30)))
      const { plan } = yield* applySource(repo.root, source)
      assert.deepStrictEqual(plan.conflicts, [])
      assert.strictEqual(repo.read("a.txt"), crlf(lines(1, 30).replace("line 3\n", "line three\n")))
      assert.strictEqual(repo.read("new/file.txt"), "new\r\n")
      assert.strictEqual(repo.git("diff", "--numstat", "--", "a.txt"), "1\t1\ta.txt")
    })
  )

  it.effect("of a checkout with core.autocrlf stay in a merge, the user's own included", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      checkout(repo, "true")
      repo.write({ "a.txt": crlf(lines(1, 30)).replace("line 25\r\n", "mine\n") })
      yield* applySource(repo.root, source)
      assert.strictEqual(
        repo.read("a.txt"),
        crlf(lines(1, 30)).replace("line 25\r\n", "mine\n").replace("line 3\r\n", "line three\r\n")
      )
    })
  )
})

describe("what is refused", () => {
  it.effect("a directory that became a symbolic link", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const outside = join(repo.folder, "outside")
      mkdirSync(outside)
      const source = sourceOf(repo, everything)
      symlinkSync(outside, join(repo.root, "new"))
      const error = yield* Effect.flip(applySource(repo.root, source))
      assert.match(error.message, /"new" is a symbolic link/)
    })
  )

  it.effect("a repository of its own", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      mkdirSync(join(repo.root, "new", ".git"), { recursive: true })
      const error = yield* Effect.flip(applySource(repo.root, source))
      assert.match(error.message, /repository of its own/)
    })
  )

  it.effect("a patch that does not give the tree that was checked", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      const other = sourceOf(repo, { files: { "a.txt": "other\n" } })
      const error = yield* Effect.flip(applySource(repo.root, { ...source, patch: other.patch }))
      assert.match(error.message, /does not give the tree/)
    })
  )

  it.effect("a second apply at the same time", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const error = yield* withTree(repo.root, () => Effect.flip(withTree(repo.root, () => Effect.void)))
      assert.match(error.message, /another looplane is applying/)
      assert.strictEqual(error.reason, "refused")
    })
  )
})

describe("an apply that fails in the middle", () => {
  it.effect.each([null, message])("puts everything back, at whichever step (commit: %j)", (commit) =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      repo.git("config", "user.name", "Ada")
      repo.git("config", "user.email", "ada@example.invalid")
      const source = sourceOf(repo, everything)
      const before = look(repo.root)
      const status = repo.git("status", "--porcelain")
      const names: Array<string> = []
      let dying: string | null = "nowhere"
      const steps = (step: string) =>
        Effect.suspend(() => {
          if (dying === "nowhere") names.push(step)
          return step === dying ? Effect.die(new Error(step)) : Effect.void
        })
      yield* withTree(
        repo.root,
        (tree) =>
          Effect.gen(function* () {
            const plan = yield* planOf(tree, source)
            yield* tree.undo(yield* tree.write(plan.steps, about, null))
            names.splice(names.indexOf("told"))
            const points = [...names.slice(0, -1), ...(commit === null ? [] : ["index", "commit"]), "done"]
            assert.includeMembers(points, ["record", "keep 0", "prepared", "write 0", "written", "done"])
            for (const name of points) {
              dying = name
              assert.isTrue(Exit.isFailure(yield* Effect.exit(tree.write(plan.steps, about, commit))), name)
              assert.strictEqual(repo.git("rev-parse", "HEAD"), repo.head, name)
              assert.strictEqual(repo.git("status", "--porcelain"), status, name)
              assert.deepStrictEqual(diffTrees(before, look(repo.root)), [], name)
              assert.deepStrictEqual(remains(repo.root), [], name)
            }
          }),
        { steps }
      )
    })
  )

  it.effect("because HEAD moves between the index and the branch, leaves nothing of it staged", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      repo.git("config", "user.name", "Ada")
      repo.git("config", "user.email", "ada@example.invalid")
      const source = sourceOf(repo, everything)
      const before = look(repo.root)
      const error = yield* Effect.flip(
        applySource(repo.root, source, {
          commit: true,
          steps: (step) =>
            Effect.sync(() => {
              // A commit of something else, made past the index.
              if (step === "commit")
                repo.git(
                  "update-ref",
                  "HEAD",
                  repo.git("commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}")
                )
            })
        })
      )
      assert.match(error.message, /nothing is applied/)
      assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
      assert.strictEqual(status(repo), "")
      assert.strictEqual(repo.git("rev-parse", "HEAD^"), repo.head)
    })
  )

  it.effect("loses nothing that the user made anew where the patch had deleted", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      const plan = yield* withTree(repo.root, (tree) => planOf(tree, source))
      const deleted = plan.steps.find((step) => step.to === undefined)?.path ?? ""
      const was = repo.read(deleted)
      yield* Effect.exit(
        applySource(repo.root, source, {
          steps: (step) =>
            step === "written"
              ? Effect.andThen(
                  Effect.sync(() => repo.write({ [deleted]: "anew\n" })),
                  Effect.die(new Error("no more"))
                )
              : Effect.void
        })
      )
      assert.strictEqual(repo.read(deleted), "anew\n")
      const [id = ""] = remains(repo.root)
      const kept = readdirSync(join(repo.root, ".git", "looplane", "applied", id))
      assert.include(
        kept
          .filter((name) => name.endsWith(".before"))
          .map((name) => readFileSync(join(repo.root, ".git", "looplane", "applied", id, name), "utf8")),
        was
      )
    })
  )

  it.effect("because the user writes at the same time, loses nothing of what the user wrote", () =>
    Effect.gen(function* () {
      const repo = fresh()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, everything)
      const before = look(repo.root)
      const error = yield* Effect.flip(
        applySource(repo.root, source, {
          steps: (step) =>
            Effect.sync(() => {
              if (step === "write 6") repo.write({ "run.sh": { text: "mine\n", mode: 0o755 } })
            })
        })
      )
      assert.match(error.message, /run\.sh was changed while/)
      assert.strictEqual(repo.read("run.sh"), "mine\n")
      repo.write({ "run.sh": { text: "#!/bin/sh\n", mode: 0o755 } })
      assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
    })
  )
})
