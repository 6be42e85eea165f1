import { randomUUID } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { stall } from "../support/ModelServer.ts"
import { calls, checkArgs, says } from "./support.ts"
import { assertNoStack, byTurn, fix, readJson, world, type World } from "./world.ts"

/** A shell line around the command, which is `"$@"` in it. */
const shell = (line: string) => (command: ReadonlyArray<string>) => ["sh", "-c", line, "sh", ...command]

/** A pipeline that begins with the command, and how the command itself ended. */
const piped = (it: World, into: string) => {
  const file = join(it.home.folder, `status-${randomUUID()}`)
  return {
    through: shell(`{ "$@"; echo $? > ${file}; } | ${into}`),
    code: () => readFileSync(file, "utf8").trim()
  }
}

const story = [calls(fix), says("It subtracted.")]
/** An answer that no pipe holds. */
const long = "It subtracted, and that is all. ".repeat(10_000)

describe("a reader that goes away", () => {
  it("ends no run and shows no stack: its bundle is complete", async () => {
    await using it = await world(byTurn(story))
    const head = piped(it, "head -1")
    const nobody = piped(it, "true")
    const run = (
      args: ReadonlyArray<string>,
      through: (command: ReadonlyArray<string>) => ReadonlyArray<string>
    ) => it.exec([...checkArgs, ...args], { cli: { through } }).done
    const [first, none, deaf, mute, full] = await Promise.all([
      run(["--output", "jsonl"], head.through),
      run(["--output", "text"], nobody.through),
      run(["--output", "json"], shell('exec "$@" 2>&-')),
      run(["--output", "json"], shell('exec "$@" <&- >&- 2>&-')),
      run(["--output", "json"], shell('exec "$@" > /dev/full'))
    ])
    assert.include(first.jsonLines()[0], { event_type: "run.created" })
    assert.lengthOf(first.jsonLines(), 1)
    assert.deepStrictEqual([head.code(), nobody.code()], ["0", "0"])
    assert.strictEqual(deaf.json()["terminal_reason"], "verified")
    assert.deepStrictEqual([deaf.code, mute.code, full.code], [0, 0, 1])
    assert.match(full.stderr, /^looplane: stdout cannot be written: ENOSPC.*$/m)
    for (const { stderr } of [first, none, deaf, mute, full]) assertNoStack(stderr)
    assert.lengthOf(it.runs(), 5)
    for (const directory of it.runs()) {
      assert.deepInclude(readJson(join(directory, "result.json")), { terminal_reason: "verified" })
      assert.isTrue(existsSync(join(directory, "receipt.json")))
    }
    assert.deepStrictEqual(first.leftovers(), [])
  })

  it("of a resumed run neither", async () => {
    await using it = await world(byTurn(story, new Map([[1, stall()]])))
    await it.killedAt(it.exec(), 2)
    const head = piped(it, "head -c 10")
    const resumed = await it.looplane(["resume", "last", "--output", "json"], head)
    assert.lengthOf(resumed.stdout, 10)
    assert.strictEqual(head.code(), "0")
    assertNoStack(resumed.stderr)
    assert.deepInclude(readJson(join(it.directory(), "result.json")), { terminal_reason: "verified" })
    assert.deepStrictEqual(resumed.leftovers(), [])
  })

  it("of a listing gets what it read, again and again: exit 0 and not a word", async () => {
    await using it = await world(byTurn([calls(fix), says(long)]))
    assert.strictEqual((await it.exec().done).code, 0)
    const list = ["sessions"]
    const show = ["sessions", "--show", "last", "--output", "json"]
    const asked: ReadonlyArray<readonly [ReadonlyArray<string>, string, RegExp]> = [
      [list, "head -1", /^RUN .*\n$/],
      [show, "head -c 10", /^\{\n {2}"run_i$/],
      [show, "true", /^$/]
    ]
    for (let time = 0; time < 2; time++) {
      await Promise.all(
        asked.map(async ([args, into, shown]) => {
          const pipe = piped(it, into)
          const { stderr, stdout } = await it.looplane(args, pipe)
          assert.deepStrictEqual([pipe.code(), stderr], ["0", ""], `${args.join(" ")} | ${into}`)
          assert.match(stdout, shown)
        })
      )
    }
    const [mute, deaf, full] = await Promise.all(
      ['exec "$@" >&-', 'exec "$@" 2>&-', 'exec "$@" > /dev/full'].map((line) =>
        it.looplane(list, { through: shell(line) })
      )
    )
    assert.deepStrictEqual([mute?.code, mute?.stderr], [0, ""])
    assert.deepStrictEqual([deaf?.code, deaf?.stdout.split("\n").length], [0, 3])
    assert.strictEqual(full?.code, 1)
    assert.match(String(full?.stderr), /^looplane: stdout cannot be written: ENOSPC.*\n$/)
  })
})
