/**
 * Zero tests, some tests and skipped ones, read from what real runners print on this machine. What is not installed here
 * is in `test/domain/TestReport.test.ts` as it was recorded.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { mustReport, testsRun } from "../../src/domain/TestReport.ts"
import { writeFiles, type Files } from "../support/Repo.ts"

const vitest = join(import.meta.dirname, "../../node_modules/vitest/vitest.mjs")

/** Runs a command among files; everything that it prints. Null when there is no such program. */
const output = (files: Files, [program = "", ...args]: ReadonlyArray<string>): string | null => {
  const folder = mkdtempSync(join(tmpdir(), "looplane-runner-"))
  try {
    writeFiles(folder, files)
    const ran = spawnSync(program, args, {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", HOME: folder, LC_ALL: "C.UTF-8" }
    })
    if (ran.error !== undefined) return null
    return ran.stdout + ran.stderr
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const nodeTests = (body: string): Files => ({ "a.test.mjs": `import test from "node:test"\n${body}\n` })
const node = [process.execPath, "--test"]
const vitestRun = [process.execPath, vitest, "run", "--globals"]
const python = ["python3", "-m", "unittest"]
const unittests = (body: string): Files => ({
  "test_a.py": `import os, unittest\nclass A(unittest.TestCase):\n${body}\n`
})
const pytest = ["python3", "-m", "pytest", "-p", "no:cacheprovider"]

const cases: ReadonlyArray<
  readonly [name: string, files: Files, argv: ReadonlyArray<string>, expected: number | null]
> = [
  ["node: some", nodeTests("test('a', () => {}); test('b', { skip: true }, () => {})"), node, 1],
  ["node: only skipped", nodeTests("test('b', { skip: true }, () => {})"), node, 0],
  ["node: none in the file", nodeTests(""), node, 0],
  ["node: no file", {}, node, 0],
  ["node: tap", nodeTests("test('a', () => {})"), [...node, "--test-reporter=tap"], 1],
  ["node: dots, no file", {}, [...node, "--test-reporter=dot"], 0],
  ["node: filtered out", nodeTests("test('a', () => {})"), [...node, "--test-name-pattern=zzz"], 0],
  ["vitest: some", { "a.test.mjs": "test('a', () => {}); test.skip('b', () => {})\n" }, vitestRun, 1],
  ["vitest: only skipped", { "a.test.mjs": "test.skip('b', () => {})\n" }, vitestRun, 0],
  ["vitest: no file", {}, [...vitestRun, "--passWithNoTests"], 0],
  [
    "unittest: some",
    unittests("  def test_a(self): pass\n  @unittest.skip('x')\n  def test_b(self): pass"),
    python,
    1
  ],
  ["unittest: only skipped", unittests("  @unittest.skip('x')\n  def test_b(self): pass"), python, 0],
  ["unittest: none", { "a.py": "" }, python, 0],
  ["unittest: ended by a test", unittests("  def test_a(self): os._exit(0)"), python, null],
  ["pytest: some", { "test_a.py": "def test_a(): pass\n" }, pytest, 1],
  ["pytest: none", { "test_a.py": "" }, pytest, 0]
]

describe("the number of tests in what a runner prints", () => {
  it.each(cases)("%s", (_, files, argv, expected) => {
    const printed = output(files, argv)
    if (printed === null || printed.includes("No module named pytest")) {
      console.log(`runner absent: ${argv.join(" ")}`)
      return
    }
    assert.strictEqual(testsRun(printed, argv), expected, printed)
    // Without a number such a command counts for nothing.
    if (expected === null) assert.isTrue(mustReport(argv))
  })
})
