/**
 * A finished run whose journal lost events, by whichever file still knows how long it was.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "vitest"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { call, calls, checkArgs, says } from "./support.ts"
import { assertOneLine, byTurn, fix, look, story, world, type World } from "./world.ts"

const evidence = ["result.json", "receipt.json", "changes.patch", "verification.json", "test.log"]
const kept = ["result.lost.json", "receipt.lost.json", "changes.lost.patch"]

/** Ends a run, and cuts its journal to so many lines. Returns how many went. */
const cut = async (it: World, lines = 12): Promise<number> => {
  const finished = await it.exec().done
  assert.strictEqual(finished.code, 0, finished.stderr)
  const file = join(it.directory(), "events.jsonl")
  const all = readFileSync(file, "utf8").split("\n").slice(0, -1)
  writeFileSync(file, `${all.slice(0, lines).join("\n")}\n`)
  return all.length - lines
}
const remove = (it: World, ...names: ReadonlyArray<string>) => {
  for (const name of names) rmSync(join(it.directory(), name))
}
const bytesOf = (it: World, names: ReadonlyArray<string>) =>
  names.map((name) => readFileSync(join(it.directory(), name), "utf8"))

const more = call("create_file", { path: "NOTES.md", content: "notes\n" })
const script = () => byTurn([...story, calls(more), says("Noted.")])

describe("a finished run that lost the end of its journal", () => {
  it.each([
    ["its manifest, asked for more", ["session.json"], ["Add notes."]],
    ["its manifest and result", ["session.json", "result.json"], []],
    ["nothing else", [], []],
    ["nothing else, asked for more", [], ["Add notes."]]
  ] as const)("and %s: refused with the number, accepted with the evidence kept", async (_, gone, words) => {
    await using it = await world(script())
    const lost = await cut(it)
    remove(it, ...gone)
    const before = snapshotTree(it.directory())
    for (const run of ["last", basename(it.directory())]) {
      const refused = await it.looplane(["resume", run, ...words])
      assert.strictEqual(refused.code, 2, refused.stderr)
      assertOneLine(refused, new RegExp(`${lost} events are lost.*--accept-loss`))
    }
    assertUntouched(before, snapshotTree(it.directory()))
    for (const args of [
      ["sessions", "--show", "last"],
      ["receipt", "check", "last"]
    ]) {
      const read = await it.looplane(args)
      assert.notStrictEqual(read.code, 0, args.join(" "))
      assert.match(read.stdout + read.stderr, new RegExp(`${lost} events are lost`))
    }

    const there = evidence.filter((name) => existsSync(join(it.directory(), name)))
    const old = bytesOf(it, there)
    const resumed = await it.looplane(["resume", "last", ...words, "--accept-loss"])
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.include(String(resumed.json()["notes"]), `${lost} events were lost and gone on without`)
    const aside = there.map((name) => name.replace(/(\.[^.]+)$/, ".lost$1"))
    assert.deepStrictEqual(bytesOf(it, aside), old)
    // What was accepted once is not asked for again.
    const after = await it.looplane(["resume", "last"])
    assert.match(after.stderr, /has ended|have ended|every run/)
    const shown = await it.looplane(["sessions", "--show", "last"])
    assert.strictEqual(shown.code, 0, shown.stderr)
  })

  it("twice keeps the evidence of both times", async () => {
    await using it = await world(script())
    await cut(it)
    const first = bytesOf(it, ["result.json", "receipt.json", "changes.patch"])
    const once = await it.looplane(["resume", "last", "--accept-loss"])
    assert.strictEqual(once.code, 0, once.stderr)
    const second = bytesOf(it, ["result.json", "receipt.json", "changes.patch"])
    const file = join(it.directory(), "events.jsonl")
    writeFileSync(
      file,
      readFileSync(file, "utf8")
        .split(/(?<=\n)/)
        .slice(0, -1)
        .join("")
    )
    const twice = await it.looplane(["resume", "last", "--accept-loss"])
    assert.strictEqual(twice.code, 0, twice.stderr)
    assert.deepStrictEqual(bytesOf(it, kept), first)
    assert.deepStrictEqual(
      bytesOf(it, ["result.lost-2.json", "receipt.lost-2.json", "changes.lost-2.patch"]),
      second
    )
  })

  it("is no such run where its receipt is nonsense, and nothing else knows better", async () => {
    await using it = await world(script())
    await cut(it, 15)
    remove(it, "session.json", "result.json")
    writeFileSync(join(it.directory(), "receipt.json"), "{}")
    const resumed = await it.looplane(["resume", "last"])
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.isFalse(readdirSync(it.directory()).some((name) => name.includes(".lost")))
  })
})

describe("a run without its request", () => {
  it("is named by resume last, with what it lacks", async () => {
    await using it = await world(byTurn([calls(look), calls(fix), says("It subtracted.")]))
    await it.exec(checkArgs).done
    remove(it, "request.json")
    const refused = await it.looplane(["resume", "last"])
    assert.strictEqual(refused.code, 2)
    assertOneLine(refused, new RegExp(`run ${basename(it.directory())} lacks request\\.json`))
  })
})
