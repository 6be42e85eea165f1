/**
 * What a long history costs: going on with it, adding to it, taking it over, playing it again.
 */
import { execFileSync } from "node:child_process"
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { makeHome } from "../test/support/Cli.ts"
import { floorScript } from "./floor.ts"
import { decodeGrowth, type Growth } from "./growthReport.ts"
import { runJobIn } from "./job.ts"
import { makeLongRun, type LongRun } from "./longRun.ts"
import { median, peakMemory, row, runProcess, type Contestant } from "./measure.ts"
import { resumeOnce, type Resumed } from "./resume.ts"

const node = process.execPath
const growthScript = fileURLToPath(new URL("growth.ts", import.meta.url))

/** Fifty megabytes: more events than the ten thousand of the budget, and a conversation of four megabytes, which is
 * what the largest models take. */
const events = 13_400
/** Pairs of a comparison within one process, which costs little. */
const pairs = 40

/** The budgets of a machine where bare node takes 25 ms and 42 MiB. */
const budget = { resume: 1000 / 25, memoryMiB: 150 } as const

export interface LongReport {
  readonly table: string
  /** What is over its budget, one line each. */
  readonly over: ReadonlyArray<string>
}

const growthOf = (run: LongRun): Growth => {
  const runRoot = join(run.home.folder, "growing")
  rmSync(runRoot, { recursive: true, force: true })
  cpSync(run.home.runRoot, runRoot, { recursive: true })
  return decodeGrowth(
    execFileSync(node, [growthScript, runRoot, run.run_id, String(pairs)], { encoding: "utf8" })
  )
}

export const measureLong = async (
  launcher: string,
  rounds: number,
  tolerance: number
): Promise<LongReport> => {
  await using run = await makeLongRun(launcher, events)
  await using home = makeHome()
  await runJobIn(home, launcher)
  const processes: ReadonlyArray<Contestant> = [
    { name: "bare", argv: [node, "-e", "0"] },
    { name: "floor", argv: [node, "-e", floorScript, run.journal] },
    { name: "replay", argv: [node, launcher, "replay", "last", "--run-root", home.runRoot] }
  ]
  const times = new Map<string, Array<number>>(processes.map(({ name }) => [name, []]))
  const resumed: Array<Resumed> = []
  for (let round = -1; round < rounds; round++) {
    const once = await resumeOnce(launcher, run)
    if (round >= 0) resumed.push(once)
    for (const { argv, name } of processes) {
      const { code, ms, stderr } = await runProcess(argv, { env: { ...process.env, ...home.env } })
      if (code !== 0) throw new Error(`${name} ended with ${code}:\n${stderr}`)
      if (round >= 0) times.get(name)?.push(ms)
    }
  }
  const valueOf = (name: string) => median(times.get(name) ?? [])
  const resume = (field: keyof Resumed) => median(resumed.map((one) => one[field]))
  const bareMemory = await peakMemory((env) =>
    runProcess([node, "-e", "0"], { env: { ...process.env, ...env } })
  )
  const memory = await peakMemory((env) => resumeOnce(launcher, run, { ...env, LOOPLANE_BENCH_PID: "1" }))
  const { append, fork } = growthOf(run)

  const megabytes = (run.bytes / 1e6).toFixed(0)
  const many = run.events.toLocaleString("en")
  const table = [
    `A run that was cut off after ${many} events: a journal of ${megabytes} MB, most of it the bytes of answers, and a conversation`,
    `of four megabytes. Medians of ${rounds} interleaved rounds; an event and a fork are measured on the store alone, in ${pairs} pairs.`,
    "",
    "| what | beside | looplane | ratio | budget |",
    "|---|---|---|---|---|",
    row(
      "`resume`, until the run is open, beside bare node that reads, parses and hashes the journal",
      valueOf("floor"),
      resume("open_ms"),
      ""
    ),
    row(
      "`resume`, to the next request on the wire, beside bare node",
      valueOf("bare"),
      resume("first_request_ms"),
      `< 1 s (${budget.resume}x)`
    ),
    row(
      "`resume`, peak resident memory, beside bare node",
      bareMemory,
      memory,
      `< ${budget.memoryMiB} MiB`,
      "MiB"
    ),
    row(`one event and its barrier as event ${many}, beside event 1`, append.short, append.long, "1x"),
    row(`a fork at event ${many}, beside one at event 10`, fork.short, fork.long, "1x"),
    row("`replay` of the three turns, beside bare node", valueOf("bare"), valueOf("replay"), "")
  ].join("\n")

  const allowed = 1 + tolerance / 100
  const slow = resume("first_request_ms") / valueOf("bare")
  const grows = (what: string, { noise, ratio }: Growth["append"]) =>
    ratio > allowed && ratio - 1 > noise
      ? [
          `${what} of a long run costs ${ratio.toFixed(2)}x what it costs in a short one (noise ${noise.toFixed(2)})`
        ]
      : []
  return {
    table,
    over: [
      ...(slow > budget.resume * allowed
        ? [
            `resume takes ${slow.toFixed(0)}x bare node to its next request, and ${budget.resume}x is the budget`
          ]
        : []),
      ...(memory > budget.memoryMiB
        ? [`resume takes ${memory.toFixed(0)} MiB, and ${budget.memoryMiB} are the budget`]
        : []),
      ...grows("an event", append),
      ...grows("a fork", fork)
    ]
  }
}
