import { execFileSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { runCli, type Home } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { stall } from "../support/ModelServer.ts"
import { gitEnvironment, makeRepo, type Files, type Repo } from "../support/Repo.ts"
import { addFiles, addFix, addRepo } from "../support/repos/add.ts"
import { call, calls, checkArgs, providerArgs, says, uncontained, type ProviderName } from "./support.ts"
import {
  appears,
  assertNoStack,
  assertOneLine,
  assertVerified,
  byTurn,
  fix,
  fixAt,
  look,
  mountSmall,
  readJson,
  rechain,
  story,
  world
} from "./world.ts"

/** Much longer than any refusal takes, and much shorter than a hang. */
const soon = 20_000
/** A follow-up turn that ends the run at once. */
const more = says("Nothing more to do.")

/** Every JSON file of a bundle is whole or not there, and nothing says that the run ended. */
const assertNothingHalf = (directory: string) => {
  for (const name of readdirSync(directory).filter((each) => each.endsWith(".json")))
    assert.doesNotThrow(() => readJson(join(directory, name)), name)
  assert.isFalse(existsSync(join(directory, "result.json")))
}

describe("a full disk", () => {
  const small = (home: Home) => join(home.folder, "small")
  /** More than fits into a pipe; the last line is what a lost disk would lose. */
  const loud = `sh -c 'i=0; while [ $i -lt 9000 ]; do echo line $i of the output; i=$((i+1)); done; grep -q "left + right" src/add.js && echo the last line'`

  it("ends a run in one line; earlier runs stay readable; with room again it goes on", async ({ skip }) => {
    let fill = () => {}
    await using it = await world(
      byTurn(story, new Map(), (turn) => (turn === 2 ? fill() : undefined)),
      { runRoot: (home) => join(small(home), "runs"), env: { TMPDIR: undefined } }
    )
    using disk = mountSmall(small(it.home))
    using other = mountSmall(join(it.home.folder, "other"))
    if (disk === null || other === null) return skip("nothing can be mounted here")
    other.fill()
    const tight = { cli: { env: { TMPDIR: other.at } } }
    const first = await it.exec(["--check", loud, "--no-baseline", "--unsafe-local-exec"], tight).done
    assert.strictEqual(first.code, 0, first.stderr)
    assert.include(readFileSync(join(it.directory(), "test.log"), "utf8"), "the last line")
    const before = snapshotTree(it.directory())

    fill = disk.fill
    const full = await it.exec(checkArgs, tight).done
    assert.strictEqual(full.code, 1)
    assert.strictEqual(full.stdout, "")
    assertOneLine(full, /no space left on the device: .*\/small\/runs\//)
    assert.isBelow(full.durationMs, soon)
    const refused = await it.looplane(["resume", "last"])
    assert.notStrictEqual(refused.code, 0)
    assertOneLine(refused, /no space left on the device: .*\/small\/runs\//)
    assert.isBelow(refused.durationMs, soon)
    assertNothingHalf(it.directory())
    const listed = await it.looplane(["sessions"])
    assert.match(listed.stdout, /incomplete.*\n  lacks: .*result\.json; looplane resume .*\n.*verified/)
    const shown = await it.looplane(["sessions", "--show", basename(it.runs()[0] ?? "")])
    assert.match(shown.stdout, /^status: {2}verified$/m)
    assertUntouched(before, snapshotTree(it.runs()[0] ?? ""))

    fill = () => {}
    disk.empty()
    await assertVerified(it, await it.looplane(["resume", "last"]))
  })

  it("in the shape of a limit on the size of files: one line, and without it the run goes on", async () => {
    await using it = await world(byTurn(story))
    const cache = { XDG_CACHE_HOME: join(it.home.folder, "cache") }
    const limited = await it.exec(checkArgs, {
      cli: { env: cache, through: (command) => ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh", ...command] }
    }).done
    assert.strictEqual(limited.code, 1, limited.stderr)
    assertOneLine(limited, /no file may be that large: .*events\.jsonl$/)
    assertNothingHalf(it.directory())
    await assertVerified(it, await it.looplane(["resume", "last"]))
  })
})

describe("a bundle that another version wrote", () => {
  it("keeps what is not known here, and is left alone when it is of a later version", async () => {
    await using it = await world(byTurn(story, new Map([[2, stall()]])))
    await it.killedAt(it.exec(), 3)
    const directory = it.directory()
    const asked = { event_type: "judge.asked", data: { some: ["thing"] } }
    rechain(directory, 9, (entry) => [{ ...entry, ...asked }, entry])
    const journal = readFileSync(join(directory, "events.jsonl"), "utf8")

    rechain(directory, 12, (entry) => [{ ...entry, version: 2 }])
    const before = snapshotTree(directory)
    for (const args of [
      ["resume", "last", "--accept-loss"],
      ["replay", "last"]
    ]) {
      const refused = await it.looplane(args)
      assert.strictEqual(refused.code, 2, args.join(" "))
      assertOneLine(refused, /line 13 of .*events\.jsonl is of journal version 2, .* version 1$/)
      assert.strictEqual(refused.stdout, "")
    }
    const listed = await it.looplane(["sessions"])
    assert.match(listed.stdout, /incomplete/)
    assertUntouched(before, snapshotTree(directory))

    rechain(directory, 12, (entry) => [{ ...entry, version: 1 }])
    assert.strictEqual(readFileSync(join(directory, "events.jsonl"), "utf8"), journal)
    await assertVerified(it, await it.looplane(["resume", "last"]))
    assert.isTrue(readFileSync(join(directory, "events.jsonl"), "utf8").startsWith(journal))
    const shown = await it.looplane(["sessions", "--show", "last"])
    assert.match(shown.stdout, /^1 event is of a type that this version does not know$/m)
    const replayed = await it.looplane(["replay", "last"])
    assert.strictEqual(replayed.code, 0, replayed.stdout)
    assert.match(replayed.stdout, /passed over: 1 /)
  })

  const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url))
  const versions = readdirSync(fixtures).filter((name) => name.startsWith("store-v"))
  it.each(versions)(
    "of an earlier one (%s) is told and carried away, and left as it is where its repository is gone",
    async (version) => {
      await using it = await world(byTurn([]))
      cpSync(join(fixtures, version), it.runRoot, { recursive: true })
      const before = snapshotTree(it.runRoot)
      const run = "every-event"
      const told = await it.looplane(["sessions", "--replay", run])
      assert.strictEqual(told.code, 0, told.stderr)
      const file = join(it.home.folder, "carried.json")
      const carried = await it.looplane(["bundle", run, "--as-fixture", "-o", file])
      assert.strictEqual(carried.code, 0, carried.stderr)
      assert.strictEqual(readJson(file)["format"], "looplane-recording")
      const refused = await it.looplane(["resume", run, "And now?", ...providerArgs(it.server)])
      assert.strictEqual(refused.code, 2)
      assertOneLine(refused, /cannot be gone on with: \/home\/someone\/project is gone, and so is .*\/git$/)
      assertUntouched(before, snapshotTree(it.runRoot))
    }
  )
})

describe("a run that was cut off between the tools of one turn", () => {
  /** The first time it is run it says that it is, and does not end. */
  const slow = (mark: string) =>
    `sh -c 'test -e ${mark} && exec grep -q "left + right" src/add.js; touch ${mark}; sleep 60'`
  const turns = [
    calls(look, call("run_check", { name: "check-1" }), call("read_file", { path: "README.md" })),
    ...[calls(fix), says("It subtracted.")]
  ]

  it.each<readonly [ProviderName, NodeJS.Signals, ProviderName]>([
    ["openai-compatible", "SIGINT", "anthropic"],
    ["anthropic", "SIGKILL", "openai-compatible"]
  ])("asked of %s, by %s: %s gets a result for every call, in order", async (first, signal, then) => {
    await using it = await world(byTurn(turns), { provider: first })
    const mark = join(it.home.folder, "started")
    const running = it.exec(["--check", slow(mark), "--no-baseline", ...uncontained])
    await appears(mark)
    running.signal(signal, signal === "SIGKILL" ? "group" : "process")
    assert.strictEqual((await running.done).stdout, "")
    await assertVerified(it, await it.looplane(["resume", "last", ...providerArgs(it.server, then)]))
  })
})

describe("a run root with huge and many runs", () => {
  it("is listed, searched and answered of within seconds and in little memory", async () => {
    const peakFile = (home: Home) => join(home.folder, "peak")
    await using it = await world(byTurn([calls(fix), more]))
    const finished = await it.exec().done
    assert.strictEqual(finished.code, 0, finished.stderr)
    const model = it.directory()
    for (let n = 0; n < 300; n++) {
      const copy = `${model.slice(0, -4)}${(0xa000 + n).toString(16)}`
      mkdirSync(copy)
      for (const name of ["request.json", "session.json", "result.json", "events.jsonl"])
        cpSync(join(model, name), join(copy, name))
    }
    const huge = `${model.slice(0, -4)}ffff`
    mkdirSync(huge)
    for (const name of ["request.json", "session.json", "events.jsonl"])
      cpSync(join(model, name), join(huge, name))
    truncateSync(join(huge, "events.jsonl"), 2 * 1024 ** 3)

    const gauge = join(it.home.folder, "gauge.cjs")
    writeFileSync(
      gauge,
      `process.on("exit", () => require("node:fs").writeFileSync(${JSON.stringify(peakFile(it.home))}, String(process.resourceUsage().maxRSS)))`
    )
    const measured = async (...args: ReadonlyArray<string>) => {
      const result = await it.looplane(args, { env: { NODE_OPTIONS: `--require ${gauge}` } })
      assert.isBelow(result.durationMs, soon, args.join(" "))
      assert.isBelow(Number(readFileSync(peakFile(it.home), "utf8")) / 1024, 150, `MB, ${args.join(" ")}`)
      assertNoStack(result.stderr)
      return result
    }
    const listed = await measured("sessions")
    assert.match(listed.stdout, /incomplete/)
    assert.lengthOf(listed.stdout.match(/ verified /g) ?? [], 19)
    const searched = await measured("sessions", "-q", "No Such Text")
    assert.match(searched.stderr, /no runs that mention No Such Text/)
    const before = snapshotTree(model)
    const refused = await measured("resume", "last")
    assert.strictEqual(refused.code, 2)
    assertOneLine(
      refused,
      /line \d+ of .*ffff\/events\.jsonl does not end; --accept-loss .* at least 1 event /
    )
    assertUntouched(before, snapshotTree(model))
    for (const name of ["request.json", "session.json", "result.json"])
      truncateSync(join(huge, name === "result.json" ? "events.jsonl" : name), 2 * 1024 ** 3)
    const unreadable = await measured("sessions", "--limit", "1")
    assert.match(unreadable.stdout, /unreadable\n  lacks: request\.json, session\.json/)
  })
})

describe("places that cannot be written", () => {
  const nowhere = {
    XDG_STATE_HOME: undefined,
    XDG_CONFIG_HOME: undefined,
    XDG_CACHE_HOME: undefined,
    XDG_DATA_HOME: undefined,
    XDG_RUNTIME_DIR: undefined
  }
  it("are named in one line, nothing is made, and what can be read is", async ({ skip }) => {
    await using it = await world(byTurn([calls(fix), more]))
    const place = join(it.home.folder, "closed")
    const [homes, runs] = [join(place, "home"), join(place, "runs")] as const
    // Permissions mean nothing to root.
    const root = process.getuid?.() === 0
    using mounted = root ? mountSmall(place, "8m") : null
    if (root && mounted === null) return skip("nothing can be mounted here")
    const close = (closed: boolean) => {
      const each = [homes, runs, ...readdirSync(runs).map((run) => join(runs, run)), place]
      if (mounted !== null) mounted.readOnly(closed)
      else
        for (const directory of closed ? each : each.toReversed())
          chmodSync(directory, closed ? 0o500 : 0o700)
    }
    for (const directory of [homes, runs]) mkdirSync(directory, { recursive: true })

    const env = { OPENAI_API_KEY: "x", TMPDIR: undefined, ...nowhere, HOME: homes }
    const open = (...args: ReadonlyArray<string>) => runCli(args, { cwd: it.home.folder, home: it.home, env })
    const task = ["exec", "Fix add.", "-C", it.repo.root, ...providerArgs(it.server), ...checkArgs]
    close(true)
    const elsewhere = await open(...task, "--run-root", it.runRoot)
    assert.strictEqual(elsewhere.code, 0, elsewhere.stderr)
    close(false)
    cpSync(it.runRoot, runs, { recursive: true })
    close(true)
    const before = snapshotTree(place)
    const denied = /(the disk is read-only|permission denied): /
    for (const [args, says] of [
      [task, /no run can be kept there: .*\/closed\/home\/\.local; choose another place with --run-root$/],
      [[...task, "--run-root", join(place, "other")], /no run can be kept there: .*\/closed\/other; /],
      [["resume", "last", "And now?", "--run-root", runs], /\/closed\/runs\//],
      [["sessions", "--fork-from-event", "last", "--sequence", "4", "--run-root", runs], /\/closed\/runs/]
    ] as const) {
      const refused = await open(...args)
      assert.strictEqual(refused.code, 2, args.join(" "))
      assertOneLine(refused, says)
      assertOneLine(refused, denied)
      assert.strictEqual(refused.stdout, "")
    }
    const shown = await open("sessions", "--show", "last", "--run-root", runs)
    assert.match(shown.stdout, /^status: {2}verified$/m)
    assertUntouched(before, snapshotTree(place))
    close(false)
  })

  it("that do not exist are not made for it: a home, and a run root to resume from", async () => {
    await using it = await world(byTurn([]))
    const home = join(it.home.folder, "nonexistent")
    const env = { OPENAI_API_KEY: "x", ...nowhere, HOME: home }
    const task = ["exec", "Fix add.", "-C", it.repo.root, ...providerArgs(it.server), ...checkArgs]
    for (const [args, says] of [
      [task, /the home directory .*\/nonexistent does not exist; choose another place with --run-root$/],
      [["resume"], /there are no runs in .*\/nonexistent\/\.local\/state\/looplane\/runs$/]
    ] as const) {
      const refused = await runCli(args, { cwd: it.home.folder, home: it.home, env })
      assert.strictEqual(refused.code, 2)
      assertOneLine(refused, says)
    }
    assert.isFalse(existsSync(home))
  })
})

describe("commands that throw uncommitted work away", () => {
  it("have none of the user's to throw away", async () => {
    const repo = addRepo({ dirty: { "README.md": "Mine.\n" }, untracked: { "notes.txt": "Mine.\n" } })
    repo.git("stash", "--quiet")
    repo.write({ "README.md": "Mine as well.\n", "notes.txt": "Mine.\n" })
    const careless =
      "git reset -q --hard; git checkout -q -- .; git clean -fdxq; git stash drop -q; git stash -q; git gc -q --prune=now; true"
    await using it = await world(byTurn([calls(fix), more]), { repo })
    const args = ["--setup", `sh -c '${careless}'`, "--check", `sh -c '${careless}'`, ...checkArgs]
    const result = await it.exec([...args, "--base", "working-tree"]).done
    assert.strictEqual(result.json()["terminal_reason"], "verified", result.stderr)
  })
})

describe("a run whose repository is not what it was", () => {
  const inPackage = (files: Files): Files =>
    Object.fromEntries(Object.entries(files).map(([path, spec]) => [`pkg/${path}`, spec]))
  const git = (repo: Repo, cwd: string, ...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-c", "protocol.file.allow=always", ...args], {
      cwd,
      env: gitEnvironment(repo.folder),
      stdio: "pipe"
    })
  /** Rewrites the branch's history, and nothing keeps its old commits. */
  const prune = (repo: Repo, root: string) => {
    git(repo, root, "commit", "--quiet", "--amend", "--allow-empty", "--message", "another")
    git(repo, root, "reflog", "expire", "--expire=now", "--all")
    git(repo, root, "gc", "--quiet", "--prune=now")
  }
  const away = (repo: Repo) => rmSync(repo.folder, { recursive: true })

  interface Case {
    readonly name: string
    readonly signal: NodeJS.Signals
    readonly repo: () => Repo
    readonly directory?: (repo: Repo) => string
    readonly path?: string
    readonly args?: ReadonlyArray<string>
    readonly after: (repo: Repo, bundle: string) => void
  }
  const cases: ReadonlyArray<Case> = [
    {
      name: "a directory with uncommitted files as base, deleted",
      signal: "SIGTERM",
      repo: () =>
        makeRepo({
          files: inPackage(addFiles),
          subdirectory: "pkg",
          dirty: { "pkg/README.md": "Mine.\n" },
          untracked: { "pkg/notes.txt": "Mine.\n" }
        }),
      path: `pkg/${addFix.path}`,
      args: ["--base", "working-tree", "--check", "grep -q Mine. README.md", "--check", "test -f notes.txt"],
      after: away
    },
    {
      name: "a linked worktree, removed, and its repository moved",
      signal: "SIGHUP",
      repo: () => {
        const repo = addRepo()
        git(repo, repo.root, "worktree", "add", "--quiet", "-b", "side", join(repo.folder, "linked"))
        return repo
      },
      directory: (repo) => join(repo.folder, "linked"),
      after: (repo) => {
        git(repo, repo.root, "worktree", "remove", "--force", join(repo.folder, "linked"))
        renameSync(repo.root, `${repo.root}-moved`)
      }
    },
    {
      name: "a shallow clone, its base pruned",
      signal: "SIGKILL",
      repo: () => {
        const repo = addRepo({ commits: [{ files: { "README.md": "Two.\n" }, message: "two" }] })
        git(repo, repo.folder, "clone", "--quiet", "--depth", "1", `file://${repo.root}`, "shallow")
        return repo
      },
      directory: (repo) => join(repo.folder, "shallow"),
      after: (repo) => {
        prune(repo, join(repo.folder, "shallow"))
        prune(repo, repo.root)
      }
    },
    {
      name: "submodules, all of it deleted",
      signal: "SIGKILL",
      repo: () => {
        const repo = addRepo()
        git(repo, repo.folder, "clone", "--quiet", repo.root, "part")
        git(repo, repo.root, "submodule", "--quiet", "add", join(repo.folder, "part"), "part")
        git(repo, repo.root, "commit", "--quiet", "--message", "part")
        return repo
      },
      args: ["--check", "grep -q left part/src/add.js"],
      after: away
    }
  ]
  it.each(cases)("$name: it is gone on with from its own git/", async (each) => {
    const repo = each.repo()
    const steps = [calls(look), calls(fixAt(each.path ?? addFix.path)), says("It subtracted.")]
    await using it = await world(byTurn(steps, new Map([[2, stall()]])), { repo, repoMayChange: true })
    const before = snapshotTree(repo.folder)
    const directory = each.directory?.(repo)
    const running = it.exec(
      [...checkArgs, ...(each.args ?? [])],
      directory === undefined ? {} : { directory }
    )
    const ended = await it.killedAt(running, 3, each.signal)
    assert.strictEqual(ended.code, each.signal === "SIGTERM" ? 143 : each.signal === "SIGHUP" ? 129 : null)
    assertUntouched(before, snapshotTree(repo.folder))
    each.after(repo, it.directory())
    await assertVerified(it, await it.looplane(["resume", "last"]))
    const patch = readFileSync(join(it.directory(), "changes.patch"), "utf8")
    assert.deepStrictEqual(patch.match(/^diff .*$/gm), [
      `diff --git a/${each.path ?? addFix.path} b/${each.path ?? addFix.path}`
    ])
    assert.strictEqual(patch.split(addFix.new_text).length - 1, 1)
  })

  it("and of whose own git/ nothing is left: what is missing is named in one line", async () => {
    const repo = addRepo()
    await using it = await world(byTurn(story, new Map([[2, stall()]])), { repo, repoMayChange: true })
    await it.killedAt(it.exec(), 3)
    prune(repo, repo.root)
    rmSync(join(it.directory(), "git"), { recursive: true })
    const refused = await it.looplane(["resume", "last"])
    assert.strictEqual(refused.code, 2)
    const error = refused.stderr.trimEnd().split("\n").at(-1) ?? ""
    assert.include(error, `the base commit ${repo.head} is gone: ${repo.root} no longer has it`)
    assert.notInclude(error, "\n")
    assertNoStack(refused.stderr)
  })
})
