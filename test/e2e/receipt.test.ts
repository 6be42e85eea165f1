/**
 * `receipt check` of the built command, on a bundle that a real run left.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { runCli } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { makeRepo } from "../support/Repo.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { isRecord } from "../support/wire/types.ts"
import { call, calls, execOn, says, testArgs, type Ran, uncontained } from "./support.ts"

const script = [
  calls(call("read_file", { path: addFix.path })),
  calls(call("replace_text", { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text })),
  says("Fixed.")
]

const check = (ran: Ran, args: ReadonlyArray<string>, cwd: string) =>
  runCli(["receipt", "check", ...args], { cwd, home: ran.result.home })

const bundleOf = (ran: Ran): string => dirname(ran.artifact("result"))
const lines = (text: string) => text.trimEnd().split("\n")

describe("receipt check", () => {
  it("proves a run again, by itself and in its repository, and leaves both as they are", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, script, testArgs)
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    const bundle = bundleOf(ran)
    const before = [snapshotTree(repo.root), snapshotTree(bundle)] as const

    const offline = await check(ran, ["last"], repo.folder)
    assert.strictEqual(offline.code, 0, offline.stdout + offline.stderr)
    assert.isTrue(
      lines(offline.stdout).every((line) => line.startsWith("ok ")),
      offline.stdout
    )

    const again = await check(ran, ["last", "-C", repo.root, "--unsafe-local-exec"], repo.folder)
    assert.strictEqual(again.code, 0, again.stdout + again.stderr)
    assert.match(again.stdout, /^ok {3}tree: base and patch give [0-9a-f]{40}$/m)
    assert.match(again.stdout, /^ok {3}check "check-1": passed again \(\d+ tests?, /m)

    const json = await check(ran, [bundle, "-C", repo.root, "--no-run", "--output", "json"], repo.folder)
    assert.strictEqual(json.json()["ok"], true)
    assert.isArray(json.json()["findings"])

    assertUntouched(before[0], snapshotTree(repo.root))
    assertUntouched(before[1], snapshotTree(bundle))
    assert.deepStrictEqual(json.leftovers(), [])
  })

  it("travels: another place, another clone of the repository, the receipt and the patch alone", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, script, testArgs)
    const mail = join(repo.folder, "mail")
    mkdirSync(mail)
    copyFileSync(ran.artifact("receipt"), join(mail, "r.json"))
    copyFileSync(ran.artifact("patch"), join(mail, "p.patch"))
    renameSync(bundleOf(ran), join(mail, "bundle"))
    const clone = join(repo.folder, "clone")
    repo.git("clone", "--quiet", "--no-local", repo.root, clone)
    renameSync(repo.root, `${repo.root}-gone`)
    for (const args of [
      [join(mail, "bundle", "receipt.json"), "-C", clone],
      ["r.json", "--patch", "p.patch", "-C", clone, "--unsafe-local-exec"]
    ]) {
      const result = await check(ran, args, mail)
      assert.strictEqual(result.code, 0, `${args.join(" ")}\n${result.stdout}${result.stderr}`)
      assert.notInclude(result.stdout, "FAIL")
    }
    const text = readFileSync(join(mail, "r.json"), "utf8")
    for (const place of [repo.folder, ran.result.home.folder]) assert.notInclude(text, place)
  })

  it("fails and says where for a changed byte of patch, test log, receipt and journal", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, script, testArgs)
    const bundle = bundleOf(ran)
    const kept = join(ran.result.home.folder, "kept")
    cpSync(bundle, kept, { recursive: true })
    for (const name of ["changes.patch", "test.log", "receipt.json", "events.jsonl"]) {
      const bytes = readFileSync(join(kept, name))
      const at = Math.floor(bytes.length / 2)
      writeFileSync(
        join(bundle, name),
        bytes.map((byte, index) => (index === at ? byte ^ 1 : byte))
      )
      const result = await check(ran, ["last"], repo.folder)
      writeFileSync(join(bundle, name), bytes)
      assert.strictEqual(result.code, 1, name)
      const failures = lines(result.stdout).filter((line) => line.startsWith("FAIL"))
      assert.include(failures.join("\n"), `FAIL ${name}: `, result.stdout)
      if (name === "events.jsonl") assert.match(failures.join("\n"), /line \d+/)
      assert.strictEqual(result.stderr, "")
    }
    rmSync(join(bundle, "events.jsonl"))
    execFileSync("mkfifo", [join(bundle, "events.jsonl")])
    const fifo = await check(ran, ["last"], repo.folder)
    assert.strictEqual(fifo.code, 1)
    assert.match(fifo.stdout, /^FAIL events\.jsonl: /m)
    rmSync(ran.artifact("receipt"))
    const none = await check(ran, ["last"], repo.folder)
    assert.strictEqual(none.code, 1)
    assert.match(none.stdout, /^FAIL receipt\.json: there is none/m)
  })

  it("notices a repository that is another one, and a check that turns out otherwise", async () => {
    await using repo = addRepo()
    const marker = join(repo.folder, "marker")
    await using ran = await execOn(repo, script, [
      ...["--check", `sh -c 'grep -q right src/add.js && test ! -e ${marker}'`],
      ...[...uncontained, "--no-baseline"]
    ])
    assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
    await using other = makeRepo({ files: { "README.md": "another\n" } })
    const wrong = await check(ran, ["last", "-C", other.root], repo.folder)
    assert.strictEqual(wrong.code, 1)
    assert.match(wrong.stdout, /^FAIL base: commit [0-9a-f]{40} is not in /m)

    writeFileSync(marker, "")
    const red = await check(ran, ["last", "-C", repo.root, ...uncontained], repo.folder)
    assert.strictEqual(red.code, 1)
    assert.match(red.stdout, /^FAIL check "check-1": passed in the receipt, failed here: exit 1$/m)
    // What prepares the clone is the caller's to replace.
    const setup = ["--setup", `rm ${marker}`, "--deps", "none"]
    const green = await check(ran, ["last", "-C", repo.root, ...uncontained, ...setup], repo.folder)
    assert.strictEqual(green.code, 0, green.stdout + green.stderr)
  })

  it("refuses in one line what it cannot answer", async () => {
    await using repo = addRepo()
    await using ran = await execOn(repo, script, ["--no-check"])
    for (const args of [
      ["no-such-run"],
      [],
      ["last", "--unsafe-local-exec"],
      ["no-such-run", "--no-run"],
      ["last", "--no-sandbox-checks", "-C", repo.root],
      ["last", "--setup", "true", "-C", repo.root, "--no-run", "--unsafe-local-exec"],
      ["last", "-C", "no-such-directory"],
      ["last", "-C", ""],
      ["last", "--run-root", ""],
      [""],
      ["last", "-C", "/"],
      ["last", "-C", repo.root, "--unsafe-local-exec", "--deps", "no-such-directory"]
    ]) {
      const result = await check(ran, args, repo.folder)
      assert.strictEqual(result.code, 2, `${args.join(" ")}\n${result.stdout}${result.stderr}`)
      assert.strictEqual(lines(result.stderr).length, 1, result.stderr)
      const [, flag] = args
      if (flag?.startsWith("--") !== true) continue
      assert.strictEqual(result.stdout, "", args.join(" "))
      assert.include(result.stderr, flag)
    }
    const waived = await check(ran, ["last", "--output", "json"], repo.folder)
    assert.strictEqual(waived.code, 0)
    const verdict = waived.json()["verdict"]
    assert.strictEqual(isRecord(verdict) ? verdict["terminal_reason"] : null, "unverified")
  })
})
