import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as Checks from "../../../src/layers/checks/Checks.ts"
import { layerHost } from "../../../src/layers/sandbox/Host.ts"
import { Checks as ChecksService } from "../../../src/services/Checks.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { workspacesFix, workspacesRepo } from "../../support/repos/workspaces.ts"
import { live, openFor, remove, repository, scratch, write } from "./support.ts"

const checked = Layer.mergeAll(live, Checks.layer.pipe(Layer.provide(layerHost), Layer.provide(live)))

const npmWorkspace = (spec: Parameters<typeof workspacesRepo>[0] = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => workspacesRepo(spec)),
    (repo) => Effect.sync(() => repo.dispose())
  )

it.live(
  "a check loads the patched package of an npm workspace, and the user's node_modules stays as it was",
  () =>
    Effect.gen(function* () {
      const repo = yield* npmWorkspace()
      const before = snapshotTree(repo.root)
      const { workspace } = yield* openFor(repo)
      assert.deepStrictEqual(workspace.prepared.dependencies.copied, ["node_modules"])
      assert.match(workspace.prepared.dependencies.lock_digest ?? "", /^[0-9a-f]{64}$/)
      const checks = yield* ChecksService
      const verdict = Effect.fnUntraced(function* (tree: typeof workspace.prepared.tree) {
        const place = yield* workspace.materialise(tree)
        const outcome = yield* checks.run(
          { name: "test", argv: ["node", "--test"], timeout_seconds: 60 },
          { ...place, subdirectory: "packages/app", source: repo.root },
          { purpose: "final", remaining_ms: 60_000, max_output_bytes: 100_000 }
        )
        return { outcome, place }
      }, Effect.scoped)
      const red = yield* verdict(workspace.prepared.tree)
      assert.strictEqual(red.outcome.verdict, "failed", red.outcome.output)
      const green = yield* verdict(yield* workspace.apply([write(workspacesFix.path, workspacesFix.fixed)]))
      assert.strictEqual(green.outcome.verdict, "passed", `${green.outcome.reason}\n${green.outcome.output}`)
      assert.strictEqual(green.outcome.tests, 1)
      assert.include(green.outcome.output, `lib is file://${green.place.root}/packages/lib/index.js`)
      assertUntouched(before, snapshotTree(repo.root))
    }).pipe(Effect.provide(checked))
)

it.live("absolute links into the source lead to the fresh place, links elsewhere stay what they were", () =>
  Effect.gen(function* () {
    const repo = yield* npmWorkspace()
    execFileSync("ln", ["-sfn", join(repo.root, "packages/lib"), join(repo.root, "node_modules/lib")])
    execFileSync("ln", ["-s", "../../outside", join(repo.root, "node_modules/outside")])
    execFileSync("ln", ["-s", "/usr", join(repo.root, "node_modules/usr")])
    const { workspace } = yield* openFor(repo)
    const place = yield* workspace.materialise(workspace.prepared.tree)
    for (const root of [workspace.root, place.root]) {
      assert.strictEqual(realpathSync(join(root, "node_modules/lib")), join(root, "packages/lib"))
      assert.strictEqual(readlinkSync(join(root, "node_modules/outside")), join(repo.folder, "outside"))
      assert.strictEqual(readlinkSync(join(root, "node_modules/usr")), "/usr")
      assert.strictEqual(readlinkSync(join(root, "node_modules/app")), "../packages/app")
    }
    assert.isNull(place.distrust)
  }).pipe(Effect.provide(live))
)

it.live(
  "auto leaves dependencies behind when the checkout's lock file is not the base's; copy takes them",
  () =>
    Effect.gen(function* () {
      const repo = yield* npmWorkspace()
      writeFileSync(join(repo.root, "package-lock.json"), "{}\n")
      const auto = yield* openFor(repo)
      assert.deepStrictEqual(auto.workspace.prepared.dependencies.copied, [])
      assert.include(auto.workspace.prepared.dependencies.reason ?? "", "package-lock.json")
      assert.isFalse(existsSync(join(auto.workspace.root, "node_modules")))
      const copy = yield* openFor(repo, { dependencies: { mode: "copy" } })
      assert.deepStrictEqual(copy.workspace.prepared.dependencies.copied, ["node_modules"])
      const none = yield* openFor(repo, { dependencies: { mode: "none" } })
      assert.isFalse(existsSync(join(none.workspace.root, "node_modules")))
      const path = yield* openFor(repo, { dependencies: { mode: "path", path: repo.root } })
      assert.isTrue(existsSync(join(path.workspace.root, "node_modules/fixture-numbers/index.js")))
    }).pipe(Effect.provide(live))
)

it.live("a patch that changes the lock file cannot be checked with the base's dependencies", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* npmWorkspace())
    const place = yield* workspace.materialise(yield* workspace.apply([write("package-lock.json", "{}\n")]))
    assert.include(place.distrust ?? "", "package-lock.json")
    assert.isFalse(existsSync(join(place.root, "node_modules")))
  }).pipe(Effect.provide(live))
)

it.live("a place has the dependencies of the base, not what the agent made of them", () =>
  Effect.gen(function* () {
    const { workspace } = yield* openFor(yield* npmWorkspace())
    const poisoned = "node_modules/fixture-numbers/index.js"
    writeFileSync(join(workspace.root, poisoned), "export const zero = 2\n")
    const place = yield* workspace.materialise(yield* workspace.scan)
    assert.strictEqual(readFileSync(join(place.root, poisoned), "utf8"), "export const zero = 0\n")
  }).pipe(Effect.provide(live))
)

it.live(
  "what was brought along cannot be edited: the patch would not apply, or would carry the user's secrets",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({
        files: {
          "a.txt": "a\n",
          ".gitignore": ".env\n/node_modules/*\n!/node_modules/own/\n",
          "node_modules/own/i.js": "1\n"
        },
        ignored: { ".env": "KEY=secret\n", "node_modules/dep/i.js": "1\n" }
      })
      const { workspace } = yield* openFor(repo, { include: [".env", "node_modules/dep/**"] })
      for (const change of [
        write(".env", "KEY=x\n"),
        remove(".env"),
        write("node_modules/dep/i.js", "2\n")
      ]) {
        const error = yield* Effect.flip(workspace.apply([write("a.txt", "b\n"), change]))
        assert.strictEqual(error.reason, "refused_path")
        assert.include(error.message, "brought along")
      }
      assert.strictEqual(readFileSync(join(workspace.root, ".env"), "utf8"), "KEY=secret\n")
      assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
      yield* workspace.apply([write("node_modules/own/i.js", "2\n"), write("node_modules/dep.js", "3\n")])
    }).pipe(Effect.provide(live))
)

it.live("brings ignored files that a glob names, and only those", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a.txt": "a\n", ".gitignore": ".env*\nfixtures/\n" },
      ignored: { ".env": "A=1\n", ".env.test": "A=2\n", "fixtures/deep/data.bin": "d" }
    })
    const { workspace } = yield* openFor(repo, { include: [".env.test", "fixtures/**"] })
    assert.deepStrictEqual(workspace.prepared.dependencies.copied.toSorted(), [
      ".env.test",
      "fixtures/deep/data.bin"
    ])
    const place = yield* workspace.materialise(workspace.prepared.tree)
    for (const root of [workspace.root, place.root]) {
      assert.strictEqual(readFileSync(join(root, ".env.test"), "utf8"), "A=2\n")
      assert.isTrue(existsSync(join(root, "fixtures/deep/data.bin")))
      assert.isFalse(existsSync(join(root, ".env")))
    }
    assert.deepStrictEqual(yield* workspace.scan, workspace.prepared.tree)
  }).pipe(Effect.provide(live))
)

it.live("an install that points back into the source is distrusted; its launchers start the copy", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a.py": "a = 1\n", ".gitignore": ".venv/\n" },
      ignored: { ".venv/pyvenv.cfg": "home = /usr/bin\n", ".venv/bin/tool": { text: "#!x\n", mode: 0o755 } }
    })
    writeFileSync(
      join(repo.root, ".venv/bin/tool"),
      `#!${repo.root}/.venv/bin/python\n# ${repo.root}-other\n`
    )
    writeFileSync(
      join(repo.root, ".venv/pyvenv.cfg"),
      `home = /usr/bin\ncommand = python -m venv ${repo.root}/.venv\n`
    )
    const first = yield* openFor(repo)
    const place = yield* first.workspace.materialise(first.workspace.prepared.tree)
    assert.isNull(place.distrust)
    assert.strictEqual(
      readFileSync(join(place.root, ".venv/bin/tool"), "utf8"),
      `#!${place.root}/.venv/bin/python\n# ${repo.root}-other\n`
    )
    repo.write({ ".venv/lib/python3/site-packages/__editable__.a-1.pth": `${repo.root}\n` })
    const second = yield* openFor(repo)
    const other = yield* second.workspace.materialise(second.workspace.prepared.tree)
    assert.include(other.distrust ?? "", "__editable__.a-1.pth")
  }).pipe(Effect.provide(live))
)

it.live("set-up runs once in the workspace, and its outputs stand in every place as it left them", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n", ".gitignore": "node_modules/\n.venv/\n" } })
    const script =
      "mkdir -p node_modules/dep .venv/lib && echo 1 > node_modules/dep/index.js && pwd > .venv/lib/x.pth && echo ran >> $HOME/ran"
    const { directory, workspace } = yield* openFor(repo, { setup: [["sh", "-c", script]] })
    assert.deepStrictEqual(workspace.prepared.dependencies.copied.toSorted(), [".venv", "node_modules"])
    writeFileSync(join(workspace.root, "node_modules/dep/index.js"), "poisoned\n")
    const place = yield* workspace.materialise(workspace.prepared.tree)
    assert.strictEqual(readFileSync(join(place.root, "node_modules/dep/index.js"), "utf8"), "1\n")
    assert.strictEqual(readFileSync(join(place.root, ".venv/lib/x.pth"), "utf8"), `${place.root}\n`)
    assert.strictEqual(readFileSync(join(directory, "task-env/home/ran"), "utf8"), "ran\n")
    assert.deepStrictEqual(yield* workspace.unrecorded, [])
  }).pipe(Effect.provide(live))
)

it.live("a set-up command that fails ends the opening with its last lines", () =>
  Effect.gen(function* () {
    const repo = yield* repository({ files: { "a.txt": "a\n" } })
    const error = yield* Effect.flip(openFor(repo, { setup: [["sh", "-c", "echo no such package; exit 3"]] }))
    assert.strictEqual(error.reason, "setup_failed")
    assert.include(error.message, "exit 3")
    assert.include(error.message, "no such package")
  }).pipe(Effect.provide(live))
)

it.live("what set-up writes into the repository's own files is put back and said, and is in no patch", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: {
        "a.txt": "a\n",
        "gone.txt": "g\n",
        "package-lock.json": "{}\n",
        ".gitignore": "node_modules/\n"
      }
    })
    const script =
      "echo b > a.txt; rm gone.txt; echo made > made.txt; echo '{ }' > package-lock.json; mkdir -p node_modules/x; echo 1 > node_modules/x/i.js"
    const { workspace } = yield* openFor(repo, { setup: [["sh", "-c", script]] })
    assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
    assert.deepStrictEqual(
      yield* workspace.unrecorded,
      ["a.txt", "gone.txt", "made.txt", "package-lock.json"].map(
        (name) => `written by set-up and put back: ${name}`
      )
    )
    const place = yield* workspace.materialise(yield* workspace.apply([write("a.txt", "c\n")]))
    assert.isNull(place.distrust)
    assert.isTrue(existsSync(join(place.root, "node_modules/x/i.js")))
    assert.isFalse(existsSync(join(place.root, "made.txt")))
  }).pipe(Effect.provide(live))
)

it.live(
  "a directory that --deps names stays out of every patch, ignored at base or not, and --include still works",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({
        files: { "a.txt": "a\n", ".gitignore": ".env\n", "vendor/own.txt": "tracked\n" },
        ignored: { ".env": "K=1\n" }
      })
      const other = yield* scratch
      for (const [name, text] of [
        ["node_modules/x/i.js", "1\n"],
        ["vendor/own.txt", "theirs\n"],
        ["vendor/lib.txt", "2\n"]
      ] as const) {
        mkdirSync(join(other, name, ".."), { recursive: true })
        writeFileSync(join(other, name), text)
      }
      const { workspace } = yield* openFor(repo, {
        dependencies: { mode: "path", path: other },
        include: [".env"]
      })
      assert.strictEqual(yield* workspace.scan, workspace.prepared.tree)
      const tree = yield* workspace.apply([write("a.txt", "b\n")])
      const place = yield* workspace.materialise(tree)
      for (const root of [workspace.root, place.root]) {
        assert.strictEqual(readFileSync(join(root, ".env"), "utf8"), "K=1\n")
        assert.strictEqual(readFileSync(join(root, "node_modules/x/i.js"), "utf8"), "1\n")
        assert.strictEqual(readFileSync(join(root, "vendor/own.txt"), "utf8"), "tracked\n")
      }
      assert.deepStrictEqual((yield* workspace.diff(yield* workspace.scan)).files, [
        { path: "a.txt", change: "modified" }
      ])
    }).pipe(Effect.provide(live))
)

it.live(
  "nothing is brought along through a symlink of the base: that would be written outside of the clone",
  () =>
    Effect.gen(function* () {
      const outside = yield* scratch
      const repo = yield* repository({
        files: {
          "a.txt": "a\n",
          ".gitignore": "*.env\nnode_modules\n",
          dir: { symlink: outside },
          "top.env": { symlink: join(outside, "top") }
        }
      })
      for (const name of ["dir", "top.env"]) unlinkSync(join(repo.root, name))
      repo.write({ "dir/x.env": "X\n", "dir/node_modules/p/i.js": "1\n", "top.env": "Y\n" })
      for (const dependencies of [{ mode: "auto" }, { mode: "copy" }] as const) {
        const { workspace } = yield* openFor(repo, { dependencies, include: ["dir/*.env", "*.env"] })
        yield* workspace.materialise(workspace.prepared.tree)
        assert.deepStrictEqual(readdirSync(outside), [])
      }
    }).pipe(Effect.provide(live))
)
