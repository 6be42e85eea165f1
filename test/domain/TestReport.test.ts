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

const go = {
  mixed: "ok  \tex/a\t0.012s\n?   \tex/n\t[no test files]",
  none: "ok  \tex/b\t0.018s [no tests to run]\n?   \tex/n\t[no test files]",
  verbose:
    "=== RUN   TestA\n=== RUN   TestA/sub\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tex/a\t0.014s",
  skipped: "=== RUN   TestS\n    s_test.go:3: no\n--- SKIP: TestS (0.00s)\nPASS\nok  \tex/s\t0.014s"
}
const cargo = (...runs: ReadonlyArray<readonly [passed: number, ignored: number]>) =>
  runs
    .map(
      ([passed, ignored]) =>
        `\nrunning ${passed + ignored} tests\ntest a ... ok\n\ntest result: ok. ${passed} passed; 0 failed; ${ignored} ignored; 0 measured; 0 filtered out; finished in 0.00s\n`
    )
    .join("\n")
const unittest = (ran: number, end = "OK") =>
  `${".".repeat(ran)}\n${"-".repeat(70)}\nRan ${ran} test${ran === 1 ? "" : "s"} in 0.001s\n\n${end}`

/** As the runners print it: node 24, mocha 11, jest 29 and 30, pytest 9, unittest of 3.11 and 3.13, go 1.19, cargo 1.95. */
const recorded: typeof table = [
  ["node, dot, none", "\n", ["node", "--test", "--test-reporter=dot"], 0],
  ["node, dot, some", "..X.\n", ["node", "--test", "--test-reporter", "dot"], null],
  ["node, junit", "\t<!-- tests 4 -->\n\t<!-- skipped 1 -->\n\t<!-- todo 1 -->", ["node", "--test"], 2],
  ["node, behind env", node(3), ["env", "CI=1", "node", "--test"], 3],
  ["mocha", "\n\n  x\n    ✔ a\n    - c\n\n\n  2 passing (6ms)\n  2 pending\n", ["npx", "mocha"], 2],
  ["mocha, failing", "  1 passing (6ms)\n  1 failing\n\n  1) x\n", ["mocha"], 2],
  ["mocha, only skipped", "  x\n    - c\n\n\n  0 passing (4ms)\n  2 pending\n", ["mocha"], 0],
  ["mocha, none", "\n\n  0 passing (1ms)\n", ["node", "node_modules/mocha/bin/mocha.js"], 0],
  ["mocha, no files", 'Error: No test files found: "nope*.js"', ["mocha"], 0],
  ["mocha, nothing really run", "  2 passing (4ms)", ["mocha", "--dry-run"], 0],
  [
    "mocha, tap",
    "ok 1 x a\nok 3 x c # SKIP -\n# tests 2\n# pass 2\n# fail 0\n1..4",
    ["mocha", "-R", "tap"],
    2
  ],
  ["mocha, through npm", "> mocha\n\n  0 passing (1ms)\n", ["npm", "test"], 0],
  ["jest, none in a file", "Test Suites: 1 failed, 1 total\nTests:       0 total", ["jest"], 0],
  [
    "jest, filtered out",
    "Test Suites: 1 skipped, 0 of 1 total\nTests:       4 skipped, 4 total",
    ["yarn", "jest"],
    0
  ],
  ["jest, todo", "Tests:       1 skipped, 1 todo, 2 passed, 4 total", ["pnpm", "exec", "jest"], 2],
  ["pytest, filtered out", "===== 4 deselected in 0.01s =====", ["uv", "run", "pytest"], 0],
  [
    "pytest, through coverage",
    "2 passed, 1 skipped, 1 xfailed in 0.08s",
    ["coverage", "run", "-m", "pytest"],
    3
  ],
  ["pytest, through make", "===== 2 passed in 0.08s =====", ["make", "test"], 2],
  ["unittest", unittest(4, "OK (skipped=1, expected failures=1)"), ["python3", "-m", "unittest"], 3],
  ["unittest, failing", unittest(2, "FAILED (failures=1, errors=1)"), ["python", "-m", "unittest", "-q"], 2],
  ["unittest, only skipped", unittest(1, "OK (skipped=1)"), ["python3.11", "-m", "unittest"], 0],
  ["unittest, none", unittest(0), ["python3", "-m", "coverage", "run", "-m", "unittest"], 0],
  ["unittest, none since 3.12", unittest(0, "NO TESTS RAN"), ["python3", "-m", "unittest"], 0],
  ["unittest, through a script", unittest(2), ["python3", "run_tests.py"], 2],
  ["go, not how many", go.mixed, ["go", "test", "./..."], null],
  ["go, none", go.none, ["go", "test", "./..."], 0],
  ["go, verbose", go.verbose, ["go", "test", "-v", "./..."], 2],
  ["go, verbose, only skipped", go.skipped, ["go", "test", "-v", "./..."], 0],
  ["go, verbose, a main that runs nothing", "ok  \tex/a\t0.010s", ["go", "test", "-v", "./a"], 0],
  ["go, verbose, through make", go.verbose, ["make", "test"], 2],
  [
    "go, json",
    '{"Time":"t","Action":"run","Package":"ex/a","Test":"TestA"}\n{"Time":"t","Action":"pass","Package":"ex/a","Test":"TestA/sub","Elapsed":0}\n{"Time":"t","Action":"pass","Package":"ex/a","Test":"TestA","Elapsed":0}\n{"Time":"t","Action":"pass","Package":"ex/a","Elapsed":0.012}',
    ["go", "test", "-json", "./a"],
    1
  ],
  ["go, through make beside others", `${go.mixed}\n${node(0)}`, ["make", "test"], null],
  ["gotestsum", "DONE 4 tests, 1 skipped in 0.512s", ["gotestsum"], 3],
  ["cargo", cargo([2, 1], [1, 0], [1, 0]), ["cargo", "test"], 4],
  ["cargo, none", cargo([0, 0], [0, 0]), ["cargo", "test"], 0],
  ["cargo, only ignored", cargo([0, 1]), ["cargo", "+nightly", "test"], 0],
  ["cargo, ended by a test", `${cargo([2, 0])}\nrunning 1 test\n`, ["cargo", "test"], null],
  [
    "cargo nextest",
    "     Summary [   0.005s] 3 tests run: 3 passed, 1 skipped",
    ["cargo", "nextest", "run"],
    3
  ],
  ["cargo, through make", cargo([2, 0], [1, 0]), ["make", "test"], 3]
]

for (const [name, output, argv, expected] of recorded) {
  it(`counts tests: ${name}`, () => assert.strictEqual(testsRun(output, argv), expected))
}

it("tells a runner that found nothing from one that failed", () => {
  for (const output of [
    "No tests found, exiting with code 1",
    "no tests ran in 0.01s",
    "No test files found",
    'Error: No test files found: "nope*.js"',
    "Ran 0 tests in 0.000s\n\nNO TESTS RAN",
    "error: no tests to run"
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
    "pytest -x",
    "env CI=1 node --test",
    "node node_modules/.bin/vitest run",
    "pnpm exec mocha --exit",
    "timeout 60 npx --yes jest",
    "python3 -X dev -m unittest discover",
    "uv run python -m pytest",
    "coverage run --branch -m unittest",
    "cargo test --workspace"
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
    "make check",
    "go test ./...",
    "mocha --reporter json",
    "cargo build",
    "yarn test"
  ]) {
    assert.isFalse(mustReport(command.split(" ")), command)
  }
})
