import { assert, it } from "@effect/vitest"
import { foundNoTests, mustReport, testsRun } from "../../src/domain/TestReport.ts"

const node = (tests: number, skipped = 0, todo = 0, mark = "ℹ") =>
  [
    "✔ adds (1.5ms)",
    ...[
      `tests ${tests}`,
      "suites 0",
      "pass 1",
      "fail 0",
      "cancelled 0",
      `skipped ${skipped}`,
      `todo ${todo}`
    ].map((line) => `${mark} ${line}`)
  ].join("\n")

const table: ReadonlyArray<
  readonly [name: string, output: string, argv: ReadonlyArray<string>, number | null]
> = [
  ["node, spec", node(3), ["node", "--test"], 3],
  ["node, tap", node(3, 0, 0, "#"), ["node", "--test"], 3],
  ["node, coloured", `\u001b[34mℹ tests 2\u001b[39m\n\u001b[34mℹ skipped 0\u001b[39m`, ["node", "--test"], 2],
  ["node, only skipped", node(2, 2), ["node", "--test"], 0],
  ["node, todo", node(3, 1, 1), ["node", "--test"], 1],
  ["node, none", node(0), ["/usr/bin/node", "--test"], 0],
  [
    "node, a file without tests",
    "✔ test/a.test.mjs (183.06ms)\nℹ tests 1\nℹ skipped 0",
    ["node", "--test"],
    0
  ],
  ["node, tap, a file without tests", "ok 1 - test/a.test.mjs\n# tests 1", ["node", "--test"], 0],
  ["node, a count that a test printed", `ℹ tests 5\n# skipped 0\n${node(0)}`, ["node", "--test"], 0],
  ["node, a count printed at exit", `${node(0)}\nℹ tests 5`, ["node", "--test"], 0],
  [
    "node, a count printed by a file without tests",
    "ℹ tests 5\n✔ a.test.mjs (1.5ms)\nℹ tests 1\nℹ skipped 0",
    ["node", "--test"],
    0
  ],
  ["pytest, a count that a test printed", "3 passed in 0.10s\nno tests ran in 0.01s", ["pytest"], 0],
  ["vitest, a count that a test printed", "      Tests  3 passed (3)\n      Tests  no tests", ["vitest"], 0],
  ["several runs", `${node(2)}\n${node(3)}`, ["npm", "test", "--workspaces"], 5],
  ["vitest", " Test Files  1 passed (1)\n      Tests  3 passed (3)\n", ["npx", "vitest", "run"], 3],
  [
    "vitest, coloured",
    "\u001b[2m      Tests \u001b[22m \u001b[1m\u001b[32m3 passed\u001b[39m\u001b[22m (3)",
    ["npm", "test"],
    3
  ],
  ["vitest, mixed", "      Tests  1 failed | 2 passed | 4 skipped (7)", ["npm", "test"], 3],
  ["vitest, skipped", "      Tests  2 skipped (2)", ["npm", "test"], 0],
  ["vitest, no tests", "      Tests  no tests", ["vitest"], 0],
  ["vitest, no files", "No test files found, exiting with code 1", ["vitest"], 0],
  ["jest", "Tests:       1 failed, 2 passed, 3 total", ["npx", "jest"], 3],
  ["jest, skipped", "Tests:       2 skipped, 2 total", ["jest"], 0],
  ["jest, none", "No tests found, exiting with code 1", ["jest"], 0],
  ["pytest", "===== 3 passed in 0.10s =====", ["pytest"], 3],
  ["pytest, quiet", "1 failed, 2 passed, 1 skipped in 1.20s", ["python", "-m", "pytest", "-q"], 3],
  ["pytest, long", "= 100 passed, 2 warnings in 75.10s (0:01:15) =", ["pytest"], 100],
  ["pytest, only skipped", "2 skipped in 0.01s", ["pytest"], 0],
  ["pytest, none", "no tests ran in 0.01s", ["pytest"], 0],
  ["pytest, collected none", "collected 0 items", ["pytest"], 0],
  ["pytest, error", "===== 1 error in 0.10s =====", ["pytest"], 0],
  ["nothing known", "all good\n3 things passed", ["make", "check"], null],
  ["empty", "", ["true"], null],
  ["a named runner is read alone", "no tests ran in 0.01s\n      Tests  3 passed (3)", ["pytest"], 0]
]

for (const [name, output, argv, expected] of table) {
  it(`counts tests: ${name}`, () => {
    assert.strictEqual(testsRun(output, argv), expected)
    assert.strictEqual(testsRun(output.replaceAll("\n", "\r\n"), argv), expected)
  })
}

it("tells a runner that found nothing from one that failed", () => {
  for (const output of [
    "No tests found, exiting with code 1",
    "no tests ran in 0.01s",
    "No test files found"
  ]) {
    assert.isTrue(foundNoTests(output), output)
  }
  for (const output of [
    "1 failed in 0.1s",
    "no tests ran in 0.01s\n1 error in 0.1s",
    " Test Files  1 failed (1)\n      Tests  no tests"
  ]) {
    assert.isFalse(foundNoTests(output), output)
  }
})

it("knows the commands that must end with a count", () => {
  for (const command of [
    "node --test",
    "node --test-isolation=none --test a.js",
    "npx vitest run",
    "jest",
    "pytest -x"
  ]) {
    assert.isTrue(mustReport(command.split(" ")), command)
  }
  for (const command of [
    "npm test",
    "node a.js",
    "node --test --test-reporter=dot",
    "vitest run --reporter=json",
    "npx jest --json",
    "pytest -qq",
    "make check"
  ]) {
    assert.isFalse(mustReport(command.split(" ")), command)
  }
})
