import { assert, describe, it } from "@effect/vitest"
import type { EventData } from "../../src/domain/Event.ts"
import { TreeId } from "../../src/domain/Ids.ts"
import { unrun, type ChangedFile } from "../../src/domain/Result.ts"
import type { Task } from "../../src/domain/Task.ts"
import { isConfigurationPath, isTestPath } from "../../src/domain/TestConventions.ts"
import { protectedViolation, warningsOf } from "../../src/domain/Warnings.ts"
import { exampleTask } from "../support/tasks.ts"

const tree = TreeId.make("1".repeat(40))

/** A patch that changes these lines of one file. */
const diff = (path: string, added: ReadonlyArray<string>, removed: ReadonlyArray<string> = []): Uint8Array =>
  new TextEncoder().encode(
    [
      `diff --git a/${path} b/${path}`,
      `index ${"1".repeat(40)}..${"2".repeat(40)} 100644`,
      `--- a/${path}`,
      `+++ b/${path}`,
      `@@ -1,${removed.length + 1} +1,${added.length + 1} @@`,
      " context",
      ...removed.map((line) => `-${line}`),
      ...added.map((line) => `+${line}`),
      ""
    ].join("\n")
  )

const changed = (path: string, change: ChangedFile["change"] = "modified"): ChangedFile => ({ path, change })

const ran = (purpose: "preflight" | "final", tests: number): EventData<"verification.completed"> => ({
  purpose,
  tree,
  outcome: { ...unrun({ name: "check-1", argv: ["node", "--test"] }, "passed", ""), reason: null, tests },
  wrote: []
})

const kinds = (
  path: string,
  added: ReadonlyArray<string>,
  options: { readonly removed?: ReadonlyArray<string>; readonly task?: Partial<Task> } = {}
) =>
  warningsOf({
    patch: diff(path, added, options.removed),
    files: [changed(path)],
    task: { ...exampleTask, ...options.task },
    checks: []
  }).map((warning) => warning.kind)

describe("paths", () => {
  it.each([
    ..."src/a.test.ts test/a.js tests/helpers/x.py src/__tests__/a.jsx a_test.go lib/test_a.py test_a.py".split(
      " "
    ),
    ..."src/ASpec.hs spec/a_spec.rb AddTest.java AddTests.cs a.bats x/__snapshots__/a.snap e2e/a.ts tests.py".split(
      " "
    )
  ])("%s is a test's", (path) => assert.isTrue(isTestPath(path)))
  it.each("src/a.ts latest.ts contest.py src/attest/a.go README.md testing.md src/Tester.java".split(" "))(
    "%s is none",
    (path) => assert.isFalse(isTestPath(path))
  )
  it.each([
    ..."package.json a/pytest.ini pyproject.toml tox.ini setup.cfg conftest.py vitest.config.ts jest.config.js".split(
      " "
    ),
    ..."karma.conf.js .mocharc.yml Makefile Cargo.toml go.mod .github/workflows/ci.yml .cargo/config.toml".split(
      " "
    )
  ])("%s decides what checks do", (path) => assert.isTrue(isConfigurationPath(path)))
  it.each("src/a.ts src/config.ts docs/package.md .github/CODEOWNERS".split(" "))("%s does not", (path) =>
    assert.isFalse(isConfigurationPath(path))
  )
})

describe("warnings", () => {
  it("an ordinary change has none", () => {
    assert.deepStrictEqual(kinds("src/add.js", ["return a + b"], { removed: ["return a - b"] }), [])
    assert.deepStrictEqual(
      warningsOf({ patch: new Uint8Array(), files: [], task: exampleTask, checks: [] }),
      []
    )
  })

  it.each([
    ["test/a.test.js", "  it.skip('adds', () => {})"],
    ["test/a.test.js", "describe.only('x', () => {"],
    ["test/a.test.js", "xit('adds', () => {})"],
    ["test/a.test.js", "test('adds', { skip: true }, () => {})"],
    ["test/a.test.js", "test.todo('adds')"],
    ["test/a.test.js", "  t.skip('not now')"],
    ["tests/test_a.py", "@pytest.mark.skip(reason='x')"],
    ["tests/test_a.py", "@unittest.skip('x')"],
    ["tests/test_a.py", "    self.skipTest('x')"],
    ["tests/test_a.py", "if False:"],
    ["a_test.go", '\tt.Skip("x")'],
    ["a_test.go", "\tt.SkipNow()"],
    ["src/lib.rs", "    #[ignore]"],
    ["src/test/java/ATest.java", "    @Disabled"],
    ["spec/a_spec.rb", "  skip 'later' do"],
    ["test/a.test.js", "process.exit(0)"]
  ])("a line in %s that keeps a test from running: %s", (path, line) =>
    assert.include(kinds(path, [line]), "test_skipped")
  )

  it.each([
    ["src/stream.js", "return rows.skip(1)"],
    ["src/a.py", "if False:"],
    ["src/cli.js", "process.exit(0)"],
    ["src/a.js", "const fit = (x) => x"],
    ["src/a.js", "obj.fit(1)"]
  ])("a line in %s that means something else: %s", (path, line) =>
    assert.deepStrictEqual(kinds(path, [line]), [])
  )

  it("a test, what decides how checks run, and what a check names", () => {
    assert.deepStrictEqual(kinds("test/a.test.js", ["assert(1)"]), ["test_changed"])
    assert.deepStrictEqual(kinds("package.json", ['"test": "true"']), ["configuration_changed"])
    const verification: Task["verification"] = {
      mode: "checks",
      checks: [{ name: "smoke", argv: ["sh", "-c", "cd x && ./scripts/check.sh --all"], timeout_seconds: 1 }]
    }
    assert.deepStrictEqual(kinds("scripts/check.sh", ["exit 0"], { task: { verification } }), [
      "check_changed"
    ])
    assert.deepStrictEqual(
      kinds("pkg/scripts/check.sh", ["exit 0"], { task: { verification, subdirectory: "pkg" } }),
      ["check_changed"]
    )
  })

  it("tests that are gone, as a file or in one", () => {
    const [gone] = warningsOf({
      patch: new Uint8Array(),
      files: [changed("test/a.test.js", "deleted")],
      task: exampleTask,
      checks: []
    })
    assert.deepStrictEqual(gone, {
      kind: "test_deleted",
      path: "test/a.test.js",
      message: 'the patch deletes the test "test/a.test.js"'
    })
    assert.deepStrictEqual(kinds("src/lib.rs", [], { removed: ["#[test]", "fn a() {}"] }), ["test_deleted"])
    assert.deepStrictEqual(kinds("a/b.py", ["def test_b(self):"], { removed: ["def test_a(self):"] }), [])
  })

  it("fewer tests than on the base, never more, and never of a patch that changes nothing", () => {
    const of = (before: number, after: number, files = [changed("src/a.js")]) =>
      warningsOf({
        patch: new Uint8Array(),
        files,
        task: exampleTask,
        checks: [ran("preflight", before), ran("final", after + 5), ran("final", after)]
      }).map((warning) => warning.message)
    assert.deepStrictEqual(of(3, 2), ['check "check-1" ran 2 tests, and 3 on the untouched base'])
    assert.deepStrictEqual(of(3, 3), [])
    assert.deepStrictEqual(of(3, 2, []), [])
  })

  it("a patch whose lines cannot be read is said to be one", () => {
    const [warning] = warningsOf({
      patch: new TextEncoder().encode("diff --git a/x b/x\n@@ nonsense"),
      files: [changed("src/x")],
      task: exampleTask,
      checks: []
    })
    assert.strictEqual(warning?.kind, "unreadable_patch")
  })
})

describe("--protect", () => {
  const violation = (globs: ReadonlyArray<string>, ...files: ReadonlyArray<ChangedFile>) =>
    protectedViolation({ ...exampleTask, protected_paths: globs }, files)

  it("names the path and the glob", () => {
    assert.strictEqual(
      violation(["test/**", "package.json"], changed("src/a.js"), changed("package.json")),
      'it changes "package.json", which --protect "package.json" forbids'
    )
    assert.strictEqual(
      violation(["test"], changed("test/deep/a.js", "deleted")),
      'it deletes "test/deep/a.js", which --protect "test" forbids'
    )
  })

  it("lets everything else pass", () => {
    assert.isNull(violation(["test/**"], changed("src/a.js"), changed("tests/a.js")))
    assert.isNull(violation([], changed("src/a.js")))
    assert.isNull(protectedViolation(exampleTask, [changed("src/a.js")]))
  })
})
