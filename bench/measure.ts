/**
 * Measures whole processes, side by side: every round runs each contestant once, so that a slow moment of the machine
 * meets all of them.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { performance } from "node:perf_hooks"

export interface Contestant {
  readonly name: string
  readonly argv: readonly [string, ...ReadonlyArray<string>]
}

export interface Sample {
  readonly name: string
  /** One value a round, in the order in which they were measured. */
  readonly values: ReadonlyArray<number>
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

/** Half the distance between the quartiles: how much a single value wanders. */
export const spread = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
  return (at(0.75) - at(0.25)) / 2
}

export interface Ended {
  readonly code: number
  readonly ms: number
  readonly stderr: string
}

/** Runs a process to its end. */
export const runProcess = (
  argv: readonly [string, ...ReadonlyArray<string>],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {}
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const [command, ...args] = argv
    const started = performance.now()
    const child = spawn(command, args, {
      cwd: options.cwd ?? process.cwd(),
      env: options.env ?? process.env,
      stdio: ["ignore", "ignore", "pipe"]
    })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.on("error", reject)
    child.on("close", (code) => resolve({ code: code ?? -1, ms: performance.now() - started, stderr }))
  })

/** Runs each contestant once a round, after one warm-up round. */
export const interleaved = async <A extends { readonly name: string }>(
  contestants: ReadonlyArray<A>,
  rounds: number,
  once: (contestant: A) => Promise<number>
): Promise<ReadonlyArray<Sample>> => {
  const values = new Map<string, Array<number>>(contestants.map(({ name }) => [name, []]))
  for (let round = -1; round < rounds; round++) {
    for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
      const value = await once(contestant)
      if (round >= 0) values.get(contestant.name)?.push(value)
    }
  }
  return contestants.map(({ name }) => ({ name, values: values.get(name) ?? [] }))
}

/** A line of a table: what is measured, beside what it is measured against. */
export const row = (what: string, floor: number, ours: number, budget: string, unit = "ms") => {
  const digits = floor < 20 ? 1 : 0
  const ratio = ours / floor
  const allowed = Number(/\(?([\d.]+)x\)?$/.exec(budget)?.[1] ?? Number.POSITIVE_INFINITY)
  // A few hundredths are noise.
  const verdict = ratio > allowed * 1.03 ? `${budget}: **over**` : budget
  return `| ${what} | ${floor.toFixed(digits)} ${unit} | ${ours.toFixed(digits)} ${unit} | ${ratio.toFixed(2)}x | ${verdict} |`
}

/**
 * Written into the process that is measured. Where the kernel says it, the peak is that of the program alone: the other
 * count begins with the memory of the process that it was forked from.
 */
const hookOf = (report: string) => `const fs = require("node:fs")
const own = process.argv[1] ?? ""
const peak = () => {
  try {
    return Number(/^VmHWM:\\s+(\\d+) kB$/m.exec(fs.readFileSync("/proc/self/status", "utf8"))[1])
  } catch {
    return process.resourceUsage().maxRSS
  }
}
process.on("exit", () => {
  if (process.env.LOOPLANE_BENCH_PID === undefined || own.endsWith("looplane.js"))
    fs.writeFileSync(${JSON.stringify(report)}, String(peak()))
})
`

/** Peak resident memory of a Node process in MiB, reported by the process itself when it ends. */
export const peakMemory = async (
  run: (env: Readonly<Record<string, string>>) => Promise<unknown>
): Promise<number> => {
  const place = mkdtempSync(join(tmpdir(), "looplane-bench-"))
  try {
    const report = join(place, "rss")
    const hook = join(place, "rss.cjs")
    writeFileSync(hook, hookOf(report))
    await run({ NODE_OPTIONS: `--require=${hook}` })
    return Number(readFileSync(report, "utf8")) / 1024
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}
