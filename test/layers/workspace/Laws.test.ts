import { assert, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { FileChange } from "../../../src/domain/patch/FileSet.ts"
import { excludesOf } from "../../../src/layers/workspace/Ignore.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, remove, repository, scratch } from "./support.ts"

const files = { a: "a\n", "d/b": "b\n", "d/e/c": "c\n", x: "x\n" }
const names = ["a", "d/b", "d/e/c", "x", "n", "d/n", "new/deep/file"]

const contents = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom("one\r\ntwo\r\n", "$Id$\n", "", "\ufeffbom").map((text) => Buffer.from(text))
)

const edits = fc.uniqueArray(
  fc.record({ path: fc.constantFrom(...names), bytes: fc.option(contents), executable: fc.boolean() }),
  { selector: (edit) => edit.path, minLength: 1 }
)

it.live(
  "a tree is what git write-tree says of the same bytes, and the opposite edit leads back to it",
  () =>
    Effect.gen(function* () {
      const repo = yield* repository({ files })
      const { workspace } = yield* openFor(repo)
      const folder = yield* scratch
      for (const [index, edit] of fc.sample(edits, { numRuns: 6, seed: 7 }).entries()) {
        const forward: Array<FileChange> = []
        const back: Array<FileChange> = []
        for (const { bytes, executable, path } of edit) {
          const before = yield* workspace.read(path, 1000)
          const old = before?._tag === "File" ? before : undefined
          if (bytes === null && old === undefined) continue
          forward.push(bytes === null ? remove(path) : { _tag: "Write", path, bytes, executable })
          back.push(
            old === undefined
              ? remove(path)
              : { _tag: "Write", path, bytes: old.bytes, executable: old.executable }
          )
        }
        if (forward.length === 0) continue
        const tree = yield* workspace.apply(forward)
        // Half of the time the next edit starts from a tree that was read again, half from the one in memory.
        if (index % 2 === 0) yield* workspace.restore(tree)
        assert.strictEqual(yield* workspace.scan, tree)
        // The same bytes in a repository of nobody, hashed by plain git.
        const root = join(folder, String(index))
        mkdirSync(root)
        const env = gitEnvironment(root)
        execFileSync("git", ["init", "-q"], { cwd: root, env })
        for (const path of yield* workspace.list("")) {
          const node = yield* workspace.read(path, 1000)
          if (node?._tag !== "File") continue
          mkdirSync(dirname(join(root, path)), { recursive: true })
          writeFileSync(join(root, path), node.bytes, { mode: node.executable ? 0o755 : 0o644 })
        }
        execFileSync("git", ["add", "-A"], { cwd: root, env })
        assert.strictEqual(
          tree,
          execFileSync("git", ["write-tree"], { cwd: root, env, encoding: "utf8" }).trim()
        )
        assert.strictEqual(yield* workspace.apply(back), workspace.prepared.tree)
      }
    }).pipe(Effect.provide(live)),
  60_000
)

const pattern = fc.constantFrom(
  ...[
    "*.log",
    "/only",
    "!keep.log",
    "dir/",
    "a/b",
    "**/deep",
    "x*",
    "# comment",
    "",
    "!dir/",
    "sub/**",
    "[ab]",
    "\\!bang",
    "trail  ",
    "a/"
  ],
  ...["/*.log", "deep/**/x", "!/x1", "*", "!*/", "only\r"]
)
const rules = fc.record({
  root: fc.array(pattern, { maxLength: 4 }),
  sub: fc.array(pattern, { maxLength: 4 }),
  odd: fc.array(pattern, { maxLength: 3 })
})
const ignorable = [
  "x.log",
  "keep.log",
  "only",
  "dir/f",
  "a/b",
  "deep",
  "x1",
  "a",
  "b",
  "!bang",
  "trail"
].flatMap((name) => ["", "sub/", "sub/in/", "o[d]d*/"].map((directory) => directory + name))

it.live(
  "the ignore rules as one list ignore exactly what git ignores by the files",
  () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      const env = gitEnvironment(folder)
      for (const [index, sample] of fc.sample(rules, { numRuns: 20, seed: 11 }).entries()) {
        const root = join(folder, String(index))
        mkdirSync(root)
        for (const name of ignorable) {
          Result.try(() => {
            mkdirSync(dirname(join(root, name)), { recursive: true })
            writeFileSync(join(root, name), "x")
          })
        }
        const text = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}\n`).join("")
        const sources = { "": text(sample.root), sub: text(sample.sub), "o[d]d*": text(sample.odd) }
        const list = excludesOf(
          Object.entries(sources).map(([directory, content]) => ({ directory, content })),
          "from-info\n"
        )
        writeFileSync(`${root}.excludes`, list)
        execFileSync("git", ["init", "-q", "--template="], { cwd: root, env })
        const others = (...args: ReadonlyArray<string>) =>
          execFileSync("git", ["ls-files", "-z", "-o", ...args], { cwd: root, env, encoding: "utf8" })
            .split("\0")
            .filter((name) => !name.endsWith(".gitignore"))
        const ours = others(`--exclude-from=${root}.excludes`)
        for (const [directory, content] of Object.entries(sources))
          writeFileSync(join(root, directory, ".gitignore"), content)
        assert.deepStrictEqual(ours, others("--exclude-per-directory=.gitignore"), JSON.stringify(sources))
      }
    }),
  60_000
)
