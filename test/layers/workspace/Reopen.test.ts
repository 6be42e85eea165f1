/**
 * Whatever a process that died left in a run's directory, the next one has the recorded tree before it, and says what
 * stood there.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, FileSystem, Layer } from "effect"
import { ChildProcessSpawner } from "effect/process"
import * as fc from "fast-check"
import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import type { TreeId } from "../../../src/domain/Ids.ts"
import * as Faulty from "../../../src/layers/fs/Faulty.ts"
import { layerHost } from "../../../src/layers/sandbox/Host.ts"
import { layer as workspaces } from "../../../src/layers/workspace/Workspace.ts"
import { assertUntouched, heldLocks, snapshotTree } from "../../support/Leaks.ts"
import { live, repository, scratch, taskFor, write } from "./support.ts"
import { closedList, contentsOf, inOneProcess, plainGit, richSpec, statement, work } from "./reopening.ts"

/** A run that a first process left, and what it said of it. */
const begun = Effect.gen(function* () {
  const repo = yield* repository(richSpec)
  const directory = join(yield* scratch, "run")
  const task = taskFor(repo)
  const first = yield* inOneProcess({ task, directory }, (workspace) =>
    Effect.gen(function* () {
      const tree = yield* work(workspace)
      return {
        tree,
        prepared: workspace.prepared,
        said: yield* statement(workspace, tree),
        stood: contentsOf(workspace.root)
      }
    })
  )
  return { repo, directory, task, ...first }
})

type Begun = Effect.Success<typeof begun>

/** A copy of the run in a place of its own, every time and mode kept. */
const copied = Effect.fnUntraced(function* (run: Begun) {
  const folder = yield* scratch
  execFileSync("cp", ["-a", run.directory, join(folder, "run")])
  return { ...run, directory: join(folder, "run") }
})

/** Reopens twice and compares all that can be said with what the first process said. Returns what was found. */
const reopened = Effect.fnUntraced(function* (run: Begun, tree: TreeId = run.tree) {
  const source = snapshotTree(run.repo.root)
  const resume = { prepared: run.prepared, tree }
  const options = { task: run.task, directory: run.directory, resume }
  const found = yield* inOneProcess(options, (workspace) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* workspace.tree, tree)
      assert.deepStrictEqual(workspace.prepared, run.prepared)
      if (tree === run.tree) assert.deepStrictEqual(contentsOf(workspace.root), run.stood)
      assert.strictEqual(yield* workspace.scan, tree)
      assert.strictEqual(plainGit(workspace.root, "rev-parse", "HEAD").trim(), run.repo.head)
      assert.include(plainGit(workspace.root, "status", "--porcelain", "-b"), "## main")
      if (tree === run.tree) assert.deepStrictEqual(yield* statement(workspace, tree), run.said)
      return workspace.found
    })
  )
  yield* inOneProcess(options, (workspace) =>
    Effect.gen(function* () {
      assert.strictEqual(workspace.found, tree)
      if (tree === run.tree) assert.deepStrictEqual(contentsOf(workspace.root), run.stood)
    })
  )
  assert.deepStrictEqual(
    readdirSync(run.directory).filter((name) => !closedList.includes(name)),
    []
  )
  assert.deepStrictEqual(heldLocks(join(run.directory, "git")), [])
  assert.deepStrictEqual(heldLocks(join(run.directory, "workspace/.git")), [])
  assertUntouched(source, snapshotTree(run.repo.root))
  return found
})

const put = (path: string, text: string | Buffer = "left over\n") => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
const gone = (path: string) => rmSync(path, { recursive: true, force: true })
const flip = (path: string, at: number, bits: number) => {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ bits
  writeFileSync(path, bytes)
}

const isDirectory = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

interface Damage {
  readonly name: string
  readonly harm: (directory: string, run: Begun) => void
  readonly found: "the tree" | "another tree" | "nothing"
}

const damages: ReadonlyArray<Damage> = [
  { name: "nothing", harm: () => undefined, found: "the tree" },
  {
    name: "locks, temporary objects and scratch directories",
    harm: (at) => {
      for (const name of [
        ...["git/index.lock", "git/HEAD.lock", "git/config.lock", "git/looplane.json.lock"],
        ...["git/refs/looplane/trees/x.lock", "git/refs/looplane/newest.lock", "git/shallow.lock"],
        ...["git/objects/tmp_obj_x", "git/objects/ab/tmp_obj_y", "git/objects/pack/tmp_pack_z"],
        ...["git/objects/tmp_objdir-bulk-fsync-a/ab/c", "git/source.index", "git/verify-a.index"],
        ...["git/verify-a.index.proof", "git/verify-a.index.lock", "git/sharedindex.0123"],
        ...["verify-a/a.txt", "proof-a/index", "staging/edit-a/0.new", "staging/workspace/a.txt"],
        ...["task-env/home/x", "workspace/.git/index.lock", "workspace/.git/refs/heads/main.lock"]
      ])
        put(join(at, name))
    },
    found: "the tree"
  },
  {
    name: "files that were half written, and new ones",
    harm: (at) => {
      truncateSync(join(at, "workspace/crlf.txt"), 4)
      put(join(at, "workspace/half/new.txt"))
      put(join(at, "workspace/bin.dat"), Buffer.from([0, 1]))
      writeFileSync(
        Buffer.concat([Buffer.from(join(at, "workspace/")), Buffer.from([0x67, 0xff])]),
        "not UTF-8"
      )
    },
    found: "another tree"
  },
  {
    name: "paths of another kind",
    harm: (at) => {
      const within = (name: string) => join(at, "workspace", name)
      gone(within("run.sh"))
      gone(within("a.txt"))
      put(within("a.txt/below"))
      gone(within("dir"))
      symlinkSync("/etc", within("dir"))
      gone(within("link"))
      put(within("link"))
      gone(within("new"))
      put(within("new"))
      gone(within("bin.dat"))
      execFileSync("mkfifo", [within("bin.dat")])
      gone(within("crlf.txt"))
      plainGit(at, "init", "-q", within("crlf.txt"))
      put(within("crlf.txt/x"))
    },
    found: "another tree"
  },
  {
    name: "modes",
    harm: (at) => {
      chmodSync(join(at, "workspace/run.sh"), 0o644)
      chmodSync(join(at, "workspace/a.txt"), 0o755)
    },
    found: "another tree"
  },
  { name: "no work tree", harm: (at) => gone(join(at, "workspace")), found: "nothing" },
  {
    name: "only git/, as a fork has it",
    harm: (at) => {
      for (const name of readdirSync(at)) if (name !== "git") gone(join(at, name))
    },
    found: "nothing"
  },
  {
    name: "an empty work tree",
    harm: (at) => {
      gone(join(at, "workspace"))
      mkdirSync(join(at, "workspace"))
    },
    found: "another tree"
  },
  {
    name: "a file in the place of the work tree",
    harm: (at) => {
      gone(join(at, "workspace"))
      put(join(at, "workspace"))
    },
    found: "nothing"
  },
  {
    name: "a link to the source in the place of the work tree",
    harm: (at, { repo }) => {
      gone(join(at, "workspace"))
      symlinkSync(repo.root, join(at, "workspace"))
    },
    found: "nothing"
  },
  { name: "no .git", harm: (at) => gone(join(at, "workspace/.git")), found: "the tree" },
  {
    name: "a .git without objects",
    harm: (at) => gone(join(at, "workspace/.git/objects")),
    found: "the tree"
  },
  { name: "a torn HEAD", harm: (at) => put(join(at, "workspace/.git/HEAD"), ""), found: "the tree" },
  {
    name: "a torn index of .git",
    harm: (at) => truncateSync(join(at, "workspace/.git/index"), 100),
    found: "the tree"
  },
  {
    name: "a file in the place of .git",
    harm: (at, { repo }) => {
      gone(join(at, "workspace/.git"))
      put(join(at, "workspace/.git"), `gitdir: ${repo.root}/.git\n`)
    },
    found: "the tree"
  },
  {
    name: "a link to the source's own .git",
    harm: (at, { repo }) => {
      gone(join(at, "workspace/.git"))
      symlinkSync(join(repo.root, ".git"), join(at, "workspace/.git"))
    },
    found: "the tree"
  },
  { name: "no index", harm: (at) => gone(join(at, "git/index")), found: "the tree" },
  {
    name: "an index cut short",
    harm: (at) => truncateSync(join(at, "git/index"), 300),
    found: "the tree"
  },
  { name: "an index of rubbish", harm: (at) => put(join(at, "git/index")), found: "the tree" },
  {
    name: "an index with a bit turned over that makes git believe its file unchanged",
    harm: (at) => {
      flip(join(at, "git/index"), 12 + 60, 0x80)
      put(join(at, "workspace/.gitignore"), "other\n")
    },
    found: "another tree"
  },
  {
    name: "settings that were torn or planted",
    harm: (at) => {
      put(join(at, "git/HEAD"), "")
      appendFileSync(
        join(at, "git/config"),
        '[filter "x"]\n\tclean = touch planted\n\tsmudge = touch planted\n'
      )
      put(join(at, "git/info/attributes"), "* filter=x\n")
      put(join(at, "git/info/looplane-excludes"), "*\n")
      put(join(at, "git/commondir"), "/nowhere\n")
      put(join(at, "git/objects/info/alternates"), "/nowhere\n")
    },
    found: "the tree"
  },
  {
    name: "dependencies that are gone",
    harm: (at) => gone(join(at, "workspace/node_modules")),
    found: "the tree"
  },
  {
    name: "a newest tree that names nothing",
    harm: (at) => put(join(at, "git/refs/looplane/newest"), "1".repeat(40)),
    found: "the tree"
  }
]

it.live(
  `a run is opened again where it stood, whatever its process left (${damages.length} ways)`,
  () =>
    Effect.gen(function* () {
      const run = yield* begun
      for (const { found, harm, name } of damages) {
        const place = yield* copied(run)
        harm(place.directory, place)
        const said = yield* Effect.catchCause(reopened(place), (cause) =>
          Effect.die(new Error(name, { cause }))
        )
        const kind = said === null ? "nothing" : said === run.tree ? "the tree" : "another tree"
        assert.strictEqual(kind, found, name)
        assert.isFalse(existsSync(join(place.directory, "workspace/planted")), name)
      }
    }).pipe(Effect.scoped, Effect.provide(live)),
  240_000
)

it.live(
  "an edit whose process died leaves nothing, whether it was made or only meant, ignored or not",
  () =>
    Effect.gen(function* () {
      const run = yield* begun
      const edit = [write("late.log", "late\n"), write("late.txt", "late\n")]
      const made = yield* copied(run)
      const resume = { prepared: run.prepared, tree: run.tree }
      const later = yield* inOneProcess({ ...made, resume }, (workspace) => workspace.apply(edit))
      assert.isTrue(existsSync(join(made.directory, "workspace/late.log")))
      assert.strictEqual(yield* reopened(made), later)
      // What was there before, where the edit was never made, is not its own.
      const meant = yield* copied(run)
      put(join(meant.directory, "workspace/late.log"), "of a command\n")
      execFileSync("cp", ["-a", join(made.directory, "git/objects"), join(meant.directory, "git")])
      writeFileSync(join(meant.directory, "git/refs/looplane/newest"), `${later}\n`)
      const found = yield* inOneProcess({ ...meant, resume }, (workspace) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* workspace.scan, run.tree)
          return workspace.found
        })
      )
      assert.strictEqual(found, run.tree)
      assert.strictEqual(readFileSync(join(meant.directory, "workspace/late.log"), "utf8"), "of a command\n")
    }).pipe(Effect.provide(live)),
  60_000
)

it.live(
  "any tree that the run had can be the one that is opened, its base too",
  () =>
    Effect.gen(function* () {
      const run = yield* begun
      assert.strictEqual(yield* reopened(run, run.prepared.tree), run.tree)
      assert.isFalse(existsSync(join(run.directory, "workspace/kept.log")))
      const resume = { prepared: run.prepared, tree: run.prepared.tree }
      yield* inOneProcess({ ...run, resume }, (workspace) =>
        Effect.scoped(
          Effect.gen(function* () {
            const place = yield* workspace.materialise(run.prepared.tree)
            assert.strictEqual(readFileSync(join(place.root, "a.txt"), "utf8"), "a, later\n")
            assert.strictEqual(readFileSync(join(place.root, "node_modules/dep/index.js"), "utf8"), "1\n")
          })
        )
      )
    }).pipe(Effect.provide(live)),
  60_000
)

const names = [
  "a.txt",
  "dir",
  "dir/b.txt",
  "dir/deep/c.txt",
  "new/x.txt",
  "kept.log",
  "link",
  "fresh",
  "x.log"
]
const harms = fc.array(
  fc.record({
    path: fc.constantFrom(...names),
    what: fc.constantFrom("file", "directory", "link", "nothing", "longer")
  }),
  { minLength: 1, maxLength: 6 }
)

it.live(
  "whatever was done to any of its paths, in any order, the tree stands again",
  () =>
    Effect.gen(function* () {
      const run = yield* begun
      for (const sample of fc.sample(harms, { numRuns: 6, seed: 3 })) {
        for (const { path, what } of sample) {
          const at = join(run.directory, "workspace", path)
          if (what === "longer") {
            if (lstatSync(at, { throwIfNoEntry: false })?.isFile() === true) appendFileSync(at, "more")
            continue
          }
          gone(at)
          if (what === "nothing" || !isDirectory(dirname(at))) continue
          if (what === "file") put(at)
          else if (what === "link") symlinkSync("/etc", at)
          else put(join(at, "below/x"))
        }
        const resume = { prepared: run.prepared, tree: run.tree }
        yield* inOneProcess({ ...run, resume }, (workspace) =>
          Effect.gen(function* () {
            const ignored = /^x\.log/
            const stands = contentsOf(workspace.root).filter((line) => !ignored.test(line))
            assert.deepStrictEqual(stands, run.stood, JSON.stringify(sample))
            assert.strictEqual(yield* workspace.scan, run.tree)
          })
        )
      }
    }).pipe(Effect.provide(live)),
  60_000
)

/** A machine whose process dies before its step `at`: no write and no program comes through any more. */
const dying = (at: number) => {
  const steps = { taken: 0 }
  const dead = () => steps.taken++ >= at
  const layerDying = Layer.effectContext(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      return Context.empty().pipe(
        Context.add(
          FileSystem.FileSystem,
          Faulty.make(fs, () => (dead() ? { error: "EIO" } : null))
        ),
        Context.add(
          ChildProcessSpawner.ChildProcessSpawner,
          ChildProcessSpawner.make((command) =>
            dead() ? Effect.die(new Error("the process is dead")) : spawner.spawn(command)
          )
        )
      )
    })
  )
  const machine = layerDying.pipe(Layer.provideMerge(NodeServices.layer))
  return {
    steps,
    services: Layer.fresh(workspaces).pipe(Layer.provide(layerHost), Layer.provideMerge(machine))
  }
}

const scenarios = [
  {
    name: "in place",
    harm: (at: string) => {
      put(join(at, "workspace/a.txt"), "half")
      gone(join(at, "workspace/.git"))
      gone(join(at, "workspace/node_modules"))
    }
  },
  { name: "anew", harm: (at: string) => gone(join(at, "workspace")) }
]

/** Of all the steps of an opening, as many are died at. */
const deaths = 8

it.live(
  "a process that dies while it opens a run again leaves one that can be opened",
  () =>
    Effect.gen(function* () {
      const run = yield* begun
      const resume = { prepared: run.prepared, tree: run.tree }
      for (const { harm, name } of scenarios) {
        const attempt = Effect.fnUntraced(function* (at: number) {
          const place = yield* copied(run)
          harm(place.directory)
          const { services, steps } = dying(at)
          const exit = yield* Effect.exit(
            inOneProcess({ ...place, resume }, () => Effect.void).pipe(Effect.provide(services))
          )
          return { exit, place, steps: steps.taken }
        })
        const whole = yield* attempt(Number.POSITIVE_INFINITY)
        assert.isTrue(Exit.isSuccess(whole.exit), name)
        assert.isAbove(whole.steps, deaths, name)
        for (let death = 0; death < deaths; death++) {
          const at = Math.floor((death * whole.steps) / deaths)
          const { place } = yield* attempt(at)
          yield* inOneProcess({ ...place, resume }, (workspace) =>
            Effect.gen(function* () {
              assert.deepStrictEqual(contentsOf(workspace.root), run.stood, `${name}, step ${at}`)
              assert.strictEqual(yield* workspace.scan, run.tree)
              assert.include(plainGit(workspace.root, "status", "--porcelain", "-b"), "## main")
            })
          )
          assert.deepStrictEqual(
            readdirSync(place.directory).filter((entry) => !closedList.includes(entry)),
            []
          )
        }
      }
    }).pipe(Effect.scoped, Effect.provide(live)),
  120_000
)
