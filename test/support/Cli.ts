import { spawn, type ChildProcess } from "node:child_process"
import { performance } from "node:perf_hooks"
import type { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import { makeHome, type Home } from "./Home.ts"
import { isRecord } from "./wire/types.ts"

export { makeHome, type Home } from "./Home.ts"

export interface CliOptions {
  readonly cwd: string
  /** Laid over the isolated environment; `undefined` takes a variable out. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Runs that belong together share one. Absent: a fresh one, which goes with the run when that is disposed. */
  readonly home?: Home
  /** `pipe-open` never ends; a string is written and ends. Absent: `ignore`. */
  readonly stdin?: "ignore" | "pipe-open" | { readonly text: string }
  /** When it resolves, the signal is sent; when it rejects, the run is killed and the result rejects with its cause. */
  readonly signalAfter?: Promise<unknown>
  /** Absent: SIGINT. */
  readonly signal?: NodeJS.Signals
  /** `group`: as a terminal's Ctrl-C, to every process of the run's group. Absent: only to the command. */
  readonly signalTo?: "process" | "group"
  /** Folders outside the home whose locks and processes count as the run's, such as a `--run-root` of the test's own. */
  readonly runRoots?: ReadonlyArray<string>
  /** After this the whole run is killed and the result rejects. Milliseconds; 60,000 when absent. */
  readonly timeoutMs?: number
  /** The command line that starts the command, when a shell or a limit is to stand around it. */
  readonly through?: (command: readonly [string, ...ReadonlyArray<string>]) => ReadonlyArray<string>
  /** The script that the current Node runs. Absent: `bin/looplane.js` of this repository. */
  readonly program?: string
}

export interface CliResult extends AsyncDisposable {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly durationMs: number
  readonly home: Home
  /** stdout as exactly one JSON object; fails with what was printed when it is not one. */
  readonly json: () => Readonly<Record<string, unknown>>
  /** stdout as one JSON object a line. */
  readonly jsonLines: () => ReadonlyArray<Readonly<Record<string, unknown>>>
  /** What the run has left behind, one readable line each. */
  readonly leftovers: () => ReadonlyArray<string>
}

export interface RunningCli extends AsyncDisposable {
  readonly pid: number
  readonly home: Home
  /** The first line, earlier ones included, that holds. Rejects when the run ends without one. */
  readonly stderrLine: (holds: RegExp | ((line: string) => boolean)) => Promise<string>
  readonly stdoutLine: (holds: RegExp | ((line: string) => boolean)) => Promise<string>
  readonly signal: (signal?: NodeJS.Signals, to?: "process" | "group") => void
  readonly write: (text: string) => void
  readonly closeStdin: () => void
  /** Stops reading: whatever the command writes there from now on meets a closed pipe. */
  readonly closeStdout: () => void
  /** Resolves when the command has ended and its output is closed. */
  readonly done: Promise<CliResult>
}

const launcher = fileURLToPath(new URL("../../bin/looplane.js", import.meta.url))

const parseObject = (text: string, what: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // Reported below together with the text.
  }
  throw new Error(`${what} is not one JSON object:\n${text}`)
}

/** Collects a stream's text and lets callers wait for one of its lines. */
const watch = (stream: Readable | null, name: string) => {
  let text = ""
  let ended = false
  const waiting = new Set<{
    readonly holds: (line: string) => boolean
    readonly found: PromiseWithResolvers<string>
  }>()
  const look = () => {
    const lines = text.split("\n")
    if (!ended) lines.pop()
    for (const each of waiting) {
      const line = lines.find(each.holds)
      if (line === undefined && !ended) continue
      waiting.delete(each)
      if (line !== undefined) each.found.resolve(line)
      else each.found.reject(new Error(`${name} ended without the line; it was:\n${text}`))
    }
  }
  stream?.setEncoding("utf8")
  stream?.on("data", (part: string) => {
    text += part
    look()
  })
  return {
    text: () => text,
    end: () => {
      ended = true
      look()
    },
    line: (holds: RegExp | ((line: string) => boolean)): Promise<string> => {
      const found = Promise.withResolvers<string>()
      found.promise.catch(() => undefined)
      waiting.add({ holds: typeof holds === "function" ? holds : (line) => holds.test(line), found })
      look()
      return found.promise
    }
  }
}

const send = (child: ChildProcess, signal: NodeJS.Signals, to: "process" | "group") => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(to === "group" ? -child.pid : child.pid, signal)
  } catch {
    // It ended between the look and the signal.
  }
}

/** Starts the built command in its own process group and does not wait for it. */
export const startCli = (args: ReadonlyArray<string>, options: CliOptions): RunningCli => {
  const home = options.home ?? makeHome()
  const env = Object.fromEntries(
    Object.entries({ ...home.env, ...options.env }).filter(([, value]) => value !== undefined)
  )
  const started = performance.now()
  const command = [process.execPath, options.program ?? launcher, ...args] as const
  const [program = "", ...rest] = options.through?.(command) ?? command
  const child = spawn(program, rest, {
    cwd: options.cwd,
    env,
    detached: true,
    stdio: [options.stdin === undefined || options.stdin === "ignore" ? "ignore" : "pipe", "pipe", "pipe"]
  })
  const stdout = watch(child.stdout, "stdout")
  const stderr = watch(child.stderr, "stderr")
  // A command that does not read its input closes the pipe; that is no fault of the test.
  child.stdin?.on("error", () => undefined)
  if (typeof options.stdin === "object") child.stdin?.end(options.stdin.text)

  const killAll = () => {
    send(child, "SIGKILL", "group")
    home.kill()
  }
  let failure: unknown
  const done = new Promise<CliResult>((resolve, reject) => {
    const limit = options.timeoutMs ?? 60_000
    let late = false
    const safety = setTimeout(() => {
      late = true
      killAll()
    }, limit)
    child.once("error", (cause) => {
      clearTimeout(safety)
      reject(cause)
    })
    child.once("close", (code, signal) => {
      clearTimeout(safety)
      stdout.end()
      stderr.end()
      if (failure !== undefined) {
        reject(failure)
        return
      }
      if (late) {
        const tail = (text: string) => text.slice(-2000)
        const told = `stdout:\n${tail(stdout.text())}\nstderr:\n${tail(stderr.text())}`
        reject(new Error(`the command did not end within ${limit} ms and was killed\n${told}`))
        return
      }
      resolve({
        code,
        signal,
        stdout: stdout.text(),
        stderr: stderr.text(),
        durationMs: performance.now() - started,
        home,
        json: () => parseObject(stdout.text(), "stdout"),
        jsonLines: () =>
          stdout
            .text()
            .split("\n")
            .filter((line) => line !== "")
            .map((line, at) => parseObject(line, `line ${at + 1} of stdout`)),
        leftovers: () => home.leftovers(options.runRoots),
        [Symbol.asyncDispose]: async () => {
          if (options.home === undefined) home.dispose()
        }
      })
    })
  })
  const signal = (name: NodeJS.Signals = "SIGINT", to: "process" | "group" = "process") =>
    send(child, name, to)
  options.signalAfter?.then(
    () => signal(options.signal, options.signalTo),
    (cause: unknown) => {
      failure = cause ?? new Error("signalAfter was rejected")
      killAll()
    }
  )
  return {
    pid: child.pid ?? -1,
    home,
    stderrLine: stderr.line,
    stdoutLine: stdout.line,
    signal,
    write: (text) => void child.stdin?.write(text),
    closeStdin: () => void child.stdin?.end(),
    closeStdout: () => void child.stdout?.destroy(),
    done,
    [Symbol.asyncDispose]: async () => {
      killAll()
      const result = await done.catch(() => undefined)
      await result?.[Symbol.asyncDispose]()
      if (options.home === undefined) home.dispose()
    }
  }
}

/** Runs the built command to its end. */
export const runCli = (args: ReadonlyArray<string>, options: CliOptions): Promise<CliResult> =>
  startCli(args, options).done
