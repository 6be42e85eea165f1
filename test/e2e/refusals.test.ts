import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { makeHome, runCli } from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { gitEnvironment } from "../support/Repo.ts"
import { addRepo } from "../support/repos/add.ts"
import { checkArgs } from "./support.ts"

const model = ["--provider", "openai-compatible", "--model", "m", "--api-url", "http://127.0.0.1:9/v1"]
const env = { OPENAI_API_KEY: "x" }

/** Runs a command line that must be refused: exit 2, one line that names the fault, nothing created. */
const refused = async (
  args: ReadonlyArray<string>,
  says: RegExp,
  options: {
    readonly cwd: string
    readonly env?: Readonly<Record<string, string | undefined>>
    readonly stdin?: string
  }
) => {
  await using home = makeHome()
  const result = await runCli(args, {
    cwd: options.cwd,
    home,
    env: { ...env, ...options.env },
    ...(options.stdin === undefined ? {} : { stdin: { text: options.stdin } })
  })
  const shown = `${args.join(" ")}\n${result.stderr}`
  assert.strictEqual(result.code, 2, shown)
  assert.match(result.stderr, says, shown)
  assert.strictEqual(result.stderr.trimEnd().split("\n").length, 1, `one line, not:\n${result.stderr}`)
  assert.strictEqual(result.stdout, "", shown)
  assert.deepStrictEqual(readdirSync(home.runRoot), [], shown)
  assert.isFalse(existsSync(join(home.folder, "state", "looplane")), shown)
  assert.deepStrictEqual(result.leftovers(), [])
}

describe("bad input is one line, exit 2, and nothing is created", () => {
  it.each<readonly [string, ReadonlyArray<string>, RegExp]>([
    ["no model", ["exec", "Fix.", ...checkArgs], /--model/],
    ["bad URL", ["exec", "Fix.", ...checkArgs, "--model", "m", "--api-url", "not a url"], /URL/i],
    [
      "URL with credentials",
      ["exec", "Fix.", ...checkArgs, "--model", "m", "--api-url", "https://a:b@example.com/v1"],
      /credential|user/i
    ],
    [
      "http on a foreign host",
      ["exec", "Fix.", ...checkArgs, "--model", "m", "--api-url", "http://example.com/v1"],
      /https/
    ],
    [
      "a custom host of a native provider",
      [
        "exec",
        "Fix.",
        ...checkArgs,
        "--provider",
        "anthropic",
        "--model",
        "m",
        "--api-url",
        "https://example.com"
      ],
      /--allow-custom-provider-endpoint|ANTHROPIC_API_KEY/
    ],
    ["unknown provider", ["exec", "Fix.", ...checkArgs, "--provider", "nope", "--model", "m"], /nope/],
    [
      "provider of a later version",
      ["exec", "Fix.", ...checkArgs, "--provider", "gemini", "--model", "m"],
      /gemini is not in this version/
    ],
    ["unknown flag", ["exec", "Fix.", ...checkArgs, ...model, "--frobnicate"], /--frobnicate/],
    ["misspelt flag", ["exec", "Fix.", "--chekc", "x", ...model], /--chekc.*--check/],
    ["empty prompt", ["exec", "  ", ...checkArgs, ...model], /prompt is empty/],
    ["a mistyped command", ["aply", ...model], /did you mean apply/],
    ["a mistyped command with a word behind it", ["sesions", "last"], /did you mean sessions/],
    [
      "no number for a number",
      ["exec", "Fix.", ...checkArgs, ...model, "--max-steps", "many"],
      /takes a number/
    ],
    ["no file of a receipt", ["receipt", "check", "gone.json"], /there is no file .*gone\.json/],
    ["no file of a recording", ["replay", "gone.json"], /there is no file .*gone\.json/],
    ["no prompt", ["exec", ...checkArgs, ...model], /prompt is needed/],
    ["prompt twice", ["exec", "a", "--task", "b", ...checkArgs, ...model], /given twice/],
    ["missing directory", ["exec", "Fix.", "-C", "no/such/place", ...checkArgs, ...model], /no\/such\/place/],
    [
      "unparsable check",
      ["exec", "Fix.", "--check", "node 'x", "--unsafe-local-exec", ...model],
      /quote is not closed/
    ],
    [
      "shell operator in a check",
      ["exec", "Fix.", "--check", "npm test && npm run lint", "--unsafe-local-exec", ...model],
      /repeat --check, or use sh -c/
    ],
    ["no check", ["exec", "Fix.", "--unsafe-local-exec", ...model], /no check was declared.*npm test/],
    ["check and no check", ["exec", "Fix.", ...checkArgs, "--no-check", ...model], /exclude each other/],
    [
      "checks without leave",
      ["exec", "Fix.", "--check", "node --test", "--no-sandbox-checks", ...model],
      /add --unsafe-local-exec/
    ],
    [
      "set-up without leave",
      ["exec", "Fix.", "--no-check", "--setup", "npm ci", "--no-sandbox-checks", ...model],
      /add --unsafe-local-exec/
    ],
    ["no steps", ["exec", "Fix.", ...checkArgs, ...model, "--max-steps", "0"], /--max-steps/],
    ["no number", ["exec", "Fix.", ...checkArgs, ...model, "--max-steps", "many"], /max-steps/],
    ["unknown commit", ["exec", "Fix.", ...checkArgs, ...model, "--base-sha", "deadbeef"], /deadbeef/],
    [
      "bad allowed path",
      ["exec", "Fix.", ...checkArgs, ...model, "--allowed-path", "../up"],
      /--allowed-path/
    ],
    [
      "bad fallback",
      ["exec", "Fix.", ...checkArgs, ...model, "--fallback-model", "justamodel"],
      /provider\/model/
    ],
    [
      "two providers",
      ["exec", "Fix.", ...checkArgs, "--provider", "anthropic", "--model", "ollama/x"],
      /two providers/
    ],
    ["unknown output", ["exec", "Fix.", ...checkArgs, ...model, "--output", "xml"], /output/],
    [
      "later flag",
      ["exec", "Fix.", ...checkArgs, ...model, "--dangerous"],
      /--dangerous is not in this version/
    ],
    ["later command", ["auth", "list"], /"auth" is not in this version/],
    ["prompt with a dash", ["exec", "-x marks it", ...checkArgs, ...model], /no flag -x; .* behind --/],
    [
      "flag twice",
      ["exec", "Fix.", ...checkArgs, ...model, "--model", "n"],
      /--model is given more than once/
    ],
    [
      "no dependencies there",
      ["exec", "Fix.", ...checkArgs, ...model, "--deps", "no/such"],
      /--deps "no\/such"/
    ],
    [
      "a run root that can be none",
      ["exec", "Fix.", ...checkArgs, ...model, "--run-root", "/dev/null/runs"],
      /no run can be kept there: .*--run-root/
    ],
    ["no rows", ["sessions", "--limit", "0"], /--limit/],
    ["an empty directory", ["exec", "Fix.", ...checkArgs, ...model, "-C", ""], /--cd is empty/],
    ["an empty run root", ["sessions", "--run-root", ""], /--run-root is empty/],
    ["an empty run", ["resume", ""], /<run> is empty/]
  ])("%s", async (_, args, says) => {
    await using repo = addRepo()
    const before = snapshotTree(repo.root)
    await refused(args, says, { cwd: repo.root })
    assertUntouched(before, snapshotTree(repo.root))
  })

  it("a run root inside the repository, also through a symlink", async () => {
    await using repo = addRepo()
    await refused(
      ["exec", "Fix.", ...checkArgs, ...model, "--run-root", join(repo.root, "runs")],
      /inside the repository/,
      { cwd: repo.root }
    )
    const link = mkdtempSync(join(tmpdir(), "looplane-link-"))
    try {
      symlinkSync(repo.root, join(link, "repo"))
      await refused(
        ["exec", "Fix.", ...checkArgs, ...model, "--run-root", join(link, "repo", "runs")],
        /inside the repository/,
        { cwd: repo.root }
      )
    } finally {
      rmSync(link, { recursive: true })
    }
  })

  it("a missing key, named by its variable", async () => {
    await using repo = addRepo()
    await refused(
      ["exec", "Fix.", ...checkArgs, "--provider", "anthropic", "--model", "m"],
      /ANTHROPIC_API_KEY/,
      { cwd: repo.root }
    )
    await refused(["exec", "Fix.", ...checkArgs, "--model", "m"], /OPENAI_API_KEY/, {
      cwd: repo.root,
      env: { OPENAI_API_KEY: undefined }
    })
  })

  it("an empty prompt on stdin", async () => {
    await using repo = addRepo()
    await refused(["exec", "-", ...checkArgs, ...model], /prompt is empty/, { cwd: repo.root, stdin: "\n" })
  })

  it("a NUL character in the prompt", async () => {
    await using repo = addRepo()
    await refused(["exec", "-", ...checkArgs, ...model], /NUL/, { cwd: repo.root, stdin: "a\0b" })
  })

  it("a place that is no repository, or one without a commit, or a bare one, or the inside of .git", async () => {
    const place = mkdtempSync(join(tmpdir(), "looplane-places-"))
    try {
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", [...args], { cwd: place, env: gitEnvironment(place) })
      mkdirSync(join(place, "plain"))
      git("init", "-q", "unborn")
      git("init", "-q", "--bare", "bare.git")
      await refused(
        ["exec", "Fix.", "-C", join(place, "plain"), ...checkArgs, ...model],
        /not.*git repository/i,
        { cwd: place }
      )
      await refused(["exec", "Fix.", "-C", join(place, "unborn"), ...checkArgs, ...model], /no commit/i, {
        cwd: place
      })
      await refused(
        ["exec", "Fix.", "-C", join(place, "bare.git"), ...checkArgs, ...model],
        /bare|work tree/i,
        { cwd: place }
      )
      await refused(
        ["exec", "Fix.", "-C", join(place, "unborn", ".git"), ...checkArgs, ...model],
        /\.git|work tree/i,
        { cwd: place }
      )
    } finally {
      rmSync(place, { recursive: true })
    }
  })

  it("a configuration that cannot be read", async () => {
    await using repo = addRepo({ files: { "broken.json": '{"provder": "anthropic"}\n' } })
    await refused(["exec", "Fix.", ...checkArgs, ...model], /provder/, {
      cwd: repo.root,
      env: { LOOPLANE_CONFIG: join(repo.root, "broken.json") }
    })
    assert.isTrue(existsSync(join(repo.root, "broken.json")))
  })
})

describe("command lines that users of the reference know", () => {
  const file = new URL("../../../shared/cases/cli-lines.txt", import.meta.url)
  const lines = existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line.startsWith("looplane"))
    : []
  it("parse, or one line names what replaces them", async () => {
    console.log(lines.length === 0 ? "handed cases: absent" : `handed cases: ${lines.length} run`)
    await using repo = addRepo()
    for (const line of lines) {
      const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map((match) => match[1] ?? match[2] ?? "").slice(1)
      const args = words.map((word) => (word.startsWith("/") ? repo.root : word))
      // Nothing listens there, and no model is set: a line that parses is refused for that, and for nothing else.
      await using result = await runCli(args, {
        cwd: repo.root,
        env: { LOOPLANE_API_URL: "http://127.0.0.1:9/v1" }
      })
      if (args[0] === "sessions") {
        assert.strictEqual(result.code, 0, line)
        continue
      }
      assert.strictEqual(result.code, 2, `${line}\n${result.stderr}`)
      assert.strictEqual(result.stderr.trimEnd().split("\n").length, 1, `${line}\n${result.stderr}`)
      assert.match(
        result.stderr,
        /is not in this version|there are no runs in|no model is set|a prompt is needed|--unsafe-local-exec|its program/,
        line
      )
    }
  })
})
