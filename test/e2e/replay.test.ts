import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { makeHome, runCli, type Home } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { stall } from "../support/ModelServer.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { resealed } from "../support/recording.ts"
import { isRecord } from "../support/wire/types.ts"
import { call, calls, checkArgs, execOn, says, type ProviderName } from "./support.ts"
import { assertVerified, byTurn, story, world } from "./world.ts"

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

/**
 * Writes a fixture whose first event of a type that holds a text holds another one, with hashes that fit it unless that is
 * what nobody did. Returns that event's sequence.
 */
const change = (file: string, other: string, type: string, from: string, to: string, seal = true): number => {
  const entries = entriesIn(file)
  const at = entries.findIndex(({ event }) => {
    const text = JSON.stringify(event)
    return text.includes(`"event_type":${JSON.stringify(type)}`) && text.includes(from)
  })
  assert.isAtLeast(at, 0, `no ${type} holds ${from}`)
  const before = JSON.stringify(entries[at])
  const all = JSON.stringify(JSON.parse(readFileSync(file, "utf8")))
  const changed = all.replace(before, () => before.replaceAll(from, to))
  writeFileSync(other, seal ? JSON.stringify(resealed(JSON.parse(changed))) : changed)
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
    writeFileSync(join(home.folder, "later.json"), '{"format":"looplane-recording","version":3}')
    writeFileSync(join(home.folder, "earlier.json"), '{"format":"looplane-recording","version":1}')
    const empty = { format: "looplane-recording", version: 2, run_id: "r", entries: [] }
    writeFileSync(join(home.folder, "empty.json"), JSON.stringify(resealed(empty)))
    const refusals = [
      ["nobody", /^looplane: no run nobody /],
      ["a\nb\u001b[2J", /^looplane: no run "a\\nb\\u001b\[2J" /],
      ["other.json", /^looplane: .*other\.json: it is no recording/],
      ["later.json", /^looplane: .*version 3, and this looplane knows version 2/],
      ["earlier.json", /^looplane: .*version 1, whose events carry no hashes/],
      ["empty.json", /^looplane: .*empty\.json: it is no sound recording/]
    ] as const
    for (const [argument, line] of refusals) {
      await using result = await looplane(home, "replay", argument)
      assert.strictEqual(result.code, 2, argument)
      assert.match(result.stderr, line)
      assert.match(result.stderr, /^[^\n]*\n$/)
    }
  })
})

describe("looplane bundle", () => {
  it("writes nothing into a run, its own or another one, and nothing below the run root", async () => {
    await using home = makeHome()
    const { directory } = await recorded(home)
    const away = join(home.folder, "away")
    cpSync(directory, away, { recursive: true })
    symlinkSync(away, join(home.folder, "led"))
    const before = snapshotTree(home.folder)
    for (const [run, file] of [
      ["last", join(directory, "events.jsonl")],
      ["last", join(directory, "new.json")],
      ["last", join(directory, "blobs", "x.json")],
      ["last", join(home.runRoot, "x.json")],
      ["last", join(away, "events.jsonl")],
      ["last", join(home.folder, "led", "session.json")],
      [away, join(home.folder, "led", "blobs", "x.json")]
    ] as const) {
      await using made = await looplane(
        home,
        ...["bundle", run, "--as-fixture", "--force", "-o", file, "--run-root", home.runRoot]
      )
      assert.strictEqual(made.code, 2, file)
      assert.match(
        made.stderr,
        /^looplane: [^\n]* (is a run's own directory|is where runs are kept)[^\n]*\n$/
      )
    }
    assertUntouched(before, snapshotTree(home.folder))
  })
})

describe("looplane replay of a run", () => {
  it("of the first version of the store is refused, and its timeline is there", async () => {
    await using home = makeHome()
    cpSync(fileURLToPath(new URL("../fixtures/store-v1/", import.meta.url)), home.runRoot, {
      recursive: true
    })
    const root = ["--run-root", home.runRoot]
    const file = join(home.folder, "carried.json")
    await using carried = await looplane(home, "bundle", "every-event", "--as-fixture", "-o", file, ...root)
    assert.strictEqual(carried.code, 0, carried.stderr)
    for (const run of ["every-event", "last", file]) {
      await using refused = await looplane(home, "replay", run, ...root)
      assert.strictEqual(refused.code, 2, run)
      assert.strictEqual(refused.stdout, "")
      assert.strictEqual(
        refused.stderr,
        "looplane: run every-event cannot be repeated: runs of store version 1 do not hold what a replay needs; " +
          "looplane sessions --replay every-event shows its timeline\n"
      )
    }
    await using told = await looplane(home, "sessions", "--replay", "every-event", ...root)
    assert.strictEqual(told.code, 0, told.stderr)
  })

  it.each<ProviderName>(["openai-compatible", "anthropic"])(
    "whose model wrote the key of %s into a file agrees, and the key is nowhere in it",
    async (provider) => {
      const key = "sk-test-0123456789abcdef"
      await using home = makeHome()
      await using repo = addRepo()
      const noting = call("create_file", { path: "KEY.md", content: `It is "${key}".\n` })
      await using ran = await execOn(repo, [calls(noting), ...fixing], checkArgs, {
        provider,
        cli: { home, env: { OPENAI_API_KEY: key, ANTHROPIC_API_KEY: key } }
      })
      assert.strictEqual(ran.json["terminal_reason"], "verified", ran.result.stderr)
      assert.include(ran.readArtifact("patch"), 'It is "[redacted]".')
      assert.notInclude(ran.readArtifact("events"), key)
      await using result = await looplane(home, "replay", "last")
      assert.strictEqual(result.stdout, `replayed: ${ran.events().length} events agree\n`)
    }
  )

  it("that was resumed at another endpoint agrees", async () => {
    await using it = await world(byTurn(story, new Map([[1, stall()]])))
    await it.killedAt(it.exec(), 2)
    await using other = await world(byTurn(story))
    const resumed = await it.looplane(["resume", "--api-url", `${other.server.url}/v1`])
    await assertVerified(it, resumed)
    assert.include(String(resumed.json()["notes"]), `the run goes on at ${other.server.url}/v1`)
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
    assert.strictEqual(nowhere.code, 2)
    assert.isFalse(existsSync(join(home.folder, "no")))
    await using formless = await looplane(home, "bundle", "last", "-o", file)
    assert.strictEqual(formless.code, 2)
    assert.include(formless.stderr, "--as-fixture")
  })

  it("replaces nothing but files, and says in one line why there is no place for it", async () => {
    await using home = makeHome()
    await recorded(home)
    const at = (name: string) => join(home.folder, name)
    mkdirSync(at("directory"))
    execFileSync("mkfifo", [at("fifo")])
    writeFileSync(at("file"), "")
    symlinkSync(at("fifo"), at("led"))
    symlinkSync("/dev/stdout", at("stream"))
    const before = snapshotTree(home.folder)
    for (const [name, says] of [
      ["directory", /directory is a directory/],
      ["fifo", /fifo is no regular file/],
      ["led", /led is no regular file/],
      ["stream", /stream leads to \/dev\/stdout: it is not replaced/],
      ["missing/x.json", /missing\/x\.json cannot be written: there is no such file or directory/],
      ["file/x.json", /file\/x\.json cannot be written: something on this path is no directory/],
      ["", /--output/]
    ] as const) {
      const file = name === "" ? "" : at(name)
      await using made = await looplane(
        home,
        ...["bundle", "last", "--as-fixture", "--force", "-o", file, "--run-root", home.runRoot]
      )
      assert.strictEqual(made.code, 2, name)
      assert.match(made.stderr, /^looplane: [^\n]*\n$/)
      assert.match(made.stderr, says)
    }
    assertUntouched(before, snapshotTree(home.folder))
  })

  it("that was changed is refused, and the first event that is not what was recorded is named", async () => {
    await using home = makeHome()
    await recorded(home)
    const { file } = await fixtureOf(home, "last")
    const other = join(home.folder, "changed.json")
    for (const [type, from, to] of [
      ["model.exchanged", "It subtracted.", "It Subtracted."],
      ["patch.collected", "left + right", "left * right"]
    ] as const) {
      const at = change(file, other, type, from, to, false)
      await using result = await looplane(home, "replay", other)
      assert.strictEqual(result.code, 1, result.stderr)
      assert.strictEqual(result.stdout, "")
      assert.match(
        result.stderr,
        new RegExp(`^looplane: .*changed\\.json was changed: event ${at} \\(${type}\\) is not [^\\n]*\\n$`)
      )
    }
    writeFileSync(other, readFileSync(file, "utf8").replace('"Fix add."', '"Fix  add."'))
    await using asked = await looplane(home, "replay", other)
    assert.strictEqual(asked.code, 1)
    assert.match(asked.stderr, /was changed: its request/)
  })

  it("that was changed and given new hashes stops at the first event that is not what it became", async () => {
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
