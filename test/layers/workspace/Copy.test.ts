import { assert, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { HostEnvironment } from "../../../src/layers/sandbox/Environment.ts"
import { copyTrees } from "../../../src/layers/workspace/Copy.ts"
import { makeThrowAway } from "../../../src/layers/workspace/ThrowAway.ts"
import { assertUntouched, snapshotTree } from "../../support/Leaks.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, repository, scratch } from "./support.ts"

for (const [name, path] of [
  ["with cp", process.env["PATH"]],
  ["without cp", "/nonexistent"]
] as const) {
  it.live(`copies modes, links as they are and hidden files, ${name}`, () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      const from = join(folder, "from/deps")
      mkdirSync(join(from, ".bin/deep"), { recursive: true })
      writeFileSync(join(from, ".bin/run"), "#!/bin/sh\n")
      chmodSync(join(from, ".bin/run"), 0o755)
      writeFileSync(join(from, "read-only"), "x")
      chmodSync(join(from, "read-only"), 0o444)
      symlinkSync("../../elsewhere", join(from, "relative"))
      symlinkSync("/absolute", join(from, "absolute"))
      const before = snapshotTree(from)
      yield* copyTrees([from], join(folder, "to")).pipe(
        Effect.provideService(HostEnvironment, { PATH: path })
      )
      assertUntouched(before, snapshotTree(join(folder, "to/deps")))
      assertUntouched(before, snapshotTree(from))
    }).pipe(Effect.provide(live))
  )
}

it.live("copies what is there when something of it vanishes meanwhile", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const from = join(folder, "from/6f")
    mkdirSync(from, { recursive: true })
    writeFileSync(join(from, "kept"), "x", { mode: 0o444 })
    const inner = yield* FileSystem.FileSystem
    const seeing = FileSystem.make({
      ...inner,
      readDirectoryEntries: (at) =>
        Effect.map(inner.readDirectoryEntries(at), (entries) => [
          ...entries,
          { name: "tmp_obj_gone", type: "File" as const }
        ])
    })
    // Twice: what the first copy left must not be in the way of the second.
    const copy = copyTrees([from], join(folder, "to")).pipe(
      Effect.provideService(FileSystem.FileSystem, seeing)
    )
    yield* copy
    yield* copy
    assert.deepStrictEqual(readdirSync(join(folder, "to/6f")), ["kept"])
  }).pipe(Effect.provide(live))
)

it.live("a throw-away .git of a big repository holds the one commit and works like any other", () =>
  Effect.gen(function* () {
    const repo = yield* repository({
      files: { "a.txt": "a\n" },
      commits: [{ files: { "b.txt": "b\n" }, message: "second" }]
    })
    repo.git("gc", "-q")
    const { directory } = yield* openFor(repo)
    const folder = yield* scratch
    const identity = {
      git_dir: join(directory, "git"),
      commit: repo.head,
      branch: "refs/heads/main",
      shallow: null
    }
    yield* makeThrowAway(folder, identity, 0)
    const git = (...args: ReadonlyArray<string>) =>
      execFileSync("git", args, { cwd: folder, env: gitEnvironment(folder), encoding: "utf8" }).trim()
    git("reset", "-q", "--hard")
    assert.strictEqual(readFileSync(join(folder, "b.txt"), "utf8"), "b\n")
    assert.strictEqual(git("rev-list", "--count", "HEAD"), "1")
    assert.strictEqual(git("symbolic-ref", "HEAD"), "refs/heads/main")
    writeFileSync(join(folder, "a.txt"), "changed\n")
    git("commit", "-qam", "third")
    assert.strictEqual(git("status", "--porcelain"), "")
  }).pipe(Effect.provide(live))
)
