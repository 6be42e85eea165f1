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
  options: { readonly provider?: ProviderName; readonly prompt?: (repository: string) => string } = {}
) => {
  await using repo = addRepo()
  await using ran = await execOn(repo, fixing, [...checkArgs, "--run-root", home.runRoot], {
    ...(options.provider === undefined ? {} : { provider: options.provider }),
    ...(options.prompt === undefined ? {} : { prompt: options.prompt(repo.root) }),
    cli: { home }
  })
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

const entriesIn = (file: string): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const value: unknown = JSON.parse(readFileSync(file, "utf8"))
  return isRecord(value) && Array.isArray(value["entries"]) ? value["entries"].filter(isRecord) : []
}

const typesIn = (file: string) =>
  entriesIn(file).map(({ event }) => (isRecord(event) ? String(event["event_type"]) : ""))

/** Writes a fixture whose first event of a type that holds a text holds another one. Returns that event's sequence. */
const change = (file: string, other: string, type: string, from: string, to: string): number => {
  const entries = entriesIn(file)
  const at = entries.findIndex(({ event }) => {
    const text = JSON.stringify(event)
    return text.includes(`"event_type":${JSON.stringify(type)}`) && text.includes(from)
  })
  assert.isAtLeast(at, 0, `no ${type} holds ${from}`)
  const before = JSON.stringify(entries[at])
  const all = JSON.stringify(JSON.parse(readFileSync(file, "utf8")))
  writeFileSync(
    other,
    all.replace(before, () => before.replaceAll(from, to))
  )
  return at
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

  it("refuses in one line what is nothing to play", async () => {
    await using home = makeHome()
    writeFileSync(join(home.folder, "other.json"), '{"format":"else"}')
    writeFileSync(join(home.folder, "later.json"), '{"format":"looplane-recording","version":2}')
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

  it("never replaces a file unless it is told to, and says where somebody said the repository's path", async () => {
    await using home = makeHome()
    const run = await recorded(home, { prompt: (root) => `Fix add in ${root}.` })
    const file = join(home.folder, "kept.json")
    writeFileSync(file, "mine")
    const args = ["bundle", "last", "--as-fixture", "-o", file, "--run-root", home.runRoot]
    await using refused = await looplane(home, ...args)
    assert.strictEqual(refused.code, 2)
    assert.match(refused.stderr, /^looplane: .*kept\.json is there already: --force replaces it\n$/)
    assert.strictEqual(readFileSync(file, "utf8"), "mine")
    await using forced = await looplane(home, ...args, "--force")
    assert.strictEqual(forced.code, 0, forced.stderr)
    assert.match(
      forced.stderr,
      new RegExp(`^note: \\d+ of them name ${run.repository}, as it was said then$`, "m")
    )
    await using played = await looplane(home, "replay", file)
    assert.strictEqual(played.stdout, `replayed: ${run.events} events agree\n`, played.stderr)
    await using nowhere = await looplane(
      home,
      ...args.slice(0, 4),
      join(home.folder, "no", "such"),
      ...args.slice(5)
    )
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
    const types = typesIn(file)
    const other = join(home.folder, "changed.json")
    const played = async (...options: ReadonlyArray<string>) => {
      await using result = await looplane(home, "replay", other, ...options)
      assert.strictEqual(result.code, 1, result.stdout)
      return result
    }
    const differs = async () => {
      const { difference } = (await played("--output", "json")).json()
      return isRecord(difference) ? difference : {}
    }

    // A byte of a model's answer: it is played as it is, and the turn that it becomes is another one.
    const answer = change(file, other, "model.exchanged", "It subtracted.", "It Subtracted.")
    assert.strictEqual(types[answer + 1], "model.completed")
    assert.deepInclude(await differs(), { sequence: answer + 1, paths: ["data.turn.text"] })
    const { stdout } = await played()
    assert.include(stdout, `differs from event ${answer + 1} on (model.completed)`)
    assert.match(
      stdout,
      /data\.turn\.text\n {4}recorded: "It subtracted\."\n {4}played: {3}"It Subtracted\."\n/
    )

    // What a tool said goes out with the next request, whose digest gives the change away.
    const said = change(file, other, "tool.completed", "left - right", "left % right")
    assert.deepInclude(await differs(), {
      sequence: types.indexOf("model.exchanged", said),
      paths: ["data.exchange.sent"]
    })

    // A check that would have failed makes another run.
    const check = change(file, other, "verification.completed", '"verdict":"passed"', '"verdict":"failed"')
    assert.isAbove(Number((await differs())["sequence"]), check)
  })
})

describe("sessions --replay", () => {
  it("tells the story; --replay-json is the same for a moved bundle, which plays as well", async () => {
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
    await using copy = await looplane(elsewhere, "sessions", "--replay-json", join(elsewhere.runRoot, "copy"))
    assert.strictEqual(copy.stdout, json.stdout)
    await using played = await looplane(elsewhere, "replay", "./runs/copy")
    assert.strictEqual(played.stdout, `replayed: ${run.events} events agree\n`, played.stderr)
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
