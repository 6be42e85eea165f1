/**
 * Runs whose surroundings changed between two processes: moved directories, sources that are gone or moved on.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { CommitId } from "../../../src/domain/Ids.ts"
import type { Task } from "../../../src/domain/Task.ts"
import type { Repo, RepoSpec } from "../../support/Repo.ts"
import { snapshotTree, assertUntouched } from "../../support/Leaks.ts"
import { live, repository, scratch, taskFor, write } from "./support.ts"
import {
  closedList,
  contentsOf,
  inOneProcess,
  place,
  plainGit,
  richSpec,
  statement,
  work
} from "./reopening.ts"

const gone = (path: string) => rmSync(path, { recursive: true, force: true })

/** A run of the repository that its process left after some work. */
const begunOn = Effect.fnUntraced(function* (
  repo: Pick<Repo, "root" | "head">,
  changes: Partial<Task> = {},
  use: typeof work = work
) {
  const folder = yield* scratch
  const directory = join(folder, "run")
  const task = taskFor(repo, changes)
  const first = yield* inOneProcess({ task, directory }, (workspace) =>
    Effect.gen(function* () {
      const tree = yield* use(workspace)
      return {
        tree,
        prepared: workspace.prepared,
        said: yield* statement(workspace, tree),
        placed: yield* place(workspace, tree),
        stood: contentsOf(workspace.root)
      }
    })
  )
  return { folder, directory, task, ...first, resume: { prepared: first.prepared, tree: first.tree } }
})

type BegunOn = Effect.Success<ReturnType<typeof begunOn>>

const begun = Effect.fnUntraced(function* (spec: RepoSpec = richSpec, changes: Partial<Task> = {}) {
  const repo = yield* repository(spec)
  return { repo, ...(yield* begunOn(repo, changes)) }
})

/** Reopens, and compares all that can be said. */
const agrees = Effect.fnUntraced(function* (run: BegunOn, directory = run.directory) {
  const found = yield* inOneProcess({ task: run.task, directory, resume: run.resume }, (workspace) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(contentsOf(workspace.root), run.stood)
      assert.strictEqual(yield* workspace.scan, run.tree)
      assert.deepStrictEqual(yield* statement(workspace, run.tree), run.said)
      assert.deepStrictEqual(yield* place(workspace, run.tree), run.placed)
      return workspace.found
    })
  )
  assert.deepStrictEqual(
    readdirSync(directory).filter((name) => !closedList.includes(name)),
    []
  )
  return found
})

const refusal = Effect.fnUntraced(function* (run: BegunOn, directory = run.directory) {
  const result = yield* Effect.result(
    inOneProcess({ task: run.task, directory, resume: run.resume }, () => Effect.void)
  )
  assert.isTrue(Result.isFailure(result))
  const message = Result.isFailure(result) ? result.failure.message : ""
  assert.notInclude(message, "\n")
  return message
})

it.live(
  "a bundle can be moved, and the record holds no path of where it was",
  () =>
    Effect.gen(function* () {
      const run = yield* begun()
      const moved = join(run.folder, "elsewhere")
      renameSync(run.directory, moved)
      assert.strictEqual(yield* agrees(run, moved), run.tree)
      for (const name of ["looplane.json", "config", "info/looplane-excludes"])
        assert.notInclude(readFileSync(join(moved, "git", name), "utf8"), run.folder)
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "no process needs the source again, but for the dependencies that came from it",
  () =>
    Effect.gen(function* () {
      const { repo, ...run } = yield* begun()
      renameSync(repo.root, `${repo.root}-moved`)
      yield* inOneProcess(run, (workspace) =>
        Effect.gen(function* () {
          assert.strictEqual(workspace.found, run.tree)
          assert.deepStrictEqual(contentsOf(workspace.root), run.stood)
          const error = yield* Effect.flip(workspace.apply([write("node_modules/dep/index.js", "2\n")]))
          assert.strictEqual(error.reason, "refused_path")
          const { copied, reason } = workspace.prepared.dependencies
          assert.deepStrictEqual(copied, [])
          assert.strictEqual(reason, `node_modules cannot be brought along again: ${repo.root} is gone`)
          assert.deepStrictEqual(yield* statement(workspace, run.tree), run.said)
          const { contents } = yield* place(workspace, run.tree)
          assert.deepStrictEqual(
            contents,
            run.placed.contents.filter((line) => !line.startsWith("node_modules"))
          )
        })
      )
      gone(join(run.directory, "workspace"))
      yield* inOneProcess(run, (workspace) =>
        Effect.gen(function* () {
          assert.isNull(workspace.found)
          assert.strictEqual(yield* workspace.scan, run.tree)
        })
      )
      renameSync(`${repo.root}-moved`, repo.root)
      yield* agrees(run)
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "an install that moved on since is not taken for the base's",
  () =>
    Effect.gen(function* () {
      const { repo, ...run } = yield* begun()
      repo.write({ "package-lock.json": '{ "later": 1 }\n' })
      yield* inOneProcess(run, (workspace) =>
        Effect.sync(() => {
          assert.deepStrictEqual(workspace.prepared.dependencies.copied, [])
          assert.include(
            workspace.prepared.dependencies.reason ?? "",
            "package-lock.json in the checkout differs"
          )
        })
      )
      repo.write({ "package-lock.json": "{}\r\n" })
      gone(join(repo.root, "node_modules"))
      yield* inOneProcess(run, (workspace) =>
        Effect.sync(() =>
          assert.strictEqual(
            workspace.prepared.dependencies.reason,
            `node_modules cannot be brought along again: gone from ${repo.root}`
          )
        )
      )
    }).pipe(Effect.provide(live)),
  60_000
)

/** Rewrites the source's history and forgets what was there before. */
const prune = (repo: Repo) => {
  repo.git("checkout", "-q", "--orphan", "other")
  repo.git("commit", "-qm", "rewritten")
  repo.git("branch", "-D", "main")
  repo.git("reflog", "expire", "--expire=now", "--all")
  repo.git("gc", "-q", "--prune=now")
}

it.live(
  "a base that was pruned from the source is no loss while git/ is there, and is named when it is not",
  () =>
    Effect.gen(function* () {
      const { repo, ...run } = yield* begun()
      prune(repo)
      gone(join(run.directory, "workspace"))
      assert.isNull(yield* agrees(run))
      gone(join(run.directory, "git"))
      const workspace = snapshotTree(join(run.directory, "workspace/new"))
      const message = yield* refusal(run)
      assert.strictEqual(
        message,
        `the base commit ${repo.head} is gone: ${repo.root} no longer has it, and ${join(run.directory, "git")} does not hold it`
      )
      assertUntouched(workspace, snapshotTree(join(run.directory, "workspace/new")))
      gone(repo.root)
      const both = yield* refusal(run)
      assert.include(both, repo.head)
      assert.include(both, repo.root)
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "without git/, a run at its base is made anew from the source, and a later tree is named",
  () =>
    Effect.gen(function* () {
      const run = yield* begun()
      gone(join(run.directory, "git"))
      const message = yield* refusal(run)
      assert.include(message, `the tree ${run.tree} is gone`)
      assert.isTrue(existsSync(join(run.directory, "workspace/new/x.txt")))
      const resume = { prepared: run.prepared, tree: run.prepared.tree }
      yield* inOneProcess({ ...run, resume }, (workspace) =>
        Effect.gen(function* () {
          assert.isNull(workspace.found)
          assert.deepStrictEqual(workspace.prepared, run.prepared)
          assert.strictEqual(yield* workspace.scan, run.prepared.tree)
          yield* Effect.scoped(workspace.materialise(run.prepared.tree))
        })
      )
      assert.isFalse(existsSync(join(run.directory, "workspace/new")))
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "objects that are missing are named, and the work tree is left as it stands",
  () =>
    Effect.gen(function* () {
      const { repo, ...run } = yield* begun()
      gone(join(run.directory, "git/objects", run.tree.slice(0, 2), run.tree.slice(2)))
      writeFileSync(join(run.directory, "workspace/a.txt"), "the last of it\n")
      assert.include(yield* refusal(run), `the tree ${run.tree} is gone: objects of it are missing`)
      assert.strictEqual(readFileSync(join(run.directory, "workspace/a.txt"), "utf8"), "the last of it\n")
      // What the source still has comes back from there.
      const other = yield* begunOn(repo)
      for (const name of readdirSync(join(other.directory, "git/objects")))
        if (/^(?:[0-9a-f]{2}|pack)$/.test(name)) gone(join(other.directory, "git/objects", name))
      const resume = { prepared: other.prepared, tree: other.prepared.tree }
      yield* inOneProcess({ ...other, resume }, (workspace) =>
        Effect.map(workspace.scan, (tree) => assert.strictEqual(tree, other.prepared.tree))
      )
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "without its record, git/ still gives back a tree that it holds",
  () =>
    Effect.gen(function* () {
      const run = yield* begun()
      for (const text of [null, "{", '{"version":1,"branch":"refs/heads/../../x"}']) {
        if (text === null) gone(join(run.directory, "git/looplane.json"))
        else writeFileSync(join(run.directory, "git/looplane.json"), text)
        assert.isNull(yield* agrees(run))
      }
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "the working tree as a base, from a subdirectory, is opened again without the source's",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({
        ...richSpec,
        dirty: { "a.txt": "dirty\n" },
        untracked: { "dir/untracked.txt": "u\n" }
      })
      const run = yield* begunOn(repo, {
        base: { kind: "working_tree", commit: CommitId.make(repo.head) },
        subdirectory: "dir"
      })
      repo.git("checkout", "-q", "--", "a.txt")
      assert.strictEqual(yield* agrees(run), run.tree)
      gone(join(run.directory, "workspace"))
      assert.isNull(yield* agrees(run))
      gone(join(run.directory, "git/looplane.json"))
      assert.isNull(yield* agrees(run))
      gone(join(run.directory, "git"))
      assert.include(yield* refusal(run), `the tree ${run.prepared.tree} is gone`)
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "submodules stand again, from the run's own copy or else from the source's",
  () =>
    Effect.gen(function* () {
      const inner = yield* repository({ files: { "in.txt": "in\n" } })
      const repo = yield* repository(richSpec)
      for (const name of ["mod", "empty"])
        repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.root, name)
      repo.git("commit", "-qm", "submodules")
      gone(join(repo.root, ".git/modules/empty"))
      const run = yield* begunOn({ root: repo.root, head: repo.git("rev-parse", "HEAD") })
      const copy = join(run.directory, "workspace/mod/in.txt")
      assert.isTrue(run.said.unrecorded.includes("submodule empty: left empty, the source has no copy of it"))
      assert.strictEqual(yield* agrees(run), run.tree)
      gone(join(run.directory, "workspace"))
      assert.isNull(yield* agrees(run))
      gone(join(run.directory, "workspace/mod"))
      yield* agrees(run)
      gone(join(run.directory, "modules"))
      yield* agrees(run)
      assert.strictEqual(readFileSync(copy, "utf8"), "in\n")
      gone(join(run.directory, "modules"))
      gone(join(run.directory, "workspace"))
      gone(repo.root)
      yield* inOneProcess(run, (workspace) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* workspace.scan, run.tree)
          assert.include(
            yield* workspace.unrecorded,
            "submodule mod: left empty, the source has no copy of it"
          )
        })
      )
    }).pipe(Effect.provide(live)),
  60_000
)

/** Leaves a mark outside of the clone each time it runs, and writes where it runs into what it installs. */
const script = `
echo ran >> ../setups
mkdir -p node_modules/set .venv/bin
echo 1 > node_modules/set/i.js
printf '#!%s/x\\n' "$PWD" > .venv/bin/tool
ln -s "$PWD/a.txt" .venv/link
echo set > a.txt`
const setup = [["sh", "-c", script]] as const

it.live(
  "what set-up installed is brought again as it was sealed, wherever the bundle lies, and made again when it is gone",
  () =>
    Effect.gen(function* () {
      const { repo, ...run } = yield* begun(
        { ...richSpec, files: { ...richSpec.files, ".gitignore": "node_modules/\n*.log\n.venv/\n" } },
        { setup }
      )
      assert.include(run.said.unrecorded, "written by set-up and put back: a.txt")
      const runs = (directory: string) =>
        readFileSync(join(directory, "setups"), "utf8").split("\n").length - 1
      const tool = (root: string) => readFileSync(join(root, ".venv/bin/tool"), "utf8")
      const opens = Effect.fnUntraced(function* (directory: string) {
        yield* inOneProcess({ ...run, directory }, (workspace) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* workspace.scan, run.tree)
            assert.deepStrictEqual(yield* workspace.unrecorded, run.said.unrecorded)
            const place = yield* workspace.materialise(run.tree)
            assert.strictEqual(tool(place.root), `#!${place.root}/x\n`)
            assert.strictEqual(readFileSync(join(place.root, ".venv/link"), "utf8"), "edited\n")
            assert.strictEqual(readFileSync(join(place.root, "node_modules/set/i.js"), "utf8"), "1\n")
          }).pipe(Effect.scoped)
        )
      })
      yield* opens(run.directory)
      const moved = join(run.folder, "moved")
      renameSync(run.directory, moved)
      yield* opens(moved)
      const elsewhere = join(run.folder, "copied")
      execFileSync("cp", ["-R", moved, elsewhere])
      gone(join(elsewhere, "workspace"))
      yield* opens(elsewhere)
      assert.strictEqual(tool(join(elsewhere, "workspace")), `#!${join(elsewhere, "workspace")}/x\n`)
      assert.notInclude(tool(join(elsewhere, "deps")), run.folder)
      assert.strictEqual(runs(elsewhere), 1)
      gone(join(elsewhere, "deps"))
      gone(repo.root)
      yield* opens(elsewhere)
      yield* opens(elsewhere)
      assert.strictEqual(runs(elsewhere), 2)
      writeFileSync(join(elsewhere, "deps/node_modules/set/i.js"), "2\n")
      const said = yield* Effect.result(opens(elsewhere))
      assert.include(Result.isFailure(said) ? said.failure.message : "", "what set-up had installed")
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "a clone that was never finished is thrown away, and a whole one is made",
  () =>
    Effect.gen(function* () {
      const { repo, ...run } = yield* begun()
      const { directory } = run
      rmSync(join(directory, "git/HEAD"))
      for (const name of [
        "deps/node_modules",
        "modules/0",
        "staging/x",
        "task-env/home",
        "verify-a",
        "proof-b"
      ])
        execFileSync("mkdir", ["-p", join(directory, name)])
      execFileSync("chmod", ["000", join(directory, "deps/node_modules")])
      writeFileSync(join(directory, "events.jsonl"), "{}\n")
      const tree = yield* inOneProcess({ task: run.task, directory }, (workspace) =>
        Effect.gen(function* () {
          assert.isNull(workspace.found)
          assert.strictEqual(yield* workspace.scan, run.prepared.tree)
          return yield* workspace.apply([write("a.txt", "anew\n")])
        })
      )
      assert.deepStrictEqual(readdirSync(directory).toSorted(), ["events.jsonl", "git", "workspace"])
      assert.strictEqual(plainGit(repo.root, "rev-parse", "HEAD").trim(), repo.head)
      const { found } = yield* inOneProcess(
        { task: run.task, directory, resume: { prepared: run.prepared, tree } },
        (workspace) => Effect.succeed(workspace)
      )
      assert.strictEqual(found, tree)
    }).pipe(Effect.provide(live)),
  60_000
)
