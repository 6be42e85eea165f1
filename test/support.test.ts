import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, linkSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, startCli } from "./support/Cli.ts"
import {
  assertUntouched,
  diffTrees,
  heldLocks,
  lockIsFree,
  processCheck,
  processesOf,
  snapshotTree
} from "./support/Leaks.ts"
import { gitEnvironment, makeRepo } from "./support/Repo.ts"
import { addFix, addRepo } from "./support/repos/add.ts"
import { hostileRepo } from "./support/repos/hostile.ts"
import { workspacesFix, workspacesRepo } from "./support/repos/workspaces.ts"

/** A folder that goes with the test. */
const scratch = () => {
  const path = mkdtempSync(join(tmpdir(), "looplane-support-"))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const nodeTest = (cwd: string) => {
  const { status, stdout } = spawnSync(process.execPath, ["--test"], { cwd, env: {}, encoding: "utf8" })
  return { status, stdout }
}

describe("repositories", () => {
  it("have the same commit ids every time", async () => {
    const spec = { commits: [{ files: { "a.txt": { text: "x", mode: 0o755 } }, message: "second" }] }
    await using first = addRepo(spec)
    await using second = addRepo(spec)
    assert.strictEqual(first.head, second.head)
    assert.notStrictEqual(first.root, second.root)
    assert.strictEqual(first.git("log", "--format=%s"), "second\nfixture")
    assert.strictEqual(first.git("status", "--porcelain"), "")
  })

  it("hold modes, bytes, links, and ignored, untracked and changed files", async () => {
    await using repo = makeRepo({
      files: {
        "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
        "crlf.txt": "a\r\nb\r\n",
        "raw.bin": { b64: "AP8K" },
        "deep/link": { symlink: "../run.sh" },
        ".gitignore": "out/\n"
      },
      ignored: { "out/built.js": "x" },
      untracked: { "new/file.txt": "y" },
      dirty: { "crlf.txt": "changed" },
      subdirectory: "deep"
    })
    assert.strictEqual(repo.cwd, join(repo.root, "deep"))
    assert.match(repo.git("ls-files", "-s", "run.sh", "deep/link"), /120000 .*deep\/link\n100755 .*run\.sh/)
    assert.strictEqual(repo.git("show", "HEAD:crlf.txt"), "a\r\nb\r")
    assert.strictEqual(repo.git("status", "--porcelain"), " M crlf.txt\n?? new/")
    assert.throws(() => makeRepo({ files: { a: "" }, ignored: { b: "" } }), /b should be "!!" and is "\?\?"/)
  })

  it("add: the test fails until the fix is applied", async () => {
    await using repo = addRepo()
    assert.strictEqual(nodeTest(repo.root).status, 1)
    repo.write({ [addFix.path]: addFix.fixed })
    assert.strictEqual(nodeTest(repo.root).status, 0)
  })

  it("workspaces: the test reaches the package through its link and fails until the fix is applied", async () => {
    await using repo = workspacesRepo()
    assert.strictEqual(repo.git("status", "--porcelain"), "")
    const before = nodeTest(repo.root)
    assert.strictEqual(before.status, 1)
    assert.include(before.stdout, `lib is file://${repo.root}/packages/lib/index.js`)
    repo.write({ [workspacesFix.path]: workspacesFix.fixed })
    assert.strictEqual(nodeTest(repo.root).status, 0)
    rmSync(join(repo.root, "node_modules"), { recursive: true })
    assert.strictEqual(nodeTest(repo.root).status, 1)
  })

  it("hostile: nothing has run when it is ready, and the traps work", async () => {
    using folder = scratch()
    await using repo = hostileRepo(join(folder.path, "marker"))
    assert.deepStrictEqual(repo.ran(), [])
    const careless = (...args: ReadonlyArray<string>) =>
      spawnSync("git", args, { cwd: repo.root, env: gitEnvironment(folder.path), stdio: "ignore" })
    repo.write({
      "src/add.js": "changed\n",
      "shown.txt": "changed\n",
      "long.txt": "changed\n",
      "picture.bin": "changed\n"
    })
    const commands = [
      ["status"],
      ["diff"],
      ["st"],
      ["log", "-p"],
      ["fetch"],
      ["add", "-A"],
      ["commit", "-m", "x"],
      ["reset", "--hard", "HEAD"]
    ]
    for (const args of commands) careless(...args)
    spawnSync("rg", ["x"], { cwd: repo.root, env: { PATH: ".:/usr/bin:/bin" } })
    const ran = new Set(repo.ran())
    for (const name of ran) assert.include(repo.planted, name)
    for (const name of [
      "filter.planted.clean",
      "filter.planted.smudge",
      "filter.plantedlong.process",
      "diff.planted.textconv",
      "diff.plantedcommand.command",
      "diff.external",
      "core.fsmonitor",
      "gpg.program",
      "alias:st",
      "hook:pre-commit",
      "hook:post-index-change",
      "hook:reference-transaction",
      "remote.origin.url",
      "path:rg"
    ]) {
      assert.include([...ran], name)
    }
  })
})

describe("the source is untouched", () => {
  it("accepts a repository that was only read", async () => {
    await using repo = workspacesRepo()
    const before = snapshotTree(repo.root)
    repo.git("log")
    repo.git("--no-optional-locks", "status")
    utimesSync(join(repo.root, "package.json"), 1, 1)
    assertUntouched(before, snapshotTree(repo.root))
    for (const path of [".git/HEAD", ".git/index", ".git/config", ".git/refs/heads/main", "node_modules/lib"])
      assert.isTrue(before.has(path), path)
  })

  it("names what changed and how", async () => {
    await using repo = addRepo({ files: { link: { symlink: "README.md" }, "a.sh": "x", "b.txt": "x" } })
    const before = snapshotTree(repo.root)
    repo.write({ "src/add.js": "export const add = 1\n", "a.sh": { text: "x", mode: 0o755 } })
    repo.write({ link: { symlink: "package.json" }, "new.txt": "" })
    rmSync(join(repo.root, "README.md"))
    linkSync(join(repo.root, "b.txt"), join(repo.folder, "elsewhere"))
    repo.git("update-ref", "refs/heads/other", "HEAD")
    repo.git("config", "user.name", "someone")
    const lines = diffTrees(before, snapshotTree(repo.root))
    const has = (pattern: RegExp) =>
      assert.isTrue(
        lines.some((line) => pattern.test(line)),
        `${pattern}`
      )
    has(/^~ src\/add\.js: content of 49 bytes -> 21 bytes; line 1: "export.*" -> "export/)
    has(/^~ a\.sh: mode 644 -> 755$/)
    has(/^~ link: target README.md -> package.json$/)
    has(/^\+ new\.txt \(file\)$/)
    has(/^- README\.md \(file\)$/)
    has(/^~ b\.txt: hard links 1 -> 2$/)
    has(/^\+ \.git\/refs\/heads\/other/)
    has(/^\+ \.git\/logs\/refs\/heads\/other/)
    has(/^~ \.git\/config: /)
    assert.strictEqual(lines.length, 9)
    assert.throws(() => assertUntouched(before, snapshotTree(repo.root)), /the folder was touched:\n/)
  })
})

describe("nothing is left", () => {
  /** A process that says when it runs and then waits for ever. */
  const waiter = async (env: NodeJS.ProcessEnv, cwd: string) => {
    const child = spawn(process.execPath, ["-e", "console.log('up'); setInterval(() => {}, 1000)"], {
      env,
      cwd
    })
    await once(child.stdout, "data")
    const stop = async () => {
      const closed = once(child, "close")
      child.kill("SIGKILL")
      await closed
    }
    return { pid: child.pid, stop }
  }

  it.runIf(processCheck)(
    "finds a process by its token, its environment or its working directory",
    async () => {
      await using home = makeHome()
      const cases = [
        [{ LOOPLANE_TEST_TOKEN: home.token }, tmpdir(), "its environment"],
        [{ HOME: home.folder }, tmpdir(), "its environment (HOME)"],
        [{}, home.folder, "its working directory"]
      ] as const
      for (const [env, cwd, why] of cases) {
        const child = await waiter(env, cwd)
        assert.deepInclude(processesOf(home.token, [home.folder])[0], { pid: child.pid ?? -1, why })
        assert.match(home.leftovers().join(), /^process \d+ .*setInterval/)
        await child.stop()
        assert.deepStrictEqual(home.leftovers(), [])
      }
    }
  )

  it("finds a temporary file", async () => {
    await using home = makeHome()
    assert.deepStrictEqual(home.leftovers(), [])
    writeFileSync(join(home.tmp, "left.txt"), "")
    assert.deepStrictEqual(home.leftovers(), ["temporary file left.txt"])
  })

  it("finds a lock that is still held, and leaves a free one alone", async () => {
    await using home = makeHome()
    const lock = join(home.runRoot, ".writer.lock")
    const holder = new DatabaseSync(lock)
    holder.exec("BEGIN EXCLUSIVE")
    assert.isFalse(lockIsFree(lock))
    assert.deepStrictEqual(heldLocks(home.runRoot), [".writer.lock"])
    assert.deepStrictEqual(home.leftovers(), [`lock ${lock}`])
    holder.exec("ROLLBACK")
    holder.close()
    assert.isTrue(lockIsFree(lock))
    for (const folder of ["git", "workspace"]) {
      mkdirSync(join(home.runRoot, folder))
      writeFileSync(join(home.runRoot, folder, "index.lock"), "")
    }
    assert.deepStrictEqual(heldLocks(home.runRoot), ["git/index.lock"])
  })
})

describe("the command", () => {
  const program = (folder: string, source: string) => {
    const path = join(folder, "program.mjs")
    writeFileSync(path, source)
    return path
  }

  it("runs isolated and gives back what it said", async () => {
    using folder = scratch()
    const source =
      "console.error('step 1'); let text = '';" +
      "for await (const part of process.stdin) text += part;" +
      "console.log(JSON.stringify({ env: process.env, args: process.argv.slice(2), text })); process.exitCode = 4"
    const options = {
      cwd: folder.path,
      program: program(folder.path, source),
      env: { OPENAI_API_KEY: "x", TZ: undefined }
    }
    await using run = await runCli(["exec", "Fix add."], { ...options, stdin: { text: "grün" } })
    assert.deepInclude(run, { code: 4, signal: null, stderr: "step 1\n" })
    assert.isAbove(run.durationMs, 0)
    const { args, env, text } = run.json()
    assert.deepStrictEqual([args, text], [["exec", "Fix add."], "grün"])
    assert.strictEqual(run.jsonLines().length, 1)
    const allowed = { ...run.home.env, OPENAI_API_KEY: "x" }
    assert.deepStrictEqual(env, Object.fromEntries(Object.entries(allowed).filter(([name]) => name !== "TZ")))
    assert.deepStrictEqual(run.leftovers(), [])
    await run[Symbol.asyncDispose]()
    assert.isFalse(existsSync(run.home.folder))
  })

  it("says what was printed when it is not JSON", async () => {
    using folder = scratch()
    const options = { cwd: folder.path, program: program(folder.path, "console.log('oh no')") }
    await using run = await runCli([], options)
    assert.throws(() => run.json(), /not one JSON object:\noh no/)
  })

  const waiting =
    "process.on('SIGINT', () => { console.error('stopping'); process.exit(130) });" +
    "console.error('step 1'); console.error('step 2'); setInterval(() => {}, 1000);"

  it("waits for a line and passes a signal on", async () => {
    using folder = scratch()
    await using cli = startCli([], { cwd: folder.path, program: program(folder.path, waiting) })
    assert.strictEqual(await cli.stderrLine(/^step 2/), "step 2")
    assert.strictEqual(await cli.stderrLine((line) => line.endsWith("1")), "step 1")
    const never = cli.stdoutLine(/never/)
    cli.signal("SIGINT", "group")
    const result = await cli.done
    assert.deepInclude(result, { code: 130, stderr: "step 1\nstep 2\nstopping\n" })
    assert.match(String(await never.catch((cause: unknown) => cause)), /ended without the line/)
  })

  it("sends the signal when the test's promise resolves", async () => {
    using folder = scratch()
    const ready = Promise.withResolvers<void>()
    const options = { cwd: folder.path, program: program(folder.path, waiting), signalAfter: ready.promise }
    await using cli = startCli([], options)
    await cli.stderrLine(/step 2/)
    ready.resolve()
    assert.strictEqual((await cli.done).code, 130)
  })

  it("keeps stdin open when told to", async () => {
    using folder = scratch()
    const source = "process.stdin.once('data', (part) => { console.log('got ' + part); process.exit(0) })"
    await using cli = startCli([], {
      cwd: folder.path,
      program: program(folder.path, source),
      stdin: "pipe-open"
    })
    cli.write("hello")
    assert.strictEqual((await cli.done).stdout, "got hello\n")
  })

  it("kills a command at the safety limit and says what it had printed", async () => {
    using folder = scratch()
    await using home = makeHome()
    const options = { cwd: folder.path, program: program(folder.path, waiting), home, timeoutMs: 50 }
    const result = await runCli([], options).catch((cause: unknown) => cause)
    assert.match(String(result), /did not end within 50 ms and was killed\nstdout:\n/)
    assert.deepStrictEqual(home.leftovers(), [])
  })

  it.runIf(processCheck)("kills detached children too when it goes", async () => {
    using folder = scratch()
    const source =
      "import { spawn } from 'node:child_process';" +
      "spawn(process.execPath, ['-e', \"console.log('up'); setInterval(() => {}, 1000)\"]," +
      "{ detached: true, stdio: 'inherit' }); setInterval(() => {}, 1000)"
    await using home = makeHome()
    const cli = startCli([], { cwd: folder.path, program: program(folder.path, source), home })
    await cli.stdoutLine(/up/)
    assert.strictEqual(home.leftovers().length, 2)
    await cli[Symbol.asyncDispose]()
    assert.deepStrictEqual(home.leftovers(), [])
  })

  it.runIf(processCheck)("reports a child that the command leaves behind", async () => {
    using folder = scratch()
    const source =
      "import { spawn } from 'node:child_process';" +
      "const child = spawn(process.execPath, ['-e', \"console.log('up'); setInterval(() => {}, 1000)\"]," +
      "{ detached: true, env: { HOME: process.env.HOME }, stdio: ['ignore', 'pipe', 'ignore'] });" +
      "child.stdout.once('data', () => process.exit(0))"
    await using run = await runCli([], { cwd: folder.path, program: program(folder.path, source) })
    assert.strictEqual(run.code, 0)
    assert.match(
      run.leftovers().join("\n"),
      /^process \d+ \(.*setInterval.*known by its environment \(HOME\)$/
    )
    assert.strictEqual(run.home.kill(), 1)
  })

  it("drives the launcher of this repository", async () => {
    await using run = await runCli(["--version"], { cwd: tmpdir() })
    assert.match(run.stdout, /^looplane \d+\.\d+\.\d+\n$/)
    assert.deepStrictEqual(run.leftovers(), [])
  })
})
