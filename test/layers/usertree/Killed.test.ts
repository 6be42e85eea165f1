import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { diffTrees, type Snapshot } from "../../support/Leaks.ts"
import { gitEnvironment, makeRepo, type Repo } from "../../support/Repo.ts"
import { attendance, bundleDriver, drive, look, remains, sourceOf } from "./support.ts"
import { about, applySource, withTree } from "./trees.ts"

const repository = () =>
  makeRepo({ files: { "a.txt": "a\n", "b.txt": "b\n", "old/c.txt": "c\n" }, dirty: { "b.txt": "b\nmine\n" } })

const change = { files: { "a.txt": "A\n", "new/d.txt": "d\n" }, removed: ["old"] }

/** The tree, and what git makes of it. */
interface Stand {
  readonly files: Snapshot
  readonly status: string
  /** How many commits there are. */
  readonly commits: string
}

interface Scene {
  readonly repo: Repo
  readonly file: string
  readonly driver: string
  readonly before: Stand
  readonly after: Readonly<Record<"apply" | "commit" | "undo", Stand>>
  /** The steps of the whole apply, with and without a commit, and of its undoing. */
  readonly steps: Readonly<Record<"apply" | "commit" | "undo", ReadonlyArray<string>>>
}

const standOf = (root: string): Stand => {
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", args, { cwd: root, env: gitEnvironment(root), encoding: "utf8" })
  return {
    files: look(root),
    status: git("status", "--porcelain"),
    commits: git("rev-list", "--count", "HEAD").trim()
  }
}

/** What an apply and its undoing look like when nothing disturbs them. */
const scene = Effect.gen(function* () {
  const repo = repository()
  yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
  repo.git("config", "user.name", "Ada")
  repo.git("config", "user.email", "ada@example.invalid")
  const source = sourceOf(repo, change)
  const file = join(repo.folder, "source.json")
  writeFileSync(file, JSON.stringify({ ...source, patch: Buffer.from(source.patch).toString("base64") }))
  const driver = yield* Effect.promise(() => bundleDriver(repo.folder))
  const before = standOf(repo.root)
  const commit: Array<string> = []
  const copy = join(repo.folder, "committed")
  cpSync(repo.root, copy, { recursive: true, verbatimSymlinks: true })
  yield* applySource(copy, source, {
    steps: (step) => Effect.sync(() => void commit.push(step)),
    commit: true
  })
  const apply: Array<string> = []
  yield* applySource(repo.root, source, { steps: (step) => Effect.sync(() => void apply.push(step)) })
  const applied = standOf(repo.root)
  cpSync(repo.root, join(repo.folder, "applied"), { recursive: true, verbatimSymlinks: true })
  const undo: Array<string> = []
  yield* withTree(
    repo.root,
    (tree) =>
      Effect.gen(function* () {
        const record = yield* tree.last(about.run_id)
        assert.isNotNull(record)
        if (record !== null) yield* tree.undo(record)
      }),
    { steps: (step) => Effect.sync(() => void undo.push(step)) }
  )
  assert.deepStrictEqual(diffTrees(before.files, look(repo.root)), [])
  const after = { apply: applied, commit: standOf(copy), undo: applied }
  const made: Scene = { repo, file, driver, before, after, steps: { apply, commit, undo } }
  return made
})

const reset = ({ repo }: Scene, from: string) => {
  const root = join(repo.folder, "victim")
  rmSync(root, { recursive: true, force: true })
  cpSync(from, root, { recursive: true, verbatimSymlinks: true })
  return root
}

const differences = (left: Stand, right: Stand): ReadonlyArray<string> => [
  ...diffTrees(left.files, right.files),
  ...(left.status === right.status ? [] : [`git status: ${left.status}, ${right.status}`]),
  ...(left.commits === right.commits ? [] : [`commits: ${left.commits}, ${right.commits}`])
]

const assertOldOrNew = (root: string, { after, before }: Scene, what: keyof Scene["after"], name: string) => {
  const now = standOf(root)
  const old = differences(before, now)
  const fresh = differences(after[what], now)
  assert.isTrue(
    old.length === 0 || fresh.length === 0,
    `${what} at ${name}: a mix\nagainst the old:\n${old.join("\n")}\nagainst the new:\n${fresh.join("\n")}`
  )
  return old.length === 0 ? "old" : "new"
}

describe("killed with SIGKILL", { timeout: 180_000 }, () => {
  it.live.each(["apply", "commit", "undo"] as const)(
    "at every step of %s, the next looplane makes it whole",
    (what) =>
      Effect.gen(function* () {
        const made = yield* scene
        const from = what === "undo" ? join(made.repo.folder, "applied") : made.repo.root
        const names = made.steps[what]
        const ends: Array<string> = []
        for (const [at, name] of names.entries()) {
          const root = reset(made, from)
          assert.strictEqual(
            yield* Effect.promise(() => drive(made.driver, [what, root, made.file, String(at)])),
            "SIGKILL"
          )
          yield* withTree(root, () => Effect.void)
          ends.push(`${name}: ${assertOldOrNew(root, made, what, name)}`)
          // What is kept is a whole apply, and one that can be undone.
          const left = yield* withTree(root, (tree) => tree.last(null))
          assert.strictEqual(remains(root).length, left === null ? 0 : 1, name)
        }
        console.log(
          `killed and made whole by the next command, ${names.length} steps of ${what}: ${ends.join(", ")}`
        )
        assert.isAbove(names.length, 4)
      }).pipe(Effect.scoped)
  )

  it.live("at every step of commit, the process beside it makes it whole without another command", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const ends: Array<string> = []
      for (const [at, name] of made.steps.commit.entries()) {
        const root = reset(made, made.repo.root)
        const end = yield* Effect.promise(async () => {
          await using present = await attendance(made.repo.folder)
          assert.strictEqual(
            await drive(made.driver, ["commit", root, made.file, String(at), present.path]),
            "SIGKILL"
          )
          await present.gone
          return assertOldOrNew(root, made, "commit", name)
        })
        ends.push(`${name}: ${end}`)
      }
      console.log(`killed and made whole by the watcher, ${ends.length} steps: ${ends.join(", ")}`)
      assert.include(ends.join(), "old")
      assert.include(ends.join(), "new")
    }).pipe(Effect.scoped)
  )

  it.live("between its branch and its index, goes on whatever the user did meanwhile", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const { file, driver, steps } = made
      const killedAt = (step: string) =>
        Effect.promise(async () => {
          const root = reset(made, made.repo.root)
          await drive(driver, ["commit", root, file, String(steps.commit.indexOf(step))])
          const git = (...args: ReadonlyArray<string>) =>
            execFileSync("git", args, { cwd: root, env: gitEnvironment(root), encoding: "utf8" }).trim()
          return { root, git, head: git("rev-parse", "HEAD") }
        })
      const recovered = (root: string) => withTree(root, (tree) => Effect.succeed(tree.recovered[0]?.outcome))

      const told = yield* killedAt("commit")
      writeFileSync(join(told.root, "a.txt"), "mine\n")
      assert.strictEqual(yield* recovered(told.root), "put_back")
      assert.strictEqual(told.git("rev-parse", "HEAD"), told.head)
      assert.strictEqual(told.git("status", "--porcelain"), "M a.txt\n M b.txt")

      // Committed by the user, from an index that knew of it: nothing is taken back.
      const taken = yield* killedAt("commit")
      taken.git("commit", "--quiet", "--message", "mine")
      assert.strictEqual(yield* recovered(taken.root), "finished")
      assert.strictEqual(taken.git("rev-parse", "HEAD^"), taken.head)
      assert.strictEqual(taken.git("show", "HEAD:a.txt"), "A")
      assert.strictEqual(readFileSync(join(taken.root, "a.txt"), "utf8"), "A\n")

      const moved = yield* killedAt("written")
      moved.git("commit", "--quiet", "--allow-empty", "--message", "mine")
      assert.strictEqual(yield* recovered(moved.root), "put_back")
      assert.strictEqual(readFileSync(join(moved.root, "a.txt"), "utf8"), "a\n")
      assert.strictEqual(moved.git("rev-parse", "HEAD^"), moved.head)

      const landed = yield* killedAt("done")
      writeFileSync(join(landed.root, "a.txt"), "mine\n")
      landed.git("commit", "--quiet", "--all", "--message", "mine")
      assert.strictEqual(yield* recovered(landed.root), "committed")
      assert.strictEqual((yield* withTree(landed.root, (tree) => tree.last(null)))?.commit, landed.head)
      assert.strictEqual(readFileSync(join(landed.root, "a.txt"), "utf8"), "mine\n")

      const locked = yield* killedAt("written")
      writeFileSync(join(locked.root, ".git", "index.lock"), "")
      const error = yield* Effect.flip(recovered(locked.root))
      assert.match(error.message, /unable to create '.*index\.lock'.*Remove it if no git is running/)
      rmSync(join(locked.root, ".git", "index.lock"))
      assert.strictEqual(yield* recovered(locked.root), "committed")
      assert.strictEqual(locked.git("status", "--porcelain"), "M b.txt")
    }).pipe(Effect.scoped)
  )
})
