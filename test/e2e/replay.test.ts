import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, type Home } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { isRecord } from "../support/wire/types.ts"
import { call, calls, checkArgs, execOn, says, type ProviderName } from "./support.ts"

const read = call("read_file", { path: addFix.path })
const fix = call("replace_text", {
  path: addFix.path,
  old_text: addFix.old_text,
  new_text: addFix.new_text
})
const fixing = [calls(read, call("read_file", { path: "README.md" })), calls(fix), says("It subtracted.")]

/** A recorded run whose server is gone: its directory, and the repository that it was for. */
const recorded = async (
  home: Home,
  options: { readonly provider?: ProviderName; readonly prompt?: string } = {}
) => {
  await using repo = addRepo()
  await using ran = await execOn(
    repo,
    fixing,
    [...checkArgs, "--run-root", home.runRoot],
    { ...options, cli: { home } }
  )
  assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
  const directory = join(home.runRoot, String(ran.json["run_id"]))
  return { directory, events: ran.events().length, run_id: String(ran.json["run_id"]), repository: repo.root }
}

const looplane = (home: Home, ...args: ReadonlyArray<string>) => runCli(args, { cwd: home.folder, home })

/** A fixture of a run, parsed, with what a test may do to it. */
const fixtureOf = async (home: Home, run: string) => {
  const file = join(home.folder, "fixture.json")
  await using made = await looplane(
    home,
    "bundle",
    run,
    "--as-fixture",
    "-o",
    file,
    "--force",
    "--run-root",
    home.runRoot
  )
  assert.strictEqual(made.code, 0, made.stderr)
  return { file, made }
}

/** Writes a fixture in which one event's data is another text, and plays it. */
const playChanged = async (home: Home, file: string, from: string, to: string, type: string) => {
  const value: unknown = JSON.parse(readFileSync(file, "utf8"))
  assert.isTrue(isRecord(value) && Array.isArray(value["entries"]))
  const entries: ReadonlyArray<unknown> = isRecord(value) && Array.isArray(value["entries"]) ? value["entries"] : []
  let changed = -1
  const next = entries.map((entry, index) => {
    if (changed >= 0 || !isRecord(entry) || !isRecord(entry["event"]) || entry["event"]["event_type"] !== type)
      return entry
    const event = JSON.stringify(entry["event"])
    if (!event.includes(from)) return entry
    changed = index
    return { ...entry, event: JSON.parse(event.replaceAll(from, to)) as unknown }
  })
  assert.isAtLeast(changed, 0, `no ${type} holds ${from}`)
  const other = join(home.folder, "changed.json")
  writeFileSync(other, JSON.stringify({ ...(isRecord(value) ? value : {}), entries: next }))
  const result = await looplane(home, "replay", other, "--output", "json")
  const { difference } = result.json()
  return { changed, result, difference: isRecord(difference) ? difference : {} }
}

describe("looplane replay", () => {
  it.each<ProviderName>(["openai-compatible", "anthropic", "ollama"])(
    "plays a run of %s again without its server, and writes nothing",
    async (provider) => {
      await using home = makeHome()
      const run = await recorded(home, { provider })
      const before = snapshotTree(home.runRoot)
      await using result = await looplane(home, "replay", "last", "--run-root", home.runRoot)
      assert.strictEqual(result.code, 0, result.stdout + result.stderr)
      assert.strictEqual(result.stdout, `replayed: ${run.events} events agree\n`)
      assertUntouched(before, snapshotTree(home.runRoot))
      assert.deepStrictEqual(result.leftovers(), [])
    }
  )

  it("plays a bundle that was moved, under any name", async () => {
    await using home = makeHome()
    await using elsewhere = makeHome()
    const run = await recorded(home)
    const moved = join(elsewhere.folder, "some bundle")
    for (const name of ["events.jsonl", "request.json", "session.json", "blobs"])
      cpSync(join(run.directory, name), join(moved, name), { recursive: true })
    await using result = await looplane(elsewhere, "replay", "./some bundle")
    assert.strictEqual(result.stdout, `replayed: ${run.events} events agree\n`, result.stderr)
    assert.strictEqual(result.code, 0)
  })

  it("refuses in one line what is nothing to play", async () => {
    await using home = makeHome()
    writeFileSync(join(home.folder, "other.json"), '{"format":"else"}')
    writeFileSync(
      join(home.folder, "later.json"),
      '{"format":"looplane-recording","version":2}'
    )
    writeFileSync(
      join(home.folder, "empty.json"),
      '{"format":"looplane-recording","version":1,"run_id":"r","entries":[]}'
    )
    const refusals = [
      ["nobody", /^looplane: no run nobody /],
      ["other.json", /^looplane: .*other\.json is no recording/],
      ["later.json", /^looplane: .*version 2/],
      ["empty.json", /^looplane: .*no sound recording/]
    ] as const
    for (const [argument, line] of refusals) {
      await using result = await looplane(home, "replay", argument)
      assert.strictEqual(result.code, 2, argument)
      assert.match(result.stderr, line)
      assert.match(result.stderr, /^[^\n]*\n$/)
    }
  })
})

describe("a portable recording", () => {
  it("is a private file without the repository's path, and plays on another machine", async () => {
    await using home = makeHome()
    await using elsewhere = makeHome()
    const run = await recorded(home)
    const { file, made } = await fixtureOf(home, run.run_id.slice(0, -2))
    assert.strictEqual(made.stdout, "")
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    const text = readFileSync(file, "utf8")
    assert.notInclude(text, run.repository)
    assert.notInclude(text, home.folder)
    assert.deepStrictEqual(
      readdirSync(home.folder).filter((name) => name.includes(".tmp")),
      []
    )
    await using result = await looplane(elsewhere, "replay", file, "--output", "json")
    assert.strictEqual(result.code, 0, result.stdout)
    assert.deepInclude(result.json(), {
      agrees: true,
      run_id: run.run_id,
      events: run.events,
      agreed_events: run.events,
      difference: null
    })
    // The same run is the same file.
    const { file: again } = await fixtureOf(home, "last")
    assert.strictEqual(readFileSync(again, "utf8"), text)
  })

  it("keeps a path that somebody said, says so, and still plays", async () => {
    await using home = makeHome()
    await using repo = addRepo()
    await using ran = await execOn(repo, fixing, [...checkArgs, "--run-root", home.runRoot], {
      prompt: `Fix add in ${repo.root}.`,
      cli: { home }
    })
    assert.strictEqual(ran.json["terminal_reason"], "verified")
    const { file, made } = await fixtureOf(home, "last")
    assert.match(made.stderr, new RegExp(`note: \\d+ of them name ${repo.root}`))
    await using result = await looplane(home, "replay", file)
    assert.strictEqual(result.code, 0, result.stdout)
  })

  it("never replaces a file unless it is told to", async () => {
    await using home = makeHome()
    await recorded(home)
    const file = join(home.folder, "kept.json")
    writeFileSync(file, "mine")
    const args = ["bundle", "last", "--as-fixture", "-o", file, "--run-root", home.runRoot]
    await using refused = await looplane(home, ...args)
    assert.strictEqual(refused.code, 2)
    assert.match(refused.stderr, /^looplane: .*kept\.json is there already: --force replaces it\n$/)
    assert.strictEqual(readFileSync(file, "utf8"), "mine")
    await using forced = await looplane(home, ...args, "--force")
    assert.strictEqual(forced.code, 0, forced.stderr)
    assert.include(readFileSync(file, "utf8"), '"looplane-recording"')
    await using nowhere = await looplane(home, ...args.slice(0, 4), join(home.folder, "no", "such"), ...args.slice(5))
    assert.strictEqual(nowhere.code, 1)
    assert.isFalse(existsSync(join(home.folder, "no")))
    await using formless = await looplane(home, "bundle", "last", "-o", file)
    assert.strictEqual(formless.code, 2)
    assert.include(formless.stderr, "--as-fixture")
  })

  it("that was changed stops at the first event that is not what it became", async () => {
    await using home = makeHome()
    await recorded(home)
    const { file } = await fixtureOf(home, "last")
    const value: unknown = JSON.parse(readFileSync(file, "utf8"))
    const types = (isRecord(value) && Array.isArray(value["entries"]) ? value["entries"] : []).map((entry) =>
      isRecord(entry) && isRecord(entry["event"]) ? String(entry["event"]["event_type"]) : ""
    )
    {
      // A byte of a model's answer: the bytes are played as they are, the turn that they become is another one.
      const { changed, difference, result } = await playChanged(
        home,
        file,
        "It subtracted.",
        "It Subtracted.",
        "model.exchanged"
      )
      await using _ = result
      assert.strictEqual(result.code, 1)
      assert.strictEqual(difference["sequence"], changed + 1)
      assert.strictEqual(types[changed + 1], "model.completed")
      assert.deepStrictEqual(difference["paths"], ["data.turn.text"])
      await using shown = await looplane(home, "replay", join(home.folder, "changed.json"))
      assert.strictEqual(shown.code, 1)
      assert.include(shown.stdout, `differs from event ${changed + 1} on (model.completed)`)
      assert.match(shown.stdout, /data\.turn\.text\n {4}recorded: "It subtracted\."\n {4}played: {3}"It Subtracted\."\n/)
    }
    {
      // What a tool said is part of the next request: its digest gives the change away.
      const { changed, difference, result } = await playChanged(
        home,
        file,
        "left - right",
        "left % right",
        "tool.completed"
      )
      await using _ = result
      assert.strictEqual(result.code, 1)
      assert.strictEqual(difference["sequence"], types.indexOf("model.exchanged", changed))
      assert.deepStrictEqual(difference["paths"], ["data.exchange.sent"])
    }
    {
      // A check that would have failed makes another run.
      const { changed, difference, result } = await playChanged(
        home,
        file,
        '"verdict":"passed"',
        '"verdict":"failed"',
        "verification.completed"
      )
      await using _ = result
      assert.strictEqual(result.code, 1)
      assert.isAbove(Number(difference["sequence"]), changed)
    }
  })
})

describe("sessions --replay", () => {
  it("tells the story; --replay-json is the same for a copy of the bundle", async () => {
    await using home = makeHome()
    await using elsewhere = makeHome()
    const run = await recorded(home)
    const root = ["--run-root", home.runRoot]
    await using story = await looplane(home, "sessions", "--replay", "last", ...root)
    assert.strictEqual(story.code, 0, story.stderr)
    assert.match(
      story.stdout,
      /^status: {2}verified\nmodel: {3}openai-compatible\/m\ntask: {4}Fix add\.\nsummary: It subtracted\.\n\nturn 1:\n/
    )
    assert.match(story.stdout, /^ +0 +\+0\.000s {2}run\.created +m$/m)
    assert.match(story.stdout, /^ +\d+ +\+\d+\.\d{3}s {2}run\.ended +verified$/m)

    await using json = await looplane(home, "sessions", "--replay-json", run.run_id, ...root)
    assert.strictEqual(json.code, 0, json.stderr)
    const state = json.json()
    assert.deepInclude(state, {
      schema_version: 1,
      first_sequence: 0,
      last_sequence: run.events - 1,
      event_count: run.events,
      run_id: run.run_id,
      completed_turn_ids: ["turn-1"],
      terminal_event_type: "run.ended"
    })
    cpSync(run.directory, join(elsewhere.runRoot, "copy"), { recursive: true })
    await using copy = await looplane(
      elsewhere,
      "sessions",
      "--replay-json",
      join(elsewhere.runRoot, "copy")
    )
    assert.strictEqual(copy.stdout, json.stdout)
  })

  it("excludes the other things that can be asked of a run", async () => {
    await using home = makeHome()
    for (const other of ["--show", "--fork-from-event", "--replay-json"]) {
      await using result = await looplane(home, "sessions", "--replay", "a", other, "b")
      assert.strictEqual(result.code, 2)
      assert.match(result.stderr, /^looplane: --\S+ and --\S+ exclude each other: give one of them\n$/)
    }
  })
})
