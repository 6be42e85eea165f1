import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { runCli } from "../support/Cli.ts"
import { stall } from "../support/ModelServer.ts"
import { calls, checkArgs, says } from "./support.ts"
import { assertNoStack, assertVerified, byTurn, fix, world, type World } from "./world.ts"

/** A shell line around the command, which is `"$@"` in it. */
const shell = (line: string) => (command: ReadonlyArray<string>) => ["sh", "-c", line, "sh", ...command]

/** A pipeline that begins with the command, and how the command itself ended. */
const piped = (it: World, into: string) => {
  const file = join(it.home.folder, `status-${pipes++}`)
  return {
    through: shell(`{ "$@"; echo $? > ${file}; } | ${into}`),
    code: () => readFileSync(file, "utf8").trim()
  }
}
let pipes = 0

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
      const result: unknown = JSON.parse(readFileSync(join(directory, "result.json"), "utf8"))
      assert.deepInclude(result, { terminal_reason: "verified" })
      assert.isTrue(existsSync(join(directory, "receipt.json")))
    }
    assert.deepStrictEqual(first.leftovers(), [])
  })
})
