import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { TreeId } from "../../src/domain/Ids.ts"
import { makeBundle, type BundleSpec } from "../layers/usertree/bundle.ts"
import { look, remains, sourceOf, type Change } from "../layers/usertree/support.ts"
import { runCli, startCli, type CliOptions } from "../support/Cli.ts"
import { makeHome } from "../support/Home.ts"
import { assertUntouched, diffTrees, processCheck, snapshotTree } from "../support/Leaks.ts"
import { makeRepo, type Repo, type RepoSpec } from "../support/Repo.ts"
import { addFix, addRepo } from "../support/repos/add.ts"

const fixing: Change = { files: { [addFix.path]: addFix.fixed, "src/näme ü.js": "new\n" } }

/** A repository, and a run of it that ended with a patch. */
const ended = async (
  change: Change = fixing,
  spec: { readonly repo?: Partial<RepoSpec>; readonly bundle?: Partial<BundleSpec> } = {}
) => {
  const repo = addRepo(spec.repo)
  const home = makeHome()
  const source = sourceOf(repo, change)
  const directory = await makeBundle({
    run_root: home.runRoot,
    run_id: "run-1",
    repository: repo.root,
    source,
    ...spec.bundle
  })
  const apply = async (args: ReadonlyArray<string> = [], options: Partial<CliOptions> = {}) => {
    const result = await runCli(["apply", ...args], {
      cwd: repo.root,
      home,
      ...options,
      env: { LOOPLANE_RUN_ROOT: home.runRoot, ...options.env }
    })
    if (processCheck) assert.deepStrictEqual(result.leftovers(), [])
    return result
  }
  const dispose = () => {
    home.dispose()
    repo.dispose()
  }
  return { repo, home, source, directory, apply, [Symbol.asyncDispose]: async () => dispose() }
}

const staged = (repo: Repo) => repo.git("diff", "--cached")
const oneLine = (text: string) => text.trimEnd().split("\n").length === 1

describe("looplane apply", () => {
  it("takes the newest run of the repository here home, from a subdirectory, and back again", async () => {
    await using run = await ended()
    const { apply, repo } = run
    repo.write({ "staged.txt": "mine\n" })
    repo.git("add", "staged.txt")
    const index = staged(repo)
    const before = look(repo.root)
    const result = await apply([], { cwd: join(repo.root, "src") })
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(repo.read(addFix.path), addFix.fixed)
    assert.strictEqual(repo.read("src/näme ü.js"), "new\n")
    assert.strictEqual(staged(repo), index)
    assert.deepStrictEqual(result.stderr.trimEnd().split("\n"), [
      "applied src/add.js",
      "applied src/näme ü.js"
    ])
    assert.match(
      result.stdout,
      /^run run-1 is applied to .*: 2 files; to undo: looplane apply --undo run-1\n$/
    )

    const again = await apply(["--output", "json"])
    assert.strictEqual(again.code, 0)
    assert.deepStrictEqual(again.json()["applied"], [])
    assert.deepStrictEqual(again.json()["kept"], ["src/add.js", "src/näme ü.js"])

    const undone = await apply(["--undo", "run-1", "--output", "json"])
    assert.strictEqual(undone.code, 0, undone.stderr)
    assert.deepStrictEqual(undone.json()["undone"], ["src/add.js", "src/näme ü.js"])
    assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
    assert.deepStrictEqual(remains(repo.root), [])
    const nothing = await apply(["--undo"])
    assert.strictEqual(nothing.code, 1)
    assert.match(nothing.stdout, /^nothing to undo: /)
  })

  it("says what it would do with --check, and writes nothing at all", async () => {
    await using run = await ended()
    const before = snapshotTree(run.repo.root)
    const result = await run.apply(["--check", "--output", "json"])
    assert.strictEqual(result.code, 0, result.stderr)
    assert.deepStrictEqual(result.json(), {
      run_id: "run-1",
      repository: run.repo.root,
      applied: [
        { path: "src/add.js", change: "modified" },
        { path: "src/näme ü.js", change: "added" }
      ],
      merged: [],
      kept: [],
      conflicts: [],
      dry_run: true,
      commit: null,
      branch: null,
      undo: null
    })
    assertUntouched(before, snapshotTree(run.repo.root))
  })

  it("reports conflicts and writes nothing; with --conflicts it writes markers, and undo takes them back", async () => {
    await using run = await ended()
    const mine = addFix.fixed.replace("left + right", "right - left")
    run.repo.write({ [addFix.path]: mine })
    const before = look(run.repo.root)
    const result = await run.apply(["--output", "json"])
    assert.strictEqual(result.code, 1)
    assert.deepStrictEqual(result.json()["conflicts"], [
      { path: "src/add.js", reason: "changed by both in the same place" }
    ])
    assert.strictEqual(result.stderr, "conflict src/add.js: changed by both in the same place\n")
    assert.deepStrictEqual(diffTrees(before, look(run.repo.root)), [])
    const marked = await run.apply(["--conflicts"])
    assert.strictEqual(marked.code, 1)
    assert.match(run.repo.read(addFix.path), /<<<<<<< yours\n.*right - left\n\|\|\|\|\|\|\| base\n/)
    assert.strictEqual((await run.apply(["--undo"])).code, 0)
    assert.deepStrictEqual(diffTrees(before, look(run.repo.root)), [])
  })

  it("does not undo over what was changed since", async () => {
    await using run = await ended()
    await run.apply()
    run.repo.write({ [addFix.path]: `${addFix.fixed}// mine\n` })
    const before = look(run.repo.root)
    const result = await run.apply(["--undo"])
    assert.strictEqual(result.code, 1)
    assert.strictEqual(result.stderr, "changed src/add.js: it is not what the apply left\n")
    assert.deepStrictEqual(diffTrees(before, look(run.repo.root)), [])
  })

  it("finds a repository that has moved, and refuses another one", async () => {
    await using run = await ended()
    const moved = join(run.repo.folder, "moved")
    renameSync(run.repo.root, moved)
    const other = makeRepo({ files: { "a.txt": "a\n" } })
    const refused = await run.apply(["run-1"], { cwd: other.root })
    assert.strictEqual(refused.code, 2)
    assert.isTrue(oneLine(refused.stderr), refused.stderr)
    assert.match(refused.stderr, /is not the repository of run run-1/)
    other.dispose()
    const result = await run.apply(["run-1", "-C", moved], { cwd: run.home.folder })
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(readFileSync(join(moved, addFix.path), "utf8"), addFix.fixed)
  })
})

describe("a patch that is not vouched for", () => {
  it("needs --unverified, which is recorded", async () => {
    await using run = await ended(fixing, { bundle: { reason: "unverified" } })
    const before = snapshotTree(run.repo.root)
    const refused = await run.apply()
    assert.strictEqual(refused.code, 2)
    assert.match(
      refused.stderr,
      /^looplane: run run-1 is not verified: it ended unverified; --unverified applies/
    )
    assert.isTrue(oneLine(refused.stderr))
    assertUntouched(before, snapshotTree(run.repo.root))
    const result = await run.apply(["--unverified"])
    assert.strictEqual(result.code, 0, result.stderr)
    assert.include(result.stderr, "looplane: run run-1 is applied unverified: it ended unverified\n")
    const records = join(run.repo.root, ".git", "looplane", "applied")
    const [id = ""] = readdirSync(records)
    const record: { readonly unverified?: unknown } = JSON.parse(
      readFileSync(join(records, id, "record.json"), "utf8")
    )
    assert.isTrue(record.unverified)
  })

  const tampering: ReadonlyArray<
    readonly [string, string, (text: string) => string, RegExp, ReadonlyArray<string>]
  > = [
    [
      "the patch was changed",
      "changes.patch",
      (text) => text.replaceAll("right", "wrong"),
      /was changed, so it is not applied/,
      ["--unverified"]
    ],
    [
      "the patch was emptied",
      "changes.patch",
      () => "",
      /was changed, so it is not applied/,
      ["--unverified"]
    ],
    [
      "the receipt was changed",
      "receipt.json",
      (text) => text.replace('"passed"', '"failed"'),
      /its receipt does not vouch for it/,
      []
    ],
    [
      "the journal was changed",
      "events.jsonl",
      (text) => text.replace("right", "wrong"),
      /does not follow the line before it|is not the one/,
      ["--unverified"]
    ]
  ]
  it.each(tampering)("is refused in one line when %s", async (_, name, change, why, args) => {
    await using run = await ended()
    const before = snapshotTree(run.repo.root)
    const file = join(run.directory, name)
    chmodSync(file, 0o600)
    const text = readFileSync(file, "utf8")
    assert.notStrictEqual(change(text), text)
    writeFileSync(file, change(text))
    const result = await run.apply(args)
    assert.strictEqual(result.code, 2, result.stderr)
    assert.isTrue(oneLine(result.stderr), result.stderr)
    assert.match(result.stderr, why)
    assertUntouched(before, snapshotTree(run.repo.root))
  })

  it("and is empty is nothing to apply", async () => {
    await using run = await ended({}, { bundle: { reason: "no_changes" } })
    const result = await run.apply()
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(result.stdout, "nothing to apply: the patch of run run-1 is empty\n")
  })
})

describe("a run that began from the working tree", () => {
  it("is merged against what stood there then", async () => {
    await using run = await ended()
    const { home, repo } = run
    repo.write({ "README.md": "# add\n\nMine.\n" })
    // The tree of the dirty work tree, and the patch against it, as a run with --base working-tree leaves them.
    const git = join(home.folder, "objects")
    cpSync(join(repo.root, ".git"), git, { recursive: true })
    const inCopy = (...args: ReadonlyArray<string>) =>
      repo.git(`--git-dir=${git}`, `--work-tree=${repo.root}`, ...args)
    inCopy("add", "--all")
    const start = inCopy("write-tree")
    const before = look(repo.root)
    repo.write({ [addFix.path]: addFix.fixed, "README.md": "# add\n\nMine, and more.\n" })
    inCopy("add", "--all")
    const tree = inCopy("write-tree")
    const patch = Buffer.from(`${inCopy("diff", "--binary", "--full-index", "--no-renames", start, tree)}\n`)
    repo.git("checkout", "--quiet", "--", addFix.path)
    repo.write({ "README.md": "# add\n\nMine.\n" })
    assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
    const directory = await makeBundle({
      run_root: home.runRoot,
      run_id: "run-2",
      repository: repo.root,
      source: { ...run.source, patch, tree: TreeId.make(tree) },
      working_tree: TreeId.make(start)
    })
    const gone = await run.apply(["run-2"])
    assert.strictEqual(gone.code, 2)
    assert.match(gone.stderr, /what the run began from is neither in the repository nor in/)
    cpSync(git, join(directory, "git"), { recursive: true })
    const branch = await run.apply(["run-2", "--branch", "b"])
    assert.match(branch.stderr, /began from a working tree, not from a commit/)
    const result = await run.apply(["run-2"])
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(repo.read("README.md"), "# add\n\nMine, and more.\n")
  })
})

const identity = {
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.invalid",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.invalid"
}

describe("on a branch", () => {
  it("is base plus patch, with a message that names the run, and no file is touched", async () => {
    await using run = await ended()
    const { repo, source } = run
    repo.write({ [addFix.path]: "mine\n" })
    repo.git("commit", "--quiet", "--all", "--message", "moved on")
    writeFileSync(
      join(repo.root, ".git", "config"),
      "[user]\n\tname = Ada\n\temail = ada@example.invalid\n[core]\n\thooksPath = hooks\n",
      { flag: "a" }
    )
    mkdirSync(join(repo.root, "hooks"))
    writeFileSync(
      join(repo.root, "hooks", "reference-transaction"),
      `#!/bin/sh\ntouch ${repo.folder}/hook-ran\n`,
      { mode: 0o755 }
    )
    const before = look(repo.root)
    const index = readFileSync(join(repo.root, ".git", "index"))
    const result = await run.apply(["--branch", "fix/add", "--output", "json"])
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(result.json()["branch"], "fix/add")
    assert.strictEqual(result.json()["commit"], repo.git("rev-parse", "fix/add"))
    assert.strictEqual(repo.git("rev-parse", "fix/add^{tree}"), source.tree)
    assert.strictEqual(repo.git("rev-parse", "fix/add^"), source.base_commit)
    assert.strictEqual(
      repo.git("log", "-1", "--format=%an <%ae>%n%B", "fix/add"),
      "Ada <ada@example.invalid>\nFix add.\n\nLooplane-Run: run-1\n"
    )
    assert.deepStrictEqual(diffTrees(before, look(repo.root)), [])
    assert.deepStrictEqual(readFileSync(join(repo.root, ".git", "index")), index)
    assert.isFalse(existsSync(join(repo.folder, "hook-ran")))
    const both = await run.apply(["--branch", "fix/more", "--commit"])
    assert.strictEqual(both.code, 2)
    assert.match(both.stderr, /--branch makes a commit of its own/)
    const twice = await run.apply(["--branch", "fix/add"])
    assert.strictEqual(twice.code, 2)
    assert.match(twice.stderr, /there is a branch fix\/add already/)
    for (const name of ["fix", "-x", "a..b", "HEAD", "@", "refs/heads/q", "fix/add/below"]) {
      const refused = await run.apply([`--branch=${name}`])
      assert.strictEqual(refused.code, 2, name)
      assert.isTrue(oneLine(refused.stderr), refused.stderr)
    }
    repo.git("fsck", "--strict")
  })

  it("needs somebody to be its author", async () => {
    await using run = await ended()
    const result = await run.apply(["--branch", "b"])
    assert.strictEqual(result.code, 2)
    assert.match(result.stderr, /git does not know who you are/)
    assert.isTrue(oneLine(result.stderr))
  })
})

describe("with --commit", () => {
  it("commits exactly the paths of the patch on the current branch", async () => {
    await using run = await ended({
      files: { [addFix.path]: addFix.fixed, "bin/run": { text: "x\n", mode: 0o755 } },
      removed: ["README.md"]
    })
    const { repo } = run
    repo.write({ "package.json": "{}\n", "other.txt": "mine\n" })
    const head = repo.git("rev-parse", "HEAD")
    const result = await run.apply(["--commit", "--output", "json"], { env: identity })
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(repo.git("rev-parse", "HEAD^"), head)
    assert.strictEqual(result.json()["commit"], repo.git("rev-parse", "main"))
    assert.strictEqual(
      repo.git("show", "--format=%an", "--name-status", "HEAD"),
      "Ada\n\nD\tREADME.md\nA\tbin/run\nM\tsrc/add.js"
    )
    assert.strictEqual(repo.git("status", "--porcelain"), " M package.json\n?? other.txt")
    assert.strictEqual(repo.git("ls-tree", "HEAD", "bin/run").slice(0, 6), "100755")
    const undo = await run.apply(["--undo"])
    assert.strictEqual(undo.code, 2)
    assert.match(undo.stderr, /was committed as .*: git revert/)
  })

  it("commits what the checkout's line endings stand for", async () => {
    await using run = await ended()
    const { repo } = run
    repo.git("config", "core.autocrlf", "true")
    rmSync(join(repo.root, addFix.path))
    repo.git("checkout", "--", addFix.path)
    const result = await run.apply(["--commit"], { env: identity })
    assert.strictEqual(result.code, 0, result.stderr)
    assert.strictEqual(repo.read(addFix.path), addFix.fixed.replaceAll("\n", "\r\n"))
    assert.strictEqual(repo.git("rev-parse", "HEAD^{tree}"), run.source.tree)
  })

  it.each([
    [
      "staged changes",
      (repo: Repo) => {
        repo.write({ "x.txt": "x\n" })
        repo.git("add", "x.txt")
      },
      /there are staged changes/
    ],
    [
      "changes of the user's in the same file",
      (repo: Repo) =>
        repo.write({ [addFix.path]: `// mine\n${addFix.fixed.replace(addFix.new_text, addFix.old_text)}` }),
      /has changes of yours that are not committed/
    ],
    [
      "a merge",
      (repo: Repo) => writeFileSync(join(repo.root, ".git", "MERGE_HEAD"), `${repo.head}\n`),
      /in the middle of a merge/
    ],
    [
      "a git that holds the index",
      (repo: Repo) => writeFileSync(join(repo.root, ".git", "index.lock"), ""),
      /index\.lock is there: wait for the git that made it/
    ],
    [
      "a file that git is not to look at",
      (repo: Repo) => repo.git("update-index", "--skip-worktree", addFix.path),
      /is marked skip-worktree in the index: git update-index --no-skip-worktree/
    ]
  ] as const)("refuses over %s", async (_, meddle, why) => {
    await using run = await ended()
    meddle(run.repo)
    const before = look(run.repo.root)
    const result = await run.apply(["--commit"], { env: identity })
    assert.strictEqual(result.code, 2, result.stdout)
    assert.match(result.stderr, why)
    assert.isTrue(oneLine(result.stderr))
    assert.deepStrictEqual(diffTrees(before, look(run.repo.root)), [])
  })
})

describe("killed with SIGKILL while it writes", () => {
  it("leaves the old tree or the new one, without another command", async () => {
    const files = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`many/${at}.txt`, `old ${at}\n`]))
    const changed = Object.fromEntries(Object.keys(files).map((path) => [path, `new ${path}\n`]))
    await using run = await ended({ files: changed }, { repo: { files } })
    const { home, repo } = run
    const before = look(repo.root)
    mkdirSync(join(repo.root, ".git", "looplane", "applied"), { recursive: true, mode: 0o700 })
    const records = join(repo.root, ".git", "looplane", "applied")
    const touched = Promise.withResolvers<void>()
    const watching = watch(join(repo.root, "many"), () => touched.resolve())
    await using cli = startCli(["apply", "run-1"], {
      cwd: repo.root,
      home,
      env: { LOOPLANE_RUN_ROOT: home.runRoot },
      signalAfter: touched.promise,
      signal: "SIGKILL"
    })
    const result = await cli.done
    watching.close()
    // A machine that is fast enough has written everything before the signal: every step is killed in test/layers/usertree.
    assert.include(["SIGKILL", null], result.signal)
    // The record goes when everything is back, or says that everything is done.
    const settled = () =>
      readdirSync(records).every((id) => {
        const file = join(records, id, "record.json")
        return existsSync(file) && readFileSync(file, "utf8").includes('"phase": "done"')
      })
    const whole = Promise.withResolvers<void>()
    const settle = () => (settled() ? whole.resolve() : undefined)
    const settling = watch(records, { recursive: true }, settle)
    settle()
    await whole.promise
    settling.close()
    const now = look(repo.root)
    const isNew = Object.entries(changed).every(([path, content]) => repo.read(path) === content)
    assert.isTrue(isNew || diffTrees(before, now).length === 0, diffTrees(before, now).slice(0, 5).join("\n"))
    const again = await run.apply(["run-1"])
    assert.strictEqual(again.code, 0, again.stderr)
    for (const [path, content] of Object.entries(changed)) assert.strictEqual(repo.read(path), content)
  })
})
