/**
 * Runs whose commands are contained: what they need is there, what is the user's is not, and who asks for less gets
 * exactly what the table says.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, type Home } from "../support/Cli.ts"
import { diffTrees, snapshotTree } from "../support/Leaks.ts"
import { makeRepo } from "../support/Repo.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { workspacesFix, workspacesRepo } from "../support/repos/workspaces.ts"
import { hasBubblewrap } from "../support/sandbox.ts"
import { assertComplete, call, calls, execOn, says, uncontained, type Ran } from "./support.ts"

const fixing = (fix: { readonly path: string; readonly old_text: string; readonly new_text: string }) => [
  calls(call("replace_text", { path: fix.path, old_text: fix.old_text, new_text: fix.new_text })),
  says("Fixed.")
]

const dataOf = (ran: Ran, type: string) =>
  ran.events().flatMap(({ data, event_type }) => (event_type === type ? [data] : []))

const receiptOf = (ran: Ran): unknown => JSON.parse(ran.readArtifact("receipt"))

/** A PATH with everything that a run needs but bubblewrap. */
const withoutBubblewrap = (home: Home): string => {
  const folder = join(home.folder, "programs")
  mkdirSync(folder)
  for (const name of ["git", "sh", "env", "cat", "ls", "mkdir", "true"])
    symlinkSync(
      execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(),
      join(folder, name)
    )
  symlinkSync(process.execPath, join(folder, "node"))
  return folder
}

const checked = ["--check", "node --test"]

describe.skipIf(!hasBubblewrap)("a run in the sandbox", () => {
  it("is verified without any leave, and its check reaches nothing of the user's", async () => {
    await using home = makeHome()
    const secret = join(home.env["HOME"] ?? "", ".ssh")
    mkdirSync(secret)
    writeFileSync(join(secret, "id_ed25519"), "PRIVATE\n")
    let arrivals = 0
    const server = createServer((socket) => {
      arrivals += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const canary = join(home.folder, "canary")
    writeFileSync(canary, "untouched\n")
    await using repo = addRepo({
      files: {
        "package.json": '{"type":"module","scripts":{"test":"node --test"}}\n',
        "attack.test.js": `
          import fs from "node:fs"
          import net from "node:net"
          import test from "node:test"
          const tell = (name, act) => { try { console.log(name, "->", act() ?? "done") } catch (e) { console.log(name, "->", e.code) } }
          test("reaches out", async () => {
            tell("secret", () => fs.readFileSync(${JSON.stringify(join(secret, "id_ed25519"))}, "utf8"))
            tell("home", () => fs.writeFileSync(${JSON.stringify(join(home.env["HOME"] ?? "", "planted"))}, "x"))
            tell("canary", () => fs.writeFileSync(${JSON.stringify(canary)}, "x"))
            tell("runs", () => fs.readdirSync(${JSON.stringify(join(home.env["XDG_STATE_HOME"] ?? "", "looplane", "runs"))}).length)
            tell("elsewhere", () => fs.writeFileSync("/usr/planted", "x"))
            tell("etc", () => fs.writeFileSync("/etc/planted", "x"))
            console.log("key ->", JSON.stringify(process.env).includes("sk-very-secret"))
            await new Promise((end) => net.connect(${port}, "127.0.0.1").on("connect", () => { console.log("net -> connected"); end() }).on("error", (e) => { console.log("net ->", e.code); end() }))
          })`
      }
    })
    await using ran = await execOn(repo, fixing(addFix), ["--check", "npm test"], {
      cli: { home, env: { OPENAI_API_KEY: "sk-very-secret" } }
    })
    server.close()
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.strictEqual(ran.result.code, 0)
    const log = ran.readArtifact("test_log")
    assert.match(log, /secret -> ENOENT/)
    assert.match(log, /etc -> EROFS/)
    assert.match(log, /elsewhere -> EROFS/)
    assert.match(log, /net -> ECONNREFUSED/)
    assert.match(log, /key -> false/)
    assert.notInclude(log, "PRIVATE")
    assert.strictEqual(arrivals, 0)
    assert.strictEqual(readFileSync(canary, "utf8"), "untouched\n")
    assert.deepStrictEqual(readdirSync(home.env["HOME"] ?? ""), [".ssh"])
    assert.isFalse(existsSync("/etc/planted"))
    assert.isFalse(existsSync("/usr/planted"))
    assertComplete(ran)
    assert.nestedPropertyVal(receiptOf(ran), "sandbox", "bubblewrap")
    assert.deepInclude(dataOf(ran, "run.created")[0], { sandbox: "bubblewrap" })
    for (const data of dataOf(ran, "verification.started"))
      assert.deepInclude(data, { sandbox: "bubblewrap" })
    // Somebody else, without any leave either.
    const again = await runCli(["receipt", "check", "last", "-C", repo.root], { cwd: repo.folder, home })
    assert.strictEqual(again.code, 0, again.stdout + again.stderr)
    assert.match(again.stdout, /ok {3}check "check-1": passed again/)
  })

  it("of an npm workspace is verified with the user's own node_modules shown, none of it copied or changed", async () => {
    await using repo = workspacesRepo()
    await using ran = await execOn(repo, fixing(workspacesFix), [
      "--check",
      "sh -c 'node --test && echo poisoned > node_modules/fixture-numbers/index.js && fixture-numbers || node_modules/.bin/fixture-numbers'"
    ])
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    // The user's own path, with the patched files under it.
    assert.include(ran.readArtifact("test_log"), `lib is file://${repo.root}/packages/lib/index.js`)
    assert.deepNestedInclude(dataOf(ran, "workspace.prepared")[0], {
      "dependencies.copied": ["node_modules"],
      "dependencies.mounted": true
    })
    const bundle = join(ran.artifact("events"), "..")
    assert.isFalse(existsSync(join(bundle, "workspace", "node_modules")))
    assert.nestedPropertyVal(receiptOf(ran), "dependencies.mounted", true)
  })

  it("of a Python project with a virtual environment and an editable install is verified", async () => {
    await using repo = makeRepo({
      files: {
        "pyproject.toml": '[project]\nname = "numbers"\nversion = "1"\n',
        ".gitignore": ".venv/\n__pycache__/\n",
        "src/numbers_/__init__.py": "def add(a, b):\n    return a - b\n",
        "tests/test_add.py":
          "import unittest, numbers_\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        print('from', numbers_.__file__)\n        self.assertEqual(numbers_.add(1, 2), 3)\n"
      }
    })
    execFileSync("python3", ["-m", "venv", "--without-pip", join(repo.root, ".venv")])
    const [site = ""] = readdirSync(join(repo.root, ".venv/lib"))
    // What `pip install --editable .` leaves.
    writeFileSync(
      join(repo.root, ".venv/lib", site, "site-packages/numbers.pth"),
      `${join(repo.root, "src")}\n`
    )
    const before = snapshotTree(join(repo.root, ".venv"))
    await using ran = await execOn(
      repo,
      fixing({ path: "src/numbers_/__init__.py", old_text: "a - b", new_text: "a + b" }),
      ["--check", ".venv/bin/python -m unittest discover -v tests"]
    )
    assert.strictEqual(
      ran.json["terminal_reason"],
      "verified",
      ran.result.stderr + ran.readArtifact("test_log")
    )
    assert.include(ran.readArtifact("test_log"), `from ${repo.root}/src/numbers_/__init__.py`)
    assert.deepStrictEqual(diffTrees(before, snapshotTree(join(repo.root, ".venv"))), [])
  })

  it("with set-up gets what that installed, at the path where it was installed for, and nothing of it reaches the source", async () => {
    await using repo = addRepo({
      files: {
        ".gitignore": ".venv/\nnode_modules/\n",
        "tool.test.js":
          'import { readFileSync } from "node:fs"\nimport test from "node:test"\ntest("installed", () => { if (readFileSync("node_modules/tool/where", "utf8").trim() !== process.cwd()) throw new Error("elsewhere") })\n'
      }
    })
    const before = snapshotTree(repo.root)
    await using ran = await execOn(repo, fixing(addFix), [
      ...["--setup", "python3 -m venv --without-pip .venv"],
      ...["--setup", "sh -c 'mkdir -p node_modules/tool && pwd > node_modules/tool/where'"],
      ...["--check", "node --test", "--check", ".venv/bin/python -c 'import sys; print(sys.prefix)'"]
    ])
    assert.strictEqual(
      ran.json["terminal_reason"],
      "verified",
      ran.result.stderr + ran.readArtifact("test_log")
    )
    assert.include(ran.readArtifact("test_log"), `${repo.root}/.venv\n`)
    assert.deepStrictEqual(diffTrees(before, snapshotTree(repo.root)), [])
  })

  it("says of a check what the sandbox refused it, when that is why it failed", async () => {
    await using repo = addRepo({
      files: {
        "unix.js": 'import net from "node:net"\nnet.createServer().listen(`${process.env.TMPDIR}/x.sock`)\n',
        "net.js": 'import dns from "node:dns"\nawait dns.promises.lookup("example.com")\n'
      }
    })
    const reasons: Array<string> = []
    for (const file of ["unix.js", "net.js"]) {
      await using ran = await execOn(
        repo,
        [...fixing(addFix), ...(file === "net.js" ? [says("It stays so.")] : [])],
        ["--check", `node ${file}`, "--no-baseline"]
      )
      reasons.push(`${String(ran.json["terminal_reason"])}: ${JSON.stringify(ran.json["verification"])}`)
    }
    assert.match(reasons[0] ?? "", /^could_not_verify: .*wanted a UNIX socket, and the sandbox has none/)
    assert.match(reasons[1] ?? "", /^checks_failed: .*asked for the network.*--check-network host/)
  })

  const cargo = ((): string | null => {
    try {
      return execFileSync("sh", ["-c", "command -v cargo"], { encoding: "utf8" }).trim()
    } catch {
      return null
    }
  })()
  const home = process.env["HOME"] ?? "/"

  it.skipIf(cargo === null)(
    "of a Rust project is verified, with the toolchain in the user's home",
    async () => {
      await using repo = makeRepo({
        files: {
          "Cargo.toml": '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n',
          "Cargo.lock": 'version = 3\n\n[[package]]\nname = "sum"\nversion = "0.1.0"\n',
          ".gitignore": "target/\n",
          "src/lib.rs":
            "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(super::add(1, 2), 3);\n    }\n}\n"
        }
      })
      await using ran = await execOn(
        repo,
        fixing({ path: "src/lib.rs", old_text: "a - b", new_text: "a + b" }),
        ["--check", "cargo test --offline"],
        {
          cli: {
            timeoutMs: 240_000,
            env: {
              CARGO_HOME: process.env["CARGO_HOME"] ?? join(home, ".cargo"),
              RUSTUP_HOME: process.env["RUSTUP_HOME"] ?? join(home, ".rustup")
            }
          }
        }
      )
      assert.strictEqual(
        ran.json["terminal_reason"],
        "verified",
        ran.result.stderr + ran.readArtifact("test_log")
      )
    },
    260_000
  )
})

describe("where commands run", () => {
  const rows: ReadonlyArray<
    readonly [asked: ReadonlyArray<string>, proved: "bubblewrap" | "host" | RegExp, not: "host" | RegExp]
  > = [
    [
      [],
      "bubblewrap",
      /^looplane: commands cannot be contained here: bubblewrap is not on PATH: install bubblewrap.*--unsafe-local-exec/
    ],
    [["--unsafe-local-exec"], "bubblewrap", "host"],
    [["--sandbox-checks"], "bubblewrap", /bubblewrap is not on PATH/],
    [["--sandbox-checks", "--unsafe-local-exec"], "bubblewrap", /bubblewrap is not on PATH/],
    [["--no-sandbox-checks"], /add --unsafe-local-exec/, /add --unsafe-local-exec/],
    [uncontained, "host", "host"]
  ]
  const attempt = async (asked: ReadonlyArray<string>, path: string | null, expected: string | RegExp) => {
    await using home = makeHome()
    await using repo = addRepo()
    const env = path === null ? {} : { PATH: withoutBubblewrap(home) }
    await using ran = await execOn(repo, fixing(addFix), [...checked, "--no-baseline", ...asked], {
      cli: { home, env }
    })
    if (typeof expected !== "string") {
      assert.strictEqual(ran.result.code, 2)
      assert.match(ran.result.stderr, expected)
      assert.strictEqual(ran.result.stderr.trimEnd().split("\n").length, 1)
      assert.deepStrictEqual(ran.server.calls, [])
      assert.isFalse(existsSync(join(home.env["XDG_STATE_HOME"] ?? "", "looplane")))
      return
    }
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    assert.nestedPropertyVal(receiptOf(ran), "sandbox", expected)
    assert.nestedPropertyVal(JSON.parse(ran.readArtifact("request")), "sandbox", expected)
    for (const data of dataOf(ran, "verification.started")) assert.deepInclude(data, { sandbox: expected })
    const said = JSON.stringify(ran.json["notes"]).includes("with nothing around them")
    assert.strictEqual(said, expected === "host")
  }

  it.skipIf(!hasBubblewrap).each(rows)("%j where the sandbox holds", async (asked, proved) => {
    await attempt(asked, null, proved)
  })
  it.each(rows)("%j where none does", async (asked, _, not) => {
    await attempt(asked, "without", not)
  })
})
