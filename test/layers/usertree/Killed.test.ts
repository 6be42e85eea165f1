import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { cpSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { diffTrees, type Snapshot } from "../../support/Leaks.ts"
import { makeRepo, type Repo } from "../../support/Repo.ts"
import { attendance, bundleDriver, drive, look, remains, sourceOf } from "./support.ts"
import { about, applySource, withTree } from "./trees.ts"

const repository = () =>
  makeRepo({ files: { "a.txt": "a\n", "b.txt": "b\n", "old/c.txt": "c\n" }, dirty: { "b.txt": "b\nmine\n" } })

const change = { files: { "a.txt": "A\n", "new/d.txt": "d\n" }, removed: ["old"] }

interface Scene {
  readonly repo: Repo
  readonly file: string
  readonly driver: string
  readonly before: Snapshot
  readonly after: Snapshot
  /** The steps of the whole apply, and of its undoing. */
  readonly steps: { readonly apply: ReadonlyArray<string>; readonly undo: ReadonlyArray<string> }
}

/** What an apply and its undoing look like when nothing disturbs them. */
const scene = Effect.gen(function* () {
  const repo = repository()
  yield* Effect.addFinalizer(() => Effect.sync(repo.dispose))
  const source = sourceOf(repo, change)
  const file = join(repo.folder, "source.json")
  writeFileSync(file, JSON.stringify({ ...source, patch: Buffer.from(source.patch).toString("base64") }))
  const driver = yield* Effect.promise(() => bundleDriver(repo.folder))
  const before = look(repo.root)
  const apply: Array<string> = []
  yield* applySource(repo.root, source, { steps: (step) => Effect.sync(() => void apply.push(step)) })
  const after = look(repo.root)
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
  assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
  const made: Scene = { repo, file, driver, before, after, steps: { apply, undo } }
  return made
})

const reset = ({ repo }: Scene, from: string) => {
  const root = join(repo.folder, "victim")
  rmSync(root, { recursive: true, force: true })
  cpSync(from, root, { recursive: true, verbatimSymlinks: true })
  return root
}

const assertOldOrNew = (root: string, { after, before }: Scene, what: string) => {
  const now = look(root)
  const old = diffTrees(before, now)
  const fresh = diffTrees(after, now)
  assert.isTrue(
    old.length === 0 || fresh.length === 0,
    `${what}: a mix\nagainst the old:\n${old.join("\n")}\nagainst the new:\n${fresh.join("\n")}`
  )
  return old.length === 0 ? "old" : "new"
}

describe("killed with SIGKILL", { timeout: 180_000 }, () => {
  it.live.each(["apply", "undo"] as const)("at every step of %s, the next looplane makes it whole", (what) =>
    Effect.gen(function* () {
      const made = yield* scene
      const from = what === "apply" ? made.repo.root : join(made.repo.folder, "applied")
      const names = made.steps[what]
      const ends: Array<string> = []
      for (const [at, name] of names.entries()) {
        const root = reset(made, from)
        assert.strictEqual(
          yield* Effect.promise(() => drive(made.driver, [what, root, made.file, String(at)])),
          "SIGKILL"
        )
        yield* withTree(root, () => Effect.void)
        ends.push(`${name}: ${assertOldOrNew(root, made, `${what} at ${name}`)}`)
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

  it.live("at every step of apply, the process beside it makes it whole without another command", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const ends: Array<string> = []
      for (const [at, name] of made.steps.apply.entries()) {
        const root = reset(made, made.repo.root)
        const end = yield* Effect.promise(async () => {
          await using present = await attendance(made.repo.folder)
          assert.strictEqual(
            await drive(made.driver, ["apply", root, made.file, String(at), present.path]),
            "SIGKILL"
          )
          await present.gone
          return assertOldOrNew(root, made, name)
        })
        ends.push(`${name}: ${end}`)
      }
      console.log(`killed and made whole by the watcher, ${ends.length} steps: ${ends.join(", ")}`)
      assert.include(ends.join(), "old")
      assert.include(ends.join(), "new")
    }).pipe(Effect.scoped)
  )
})
