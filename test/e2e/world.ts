/**
 * A repository, a home and a scripted model in which a run is cut off and gone on with.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  watch,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert } from "vitest"
import {
  makeHome,
  startCli,
  type CliOptions,
  type CliResult,
  type Home,
  type RunningCli
} from "../support/Cli.ts"
import { assertUntouched, snapshotTree } from "../support/Leaks.ts"
import { startModelServer, type ModelServer, type Script, type Step } from "../support/ModelServer.ts"
import { assertReplays } from "../support/replay.ts"
import type { Repo } from "../support/Repo.ts"
import { addFix, addRepo } from "../support/repos/add.ts"
import { isRecord } from "../support/wire/types.ts"
import { call, calls, checkArgs, providerArgs, says, type ProviderName } from "./support.ts"

export const fixAt = (path: string) =>
  call("replace_text", { path, old_text: addFix.old_text, new_text: addFix.new_text })
export const fix = fixAt(addFix.path)
export const look = call("read_file", { path: addFix.path })
/** Two tools in two turns, and an answer. */
export const story = [calls(look), calls(fix), says("It subtracted.")]

/** How many turns of the model a request's history holds. */
const turnsIn = (json: unknown): number => {
  const messages = isRecord(json) && Array.isArray(json["messages"]) ? json["messages"] : []
  return messages.filter((message) => isRecord(message) && message["role"] === "assistant").length
}

/** Answers by how far the conversation has come, whoever asks and however often; `once` goes before. */
export const byTurn = (
  steps: ReadonlyArray<Step>,
  once: ReadonlyMap<number, Step> = new Map(),
  before: (turn: number) => void = () => {}
): Script => {
  const left = new Map(once)
  return (request) => {
    const turn = turnsIn(request.json)
    before(turn)
    const first = left.get(turn)
    left.delete(turn)
    return first ?? steps[turn]
  }
}

export interface WorldOptions {
  readonly repo?: Repo
  readonly provider?: ProviderName
  /** Laid over the home's environment for every command. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Absent: the home's. */
  readonly runRoot?: (home: Home) => string
  /** The test takes the repository away or changes it. */
  readonly repoMayChange?: boolean
}

export interface World extends AsyncDisposable {
  readonly repo: Repo
  readonly home: Home
  readonly server: ModelServer
  readonly runRoot: string
  /** Starts `exec` on the repository. */
  readonly exec: (
    args?: ReadonlyArray<string>,
    options?: { readonly directory?: string; readonly cli?: Partial<CliOptions> }
  ) => RunningCli
  /** Any other command, with the run root. */
  readonly looplane: (args: ReadonlyArray<string>, cli?: Partial<CliOptions>) => Promise<CliResult>
  /** Kills the run, as nothing else does, when request number `count` has arrived. Fails when it ends before. */
  readonly killedAt: (running: RunningCli, count: number, signal?: NodeJS.Signals) => Promise<CliResult>
  /** Directories of runs, the oldest first. */
  readonly runs: () => ReadonlyArray<string>
  /** The newest run's directory. */
  readonly directory: () => string
}

/** Makes a world. Its repository is seen to be untouched in the end, unless it may change. */
export const world = async (script: Script, options: WorldOptions = {}): Promise<World> => {
  const repo = options.repo ?? addRepo()
  const home = makeHome()
  const server = await startModelServer(script)
  const runRoot = options.runRoot?.(home) ?? home.runRoot
  const env = { OPENAI_API_KEY: "x", ANTHROPIC_API_KEY: "x", ...options.env }
  const before = snapshotTree(repo.root)
  const runs = () =>
    existsSync(runRoot)
      ? readdirSync(runRoot)
          .toSorted()
          .map((name) => join(runRoot, name))
      : []
  return {
    repo,
    home,
    server,
    runRoot,
    exec: (args = checkArgs, { cli, directory } = {}) =>
      startCli(
        [
          ...["exec", "Fix add.", "-C", directory ?? repo.cwd, "--run-root", runRoot],
          ...[...providerArgs(server, options.provider), ...args]
        ],
        { cwd: home.folder, home, runRoots: [runRoot], ...cli, env: { ...env, ...cli?.env } }
      ),
    looplane: (args, cli) =>
      startCli([...args, "--run-root", runRoot], {
        ...{ cwd: home.folder, home, runRoots: [runRoot], ...cli },
        env: { ...env, ...cli?.env }
      }).done,
    killedAt: async (running, count, signal = "SIGKILL") => {
      const early = running.done.then((result) => {
        throw new Error(`the run ended before request ${count}: ${result.stderr}`)
      })
      await Promise.race([server.received(count), early])
      early.catch(() => undefined)
      running.signal(signal, signal === "SIGKILL" ? "group" : "process")
      return running.done
    },
    runs,
    directory: () => runs().at(-1) ?? "",
    [Symbol.asyncDispose]: async () => {
      try {
        if (options.repoMayChange !== true) assertUntouched(before, snapshotTree(repo.root))
      } finally {
        await server.close()
        home.dispose()
        await repo[Symbol.asyncDispose]()
      }
    }
  }
}

/** One line of ours that matches, after whatever progress there was, and no stack. */
export const assertOneLine = ({ stderr }: CliResult, says: RegExp) => {
  const lines = stderr.trimEnd().split("\n")
  assert.lengthOf(
    lines.filter((line) => line.startsWith("looplane:")),
    1,
    stderr
  )
  assert.match(lines.at(-1) ?? "", says)
  assertNoStack(stderr)
}

export const assertNoStack = (stderr: string) =>
  assert.notMatch(stderr, /^\s+at |internal error|unhandled|EPIPE/im, stderr)

/** Resolves when a file is there. */
export const appears = async (file: string): Promise<void> => {
  const there = Promise.withResolvers<void>()
  const look = () => {
    if (existsSync(file)) there.resolve()
  }
  const watcher = watch(dirname(file), look)
  look()
  await there.promise
  watcher.close()
}

/** A run that ended as it would have without the interruption, and that plays again with it. */
export const assertVerified = async (it: World, result: CliResult) => {
  assert.strictEqual(result.code, 0, result.stderr)
  assert.strictEqual(result.json()["terminal_reason"], "verified")
  assert.deepStrictEqual(result.leftovers(), [])
  assert.deepStrictEqual(it.server.violations, [])
  assert.deepStrictEqual(it.server.unexpected, [])
  await assertReplays(it.runRoot)
}

export const readJson = (file: string): Readonly<Record<string, unknown>> => {
  const value: unknown = JSON.parse(readFileSync(file, "utf8"))
  return isRecord(value) ? value : {}
}

/** Changes one line of a bundle's journal or puts one in front of it, and makes chain and head follow. */
export const rechain = (
  directory: string,
  at: number,
  change: (entry: Readonly<Record<string, unknown>>) => ReadonlyArray<Readonly<Record<string, unknown>>>
) => {
  const file = join(directory, "events.jsonl")
  const old = readFileSync(file, "utf8").split("\n").slice(0, -1)
  const entries = old.flatMap((line, index) => {
    const value: unknown = JSON.parse(line)
    const entry = isRecord(value) ? value : {}
    return index === at ? change(entry) : [entry]
  })
  let previous = "0".repeat(64)
  const lines = entries.map((entry, sequence) => {
    const line = `${JSON.stringify({ ...entry, sequence, previous })}\n`
    previous = createHash("sha256").update(line).digest("hex")
    return line
  })
  writeFileSync(file, lines.join(""))
  const manifest = join(directory, "session.json")
  const head = { sequence: lines.length - 1, hash: previous }
  writeFileSync(manifest, `${JSON.stringify({ ...readJson(manifest), head }, null, 2)}\n`)
}

export interface Mount extends Disposable {
  readonly at: string
  /** Leaves no byte free. */
  readonly fill: () => void
  /** Takes the filling away again. */
  readonly empty: () => void
  readonly readOnly: (closed: boolean) => void
}

/** A small file system of its own; null where this user may not mount one, and then that is said. */
export const mountSmall = (at: string, size = "2m"): Mount | null => {
  mkdirSync(at, { recursive: true })
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=700`, "tmpfs", at], { stdio: "ignore" })
  } catch {
    console.log(`no file system can be mounted here, so ${at} is not tried`)
    return null
  }
  return {
    at,
    fill: () => {
      const { bavail, bsize } = statfsSync(at)
      writeFileSync(join(at, "filler"), Buffer.alloc(bavail * bsize))
    },
    empty: () => rmSync(join(at, "filler")),
    readOnly: (closed) => void execFileSync("mount", ["-o", closed ? "remount,ro" : "remount,rw", at]),
    [Symbol.dispose]: () => void execFileSync("umount", ["-l", at])
  }
}
