import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeRepo, type Repo } from "../../support/Repo.ts"
import { diffTrees } from "../../support/Leaks.ts"
import { bundleDriver, look, remains, sourceOf } from "./support.ts"
import { about, applySource, withTree } from "./trees.ts"

const repository = (): Repo => makeRepo({ files: { "a.txt": "a\n", "b.txt": "b\n", "sub/c.txt": "c\n" } })
const change = { files: { "a.txt": "A\n", "b.txt": "B\n", "sub/c.txt": "C\n", "sub/new/d.txt": "d\n" } }
const records = (root: string) => join(root, ".git", "looplane", "applied")

/** Leaves an apply half done: a process that stops there without a chance to put anything back. */
const cutOff = (root: string, source: ReturnType<typeof sourceOf>) =>
  Effect.gen(function* () {
    // Nothing can be put back while the record cannot be reached.
    const hidden = `${records(root)}-hidden`
    yield* Effect.exit(
      applySource(root, source, {
        steps: (step) =>
          step === "write 2"
            ? Effect.sync(() => {
                execFileSync("cp", ["-a", records(root), hidden])
              }).pipe(Effect.andThen(Effect.die(new Error("cut off"))))
            : Effect.void
      })
    )
    rmSync(records(root), { recursive: true })
    execFileSync("mv", [hidden, records(root)])
    for (const [path, content] of [
      ["a.txt", "A\n"],
      ["b.txt", "B\n"]
    ] as const) {
      // What the steps before had done.
      writeFileSync(join(root, path), content)
    }
  })

describe("an apply that was cut off", () => {
  it.effect("is put back by whoever opens the tree next, and says so", () =>
    Effect.gen(function* () {
      const repo = repository()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const before = look(repo.root)
      yield* cutOff(repo.root, sourceOf(repo, change))
      assert.isAbove(diffTrees(before, look(repo.root)).length, 0)
      const recovered = yield* withTree(repo.root, (tree) => Effect.succeed(tree.recovered))
      assert.deepStrictEqual(recovered, [
        { run_id: about.run_id, outcome: "put_back", foreign: [], saved: null }
      ])
      assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
      assert.deepStrictEqual(remains(repo.root), [])
    })
  )

  it.effect("leaves what the user changed since, keeps what that was, and puts the rest back", () =>
    Effect.gen(function* () {
      const repo = repository()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      yield* cutOff(repo.root, sourceOf(repo, change))
      repo.write({ "b.txt": "mine\n" })
      const recovered = yield* withTree(repo.root, (tree) => Effect.succeed(tree.recovered))
      assert.deepStrictEqual(recovered[0]?.foreign, ["b.txt"])
      assert.strictEqual(repo.read("b.txt"), "mine\n")
      assert.strictEqual(repo.read("a.txt"), "a\n")
      const saved = recovered[0]?.saved ?? ""
      const kept = readdirSync(saved).map((name) => readFileSync(join(saved, name), "utf8"))
      assert.include(kept, "b\n")
      // It is settled: nothing is said of it again, and an apply may follow.
      assert.deepStrictEqual(yield* withTree(repo.root, (tree) => Effect.succeed(tree.recovered)), [])
    })
  )

  it.effect("whose record is damaged is not guessed about", () =>
    Effect.gen(function* () {
      const repo = repository()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      yield* cutOff(repo.root, sourceOf(repo, change))
      const [id = ""] = readdirSync(records(repo.root))
      writeFileSync(join(records(repo.root), id, "record.json"), "{")
      const before = look(repo.root)
      const error = yield* Effect.flip(withTree(repo.root, () => Effect.void))
      assert.match(error.message, /record\.json cannot be read.*compare your files/)
      assert.notInclude(error.message, "\n")
      assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
    })
  )
})

describe("a record that somebody planted", () => {
  it.effect("reaches nothing outside of the tree, through no link, and no git directory", () =>
    Effect.gen(function* () {
      const repo = repository()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const outside = join(repo.folder, "outside")
      mkdirSync(outside)
      writeFileSync(join(outside, "x"), "theirs\n")
      symlinkSync(outside, join(repo.root, "link"))
      const directory = join(records(repo.root), "0")
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      const hooks = ".git/hooks/post-checkout"
      const paths = ["../outside/x", join(outside, "x"), "link/x", hooks, "a/../../outside/x"]
      paths.forEach((_, at) => writeFileSync(join(directory, `${at}.before`), "planted\n"))
      writeFileSync(
        join(directory, "record.json"),
        JSON.stringify({
          ...{ version: 1, id: "0", ...about, created_at: "", phase: "prepared", commit: null },
          files: paths.map((path) => ({
            ...{ path, change: "modified", merged: false },
            before: { kind: "file", digest: "0".repeat(64), executable: false, mode: 0o644 },
            after: { kind: "absent" }
          })),
          made: ["../outside"],
          emptied: [{ path: "../outside", mode: 0 }]
        })
      )
      const recovered = yield* withTree(repo.root, (tree) => Effect.succeed(tree.recovered))
      assert.deepStrictEqual(recovered[0]?.foreign, paths)
      assert.strictEqual(readFileSync(join(outside, "x"), "utf8"), "theirs\n")
      assert.deepStrictEqual(readdirSync(outside), ["x"])
      assert.isFalse(existsSync(join(repo.root, hooks)))
    })
  )

  it.effect("is not even looked at behind a link", () =>
    Effect.gen(function* () {
      const repo = repository()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const outside = join(repo.folder, "outside")
      mkdirSync(join(outside, "applied", "0"), { recursive: true })
      symlinkSync(outside, join(repo.root, ".git", "looplane"))
      const error = yield* Effect.flip(withTree(repo.root, () => Effect.void))
      assert.match(error.message, /is no directory/)
      assert.deepStrictEqual(readdirSync(join(outside, "applied")), ["0"])
    })
  )
})

describe("odd places", () => {
  it.effect("a linked work tree has records of its own", () =>
    Effect.gen(function* () {
      const repo = repository()
      yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
      const source = sourceOf(repo, change)
      const linked = join(repo.folder, "linked")
      repo.git("worktree", "add", "--quiet", "--detach", linked)
      const main = look(repo.root)
      yield* applySource(linked, source)
      assert.strictEqual(readFileSync(join(linked, "a.txt"), "utf8"), "A\n")
      assert.deepStrictEqual(diffTrees(main, look(repo.root)), [])
      assert.deepStrictEqual(remains(repo.root), [])
      assert.lengthOf(readdirSync(join(repo.root, ".git", "worktrees", "linked", "looplane", "applied")), 1)
    })
  )

  it.effect("a git directory on another disk than the files", (context) =>
    Effect.gen(function* () {
      const memory = "/dev/shm"
      if (!existsSync(memory) || statSync(memory).dev === statSync(tmpdir()).dev)
        return context.skip("there is no second disk here")
      const repo = repository()
      const elsewhere = mkdtempSync(join(memory, "looplane-git-"))
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          repo.dispose()
          rmSync(elsewhere, { recursive: true })
        })
      )
      const source = sourceOf(repo, change)
      execFileSync("mv", [join(repo.root, ".git"), join(elsewhere, "git")])
      writeFileSync(join(repo.root, ".git"), `gitdir: ${join(elsewhere, "git")}\n`)
      const before = look(repo.root)
      for (const step of ["write 1", "written"]) {
        yield* Effect.exit(
          applySource(repo.root, source, {
            steps: (name) => (name === step ? Effect.die(new Error(step)) : Effect.void)
          })
        )
        assert.deepStrictEqual(diffTrees(before, look(repo.root)), [], step)
      }
      yield* applySource(repo.root, source)
      assert.strictEqual(repo.read("a.txt"), "A\n")
      assert.deepStrictEqual(
        readdirSync(join(repo.root, "sub")).toSorted(),
        ["c.txt", "new"],
        "no temporary file stays"
      )
    })
  )

  it.live(
    "a directory that cannot be written: everything is put back, and one line names the path",
    (context) =>
      Effect.gen(function* () {
        // Root may write everywhere, so another user has to try.
        const uid = process.getuid?.() === 0 ? 65534 : undefined
        const repo = repository()
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            chmodSync(join(repo.root, "sub"), 0o755)
            repo.dispose()
          })
        )
        const source = sourceOf(repo, change)
        const driver = yield* Effect.promise(() => bundleDriver(repo.folder))
        const file = join(repo.folder, "source.json")
        writeFileSync(
          file,
          JSON.stringify({ ...source, patch: Buffer.from(source.patch).toString("base64") })
        )
        chmodSync(join(repo.root, "sub"), 0o555)
        if (uid !== undefined) execFileSync("chown", ["-R", `${uid}:${uid}`, repo.folder])
        const before = look(repo.root)
        const ran = yield* Effect.promise(
          () =>
            new Promise<{ readonly code: number | null; readonly stderr: string }>((resolve, reject) => {
              const child = spawn(process.execPath, [driver, "apply", repo.root, file, "-1"], {
                stdio: ["ignore", "ignore", "pipe"],
                env: { PATH: process.env["PATH"], HOME: repo.folder },
                ...(uid === undefined ? {} : { uid, gid: uid })
              })
              let stderr = ""
              child.stderr.setEncoding("utf8").on("data", (part: string) => (stderr += part))
              child.once("error", reject)
              child.once("close", (code) => resolve({ code, stderr }))
            })
        ).pipe(Effect.catchDefect(() => Effect.succeed(null)))
        if (ran === null) return context.skip("this Node cannot be run by another user")
        assert.strictEqual(ran.code, 1, ran.stderr)
        assert.match(ran.stderr, /sub\/c\.txt cannot be written, and nothing is applied: permission denied/)
        assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
        assert.deepStrictEqual(remains(repo.root), [])
      })
  )
})
