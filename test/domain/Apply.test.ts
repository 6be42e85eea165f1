import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  decide,
  sameNode,
  type Decision,
  type MergedText,
  type SurveyedPath
} from "../../src/domain/Apply.ts"
import { planApply } from "../../src/domain/ApplyPlan.ts"
import { checkoutForm, formOf, toCrlf, toLf } from "../../src/domain/ApplyText.ts"
import { remedyOf, type ApplyRecord, type Found } from "../../src/domain/ApplyRecord.ts"
import { Digest, RunId } from "../../src/domain/Ids.ts"
import type { FileNode } from "../../src/domain/patch/FileSet.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (value: Uint8Array): string => new TextDecoder().decode(value)
const file = (content: string, executable = false): FileNode => ({
  _tag: "File",
  bytes: bytes(content),
  executable
})
const link = (target: string): FileNode => ({ _tag: "Symlink", target })
const directory: FileNode = { _tag: "Directory" }

const surveyed = (
  base: FileNode | undefined,
  patched: FileNode | undefined,
  now: FileNode | undefined,
  more: Partial<SurveyedPath> = {}
): SurveyedPath => ({
  path: "a",
  base,
  patched,
  now,
  obstacle: null,
  inside: null,
  rules: { text: "unspecified", eol: "unspecified", autocrlf: null, core_eol: null },
  conversion: null,
  modes: true,
  mark: null,
  ...more
})

const told = (decision: Decision): string => {
  switch (decision._tag) {
    case "Keep":
      return "keep"
    case "Conflict":
      return "conflict"
    case "MergeText":
      return `merge${decision.executable ? " x" : ""}`
    case "Write": {
      const { merged, to } = decision
      const what =
        to === undefined
          ? "nothing"
          : to._tag === "File"
            ? `${text(to.bytes)}${to.executable ? " x" : ""}`
            : to._tag === "Symlink"
              ? `-> ${to.target}`
              : to._tag
      return `write ${what}${merged ? " (merged)" : ""}`
    }
  }
}

describe("the decision", () => {
  const [a, b, c] = [file("a"), file("b"), file("c")]
  const rows: ReadonlyArray<
    readonly [FileNode | undefined, FileNode | undefined, FileNode | undefined, string]
  > = [
    [a, b, a, "write b"],
    [a, b, b, "keep"],
    [a, b, c, "merge"],
    [a, b, undefined, "conflict"],
    [a, b, link("a"), "conflict"],
    [a, b, directory, "conflict"],
    [a, undefined, a, "write nothing"],
    [a, undefined, undefined, "keep"],
    [a, undefined, c, "conflict"],
    [undefined, b, undefined, "write b"],
    [undefined, b, b, "keep"],
    [undefined, b, c, "conflict"],
    [undefined, b, directory, "conflict"],
    [a, link("x"), a, "write -> x"],
    [a, link("x"), link("x"), "keep"],
    [a, link("x"), c, "conflict"],
    [link("x"), link("y"), link("x"), "write -> y"],
    [link("x"), link("y"), link("z"), "conflict"],
    [link("x"), undefined, link("x"), "write nothing"],
    // Modes merge on their own.
    [a, file("a", true), a, "write a x"],
    [a, file("a", true), c, "write c x (merged)"],
    [a, b, file("a", true), "write b x (merged)"],
    [a, file("b", true), c, "merge x"],
    [file("a", true), b, c, "merge"],
    [a, file("a", true), file("a", true), "keep"],
    [file("\0a"), file("\0b"), file("\0c"), "conflict"]
  ]
  it.each(rows)("of %j to %j, with %j there", (base, patched, now, expected) => {
    assert.strictEqual(told(decide(surveyed(base, patched, now))), expected)
  })

  it("takes no executable bit from a disk that keeps none", () => {
    const row = surveyed(file("a", true), file("b", true), file("a"), { modes: false })
    assert.strictEqual(told(decide(row)), "write b x")
  })

  it("merges nothing that git converts", () => {
    const row = surveyed(a, b, c, { conversion: "filter=lfs" })
    const decision = decide(row)
    assert.strictEqual(
      decision._tag === "Conflict" ? decision.reason : "",
      "git converts it (filter=lfs), so it cannot be told from yours: --branch NAME takes it"
    )
  })

  it("is made in the form that stands on disk", () => {
    const [base, patched] = [file("1\n2\n"), file("1\n3\n")]
    assert.strictEqual(told(decide(surveyed(base, patched, file("1\r\n2\r\n")))), "write 1\r\n3\r\n")
    assert.strictEqual(told(decide(surveyed(base, patched, file("1\r\n3\r\n")))), "keep")
    const both = decide(surveyed(base, patched, file("0\r\n2\r\n")))
    assert.strictEqual(both._tag === "MergeText" ? text(both.texts.theirs) : "", "1\r\n3\r\n")
    // One line of many in the other form says nothing of the rest.
    const mixed = decide(surveyed(file("1\n2\n3\n"), file("1\n2\n4\n"), file("1\r\n2\n3\n")))
    assert.strictEqual(mixed._tag === "MergeText" ? text(mixed.texts.theirs) : "", "1\n2\n4\n")
  })

  it("gives a new file the form of a checkout", () => {
    const rules = { text: "unspecified", eol: "unspecified", autocrlf: "true", core_eol: null }
    assert.strictEqual(told(decide(surveyed(undefined, file("1\n"), undefined, { rules }))), "write 1\r\n")
  })
})

describe("line endings", () => {
  const content = fc.array(fc.constantFrom("a", "b", "\n", "\r\n", "\r"), { maxLength: 30 })

  it("of any bytes become one form, and only endings change", () => {
    fc.assert(
      fc.property(content, (parts) => {
        const value = parts.join("")
        assert.strictEqual(text(toCrlf(bytes(value))), value.replaceAll(/(?<!\r)\n/g, "\r\n"))
        assert.strictEqual(text(toLf(bytes(value))), value.replaceAll("\r\n", "\n"))
      })
    )
  })

  it("are told by the bytes wherever those can tell", () => {
    fc.assert(
      fc.property(content, (parts) => {
        const value = bytes(parts.join(""))
        const crlf = toCrlf(value)
        if (crlf.length === value.length) return
        assert.strictEqual(formOf(value, [value], "crlf"), "raw")
        assert.strictEqual(formOf(crlf, [value], "raw"), "crlf")
      })
    )
  })

  const rules: ReadonlyArray<
    readonly [string, string, string | null, string | null, string, "raw" | "crlf"]
  > = [
    ["unspecified", "unspecified", null, null, "a\n", "raw"],
    ["unspecified", "unspecified", "true", null, "a\n", "crlf"],
    ["unspecified", "unspecified", "true", null, "a\nb\r\n", "raw"],
    ["unspecified", "unspecified", "true", null, "\0\n", "raw"],
    ["unspecified", "unspecified", "input", "crlf", "a\n", "raw"],
    ["unset", "unspecified", "true", null, "a\n", "raw"],
    ["unspecified", "lf", "true", null, "a\n", "raw"],
    ["unspecified", "crlf", null, null, "a\n", "crlf"],
    ["set", "unspecified", null, "crlf", "a\n", "crlf"],
    ["set", "unspecified", null, null, "a\n", "raw"],
    ["auto", "unspecified", null, "crlf", "a\n", "crlf"],
    ["auto", "crlf", null, null, "a\r\nb\n", "raw"]
  ]
  it.each(rules)(
    "of a new file: text %s, eol %s, autocrlf %s, core.eol %s, %j is %s",
    (attribute, eol, autocrlf, core_eol, value, expected) => {
      assert.strictEqual(checkoutForm({ text: attribute, eol, autocrlf, core_eol }, bytes(value)), expected)
    }
  )
})

const nodes = fc.option(
  fc.oneof(
    fc.record({
      _tag: fc.constant("File" as const),
      bytes: fc.constantFrom("", "a\n", "b\n", "a\r\n", "\0").map(bytes),
      executable: fc.boolean()
    }),
    fc.record({ _tag: fc.constant("Symlink" as const), target: fc.constantFrom("x", "y") })
  ),
  { nil: undefined }
)
const paths = ["a", "a/b", "c", "d/e", "d/f"]
const trees = fc.dictionary(fc.constantFrom(...paths), nodes)
const patches = fc
  .tuple(trees, trees, trees)
  .map(([base, patched, now]) =>
    [...new Set([...Object.keys(base), ...Object.keys(patched)])]
      .toSorted()
      .map((path) => surveyed(base[path], patched[path], now[path], { path }))
  )
const merges: (path: string) => MergedText | null = (path) =>
  path === "c" ? null : { bytes: bytes(`merged ${path}`), clean: path !== "a" }

describe("the plan", () => {
  it("names no path that the patch does not, and each once", () => {
    fc.assert(
      fc.property(patches, fc.boolean(), (rows, mark) => {
        const { conflicts, kept, steps } = planApply(rows, merges, mark)
        const names = steps.map(({ path }) => path)
        assert.strictEqual(new Set(names).size, names.length)
        const all = [...names, ...kept, ...conflicts.map(({ path }) => path)]
        assert.includeMembers(
          rows.map(({ path }) => path),
          all
        )
        // Without markers every path is in exactly one of the three.
        if (!mark) assert.strictEqual(all.length, rows.length)
      })
    )
  })

  it("begins every step at what stands there, and none that changes nothing", () => {
    fc.assert(
      fc.property(patches, (rows) => {
        for (const { from, path, to } of planApply(rows, merges, false).steps) {
          const row = rows.find((each) => each.path === path)
          assert.isTrue(sameNode(from, row?.now))
          assert.isFalse(sameNode(from, to))
        }
      })
    )
  })

  it("of a tree that did not move on is the patch itself, without a conflict", () => {
    fc.assert(
      fc.property(patches, (rows) => {
        const still = rows.map((row) => ({ ...row, now: row.base }))
        const { conflicts, steps } = planApply(still, merges, false)
        assert.deepStrictEqual(conflicts, [])
        const changed = still.filter(({ base, patched }) => !sameNode(base, patched))
        assert.deepStrictEqual(
          steps.map(({ path }) => path),
          changed.map(({ path }) => path)
        )
      })
    )
  })

  it("of a tree that has the patch already writes nothing", () => {
    fc.assert(
      fc.property(patches, (rows) => {
        const there = rows.map((row) => ({ ...row, now: row.patched }))
        assert.deepStrictEqual(planApply(there, merges, false).steps, [])
      })
    )
  })

  it("lets a file take the place of a directory that the patch clears, and of no other", () => {
    const cleared = { ...surveyed(file("1"), undefined, file("1")), path: "a/b" }
    const taking = surveyed(undefined, file("2"), directory, { inside: ["a/b"] })
    assert.deepStrictEqual(planApply([taking, cleared], merges, false).conflicts, [])
    const fuller = { ...taking, inside: ["a/b", "a/mine"] }
    assert.deepStrictEqual(
      planApply([fuller, cleared], merges, false).conflicts.map(({ path }) => path),
      ["a"]
    )
  })

  it("puts nothing below a file that stays", () => {
    const below = { ...surveyed(undefined, file("2"), undefined, { obstacle: "a" }), path: "a/b" }
    const gone = surveyed(file("1"), undefined, file("1"))
    assert.deepStrictEqual(planApply([gone, below], merges, false).conflicts, [])
    const kept = surveyed(file("1"), undefined, file("mine"))
    for (const mark of [false, true]) {
      const { conflicts, steps } = planApply([kept, below], merges, mark)
      assert.deepStrictEqual(
        conflicts.map(({ path }) => path),
        ["a", "a/b"]
      )
      assert.deepStrictEqual(steps, [])
    }
  })
})

describe("the remedy of an apply that was cut off", () => {
  const record = (phase: ApplyRecord["phase"], names: ReadonlyArray<string>): ApplyRecord => ({
    version: 1,
    id: "1",
    run_id: RunId.make("r"),
    patch_digest: Digest.make("0".repeat(64)),
    unverified: false,
    conflicts: false,
    created_at: "",
    phase,
    commit: null,
    files: names.map((path) => ({
      path,
      change: "added",
      merged: false,
      before: { kind: "absent" },
      after: { kind: "symlink", target: "x" }
    })),
    made: [],
    emptied: []
  })

  it("is the new tree when all of it is there, and the old one otherwise; what is foreign is named", () => {
    const states = fc.array(fc.constantFrom<Found>("before", "after", "foreign"), {
      minLength: 1,
      maxLength: 6
    })
    fc.assert(
      fc.property(states, fc.constantFrom("prepared" as const, "undoing" as const), (found, phase) => {
        const names = found.map((_, at) => `f${at}`)
        const remedy = remedyOf(record(phase, names), (path) => found[names.indexOf(path)] ?? "foreign")
        const whole = phase === "prepared" && found.every((each) => each === "after")
        assert.strictEqual(remedy._tag, whole ? "Finish" : "GoBack")
        if (remedy._tag === "GoBack")
          assert.deepStrictEqual(
            remedy.foreign,
            names.filter((_, at) => found[at] === "foreign")
          )
      })
    )
  })
})
