/**
 * What the user gets: `git apply` of the patch on the source gives exactly the bytes, modes and kinds that were checked.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import type { FileChange } from "../../../src/domain/patch/FileSet.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { live, openFor, remove, repository, scratch } from "./support.ts"

const names = [
  "a",
  "a/b",
  "a/b/c",
  "Case",
  "case",
  "-dash",
  " lead",
  "trail ",
  'q"uote',
  "back\\slash",
  "tab\there",
  "new\nline",
  "ünï",
  "colon:x",
  "a => b",
  "deep/er/file.txt",
  "deep/er",
  "null",
  "dev/null",
  ".gitignore",
  ".github/x",
  "a.git",
  "gone"
] as const

const bytes = fc.oneof(
  fc
    .constantFrom(
      ...[
        "",
        "\n",
        "\r\n",
        "no end",
        "one\r\ntwo\r\n",
        "mixed\r\nends\nhere\r",
        "trailing  \n\t\n\n\n",
        "\ufeffbom\n"
      ],
      ...[
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
        "diff --git a/x b/x\n",
        "\\ No newline at end of file\n",
        "-- \n2.39\n"
      ],
      ...[
        "nul\0nul\n",
        "$Id$\n",
        "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n",
        "a\nb\nc\nd\ne\nf\ng\nH\ni\nj",
        `${"long ".repeat(20_000)}\n`
      ]
    )
    .map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 60 }).map((some) => Buffer.from(some)),
  fc
    .array(fc.constantFrom("x\n", "y\n", "z\r\n", "\n", "w"), { maxLength: 40 })
    .map((lines) => Buffer.from(lines.join("")))
)

type Content =
  | { readonly kind: "file"; readonly bytes: Buffer; readonly executable: boolean }
  | { readonly kind: "link"; readonly target: string }
  | { readonly kind: "none" }

const content: fc.Arbitrary<Content> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("file" as const), bytes, executable: fc.boolean() })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("link" as const),
      target: fc.constantFrom("a", "../out", "/etc/hostname", "deep", "new\nline", "x".repeat(200))
    })
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("none" as const) }) }
)

const operation = fc.record({
  path: fc.constantFrom(...names),
  content,
  through: fc.constantFrom("disk", "tool")
})

/** Puts something at a path over whatever is in the way. */
const put = (root: string, path: string, what: Content): void => {
  const target = join(root, path)
  const segments = path.split("/").slice(0, -1)
  for (let depth = 1; depth <= segments.length; depth++) {
    const at = join(root, ...segments.slice(0, depth))
    if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(at)
  }
  rmSync(target, { recursive: true, force: true })
  if (what.kind === "none") return
  mkdirSync(dirname(target), { recursive: true })
  if (what.kind === "link") return symlinkSync(what.target, target)
  writeFileSync(target, what.bytes)
  chmodSync(target, what.executable ? 0o755 : 0o644)
}

/** Every file and link below a directory, as git would see it. */
const contents = (root: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const walk = (below: string): void => {
    for (const name of readdirSync(join(root, below))) {
      const path = below === "" ? name : `${below}/${name}`
      if (path === ".git") continue
      const at = join(root, path)
      const stats = lstatSync(at)
      if (stats.isDirectory()) walk(path)
      else if (stats.isSymbolicLink()) found.push(`link ${JSON.stringify(path)} ${readlinkSync(at)}`)
      else
        found.push(
          `${(stats.mode & 0o100) === 0 ? "file" : "program"} ${JSON.stringify(path)} ${readFileSync(at).toString("base64")}`
        )
    }
  }
  walk("")
  return found.toSorted()
}

interface Sample {
  readonly base: ReadonlyArray<typeof operation extends fc.Arbitrary<infer A> ? A : never>
  readonly edits: Sample["base"]
}

const samples = fc.record({
  base: fc.array(operation, { maxLength: 12 }),
  edits: fc.array(operation, { minLength: 1, maxLength: 8 })
})

/** A failure that can be read: without it, a sample is only a number. */
const explain = (sample: Sample, cause: unknown): string =>
  `${String(cause)} ${JSON.stringify(sample, (_, value: unknown) =>
    typeof value === "string" && value.length > 100 ? `${value.slice(0, 100)}…` : value
  )}`

/** With carriage returns in it, git's own conversion on commit may change what was checked: no patch can prevent it. */
const hasReturns = ({ base, edits }: Sample): boolean =>
  [...base, ...edits].some(({ content: what }) => what.kind === "file" && what.bytes.includes(0x0d))

const judge = Effect.fnUntraced(function* (sample: Sample) {
  const repo = yield* repository({ files: { keep: "keep\n" } })
  for (const { content: what, path } of sample.base) if (path !== ".gitignore") put(repo.root, path, what)
  const head = repo.commit({}, "base")
  const { workspace } = yield* openFor({ root: repo.root, head })
  for (const { content: what, path, through } of sample.edits) {
    if (through === "disk" || what.kind === "link") {
      put(workspace.root, path, what)
      continue
    }
    const change: FileChange =
      what.kind === "none"
        ? remove(path)
        : { _tag: "Write", path, bytes: what.bytes, executable: what.executable }
    // What is in its way is refused, and then it is not part of the change.
    yield* Effect.result(workspace.apply([change]))
  }
  const tree = yield* workspace.scan
  if (tree === workspace.prepared.tree) return
  const place = yield* workspace.materialise(tree)
  const { patch } = yield* workspace.diff(tree)
  const folder = yield* scratch
  const env = gitEnvironment(repo.folder)
  const git = (cwd: string, args: ReadonlyArray<string>, input: Uint8Array = new Uint8Array()) =>
    execFileSync("git", args, { cwd, env, input, stdio: ["pipe", "pipe", "pipe"], encoding: "utf8" }).trim()
  const apply = ["apply", "--whitespace=nowarn", "-"]
  const handOver = () => {
    const source = join(folder, "source")
    cpSync(repo.root, source, { recursive: true, verbatimSymlinks: true })
    git(source, apply, patch)
    assert.deepStrictEqual(contents(source), contents(place.root))
    if (hasReturns(sample)) return
    const converting = join(folder, "converting")
    cpSync(join(repo.root, ".git"), join(converting, ".git"), { recursive: true })
    git(converting, ["config", "core.autocrlf", "true"])
    git(converting, ["checkout", "-q", "-f", "HEAD", "--", "."])
    git(converting, apply, patch)
    git(converting, ["add", "-A", "-f"])
    assert.strictEqual(git(converting, ["write-tree"]), tree, "under core.autocrlf")
  }
  yield* Effect.sync(() => {
    try {
      handOver()
    } catch (cause) {
      assert.fail(explain(sample, cause))
    }
  })
}, Effect.scoped)

it.live(
  "git apply on the source gives exactly what was checked, whatever was edited and how",
  () =>
    Effect.forEach(fc.sample(samples, { numRuns: 9, seed: 5 }), (sample) => judge(sample), {
      discard: true
    }).pipe(Effect.provide(live)),
  120_000
)
