/**
 * `npm run bench`: the budgets of the house, measured side by side with bare Node and with the peers that are installed.
 * Figures are medians of one run; ratios are to bare Node of the same rounds.
 *
 *   npm run bench                        the tables, and docs/performance.md when --write is given
 *   npm run bench -- --check             compares start-up with the parent commit, and long runs and commands with
 *                                        their budgets; fails past 10 % above the noise
 *   npm run bench -- --check --tolerance 50
 */
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { measureCommands } from "./commands.ts"
import { runJob, type Job } from "./job.ts"
import { measureLong } from "./long.ts"
import { interleaved, median, peakMemory, row, runProcess, type Contestant } from "./measure.ts"
import { compareWithParent } from "./parent.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const launcher = join(root, "bin", "looplane.js")
const node = process.execPath

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    check: { type: "boolean", default: false },
    tolerance: { type: "string", default: "10" },
    write: { type: "boolean", default: false }
  }
})
const rounds = Number(values.rounds)
const tolerance = Number(values.tolerance)
/** Each of them copies fifty megabytes. */
const longRounds = Math.min(rounds, 7)
/** Cheap, and they wander: many. */
const commandRounds = rounds * 4

const introduction = `# Performance

Written by \`npm run bench -- --write\`. Times are of whole processes, except where a line says otherwise; read the ratios,
not the milliseconds: they were measured side by side in one run on a shared machine. The model is a scripted server
without latency. A budget was set on a machine where bare node takes 25 ms and 42 MiB: its ratio to that is in brackets,
and is what to compare with on another machine.
`

const found = (command: string): string | null => {
  try {
    return execFileSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).trim()
  } catch {
    return null
  }
}

const peers: ReadonlyArray<Contestant> = ["codex", "pi", "claude", "opencode"].flatMap((name) => {
  const path = found(name)
  return path === null ? [] : [{ name, argv: [path, "--version"] satisfies [string, ...Array<string>] }]
})

const processTime = async (contestant: Contestant) => (await runProcess(contestant.argv)).ms

const printTable = async () => {
  const bare: Contestant = { name: "bare node", argv: [node, "-e", "0"] }
  const start = await interleaved(
    [
      bare,
      { name: "--version", argv: [node, launcher, "--version"] },
      { name: "--help", argv: [node, launcher, "--help"] },
      ...peers
    ],
    rounds,
    processTime
  )
  const valueOf = (name: string) => median(start.find((sample) => sample.name === name)?.values ?? [])
  const floor = valueOf("bare node")

  const jobs: Array<Job> = []
  for (let round = -1; round < rounds; round++) {
    const job = await runJob(launcher)
    if (round >= 0) jobs.push(job)
  }
  const job = (field: keyof Job) => median(jobs.map((one) => one[field]))
  const bareMemory = await peakMemory((env) =>
    runProcess([node, "-e", "0"], { env: { ...process.env, ...env } })
  )
  const memory = await peakMemory((env) => runJob(launcher, { ...env, LOOPLANE_BENCH_PID: "1" }))

  const lines = [
    `Medians of ${rounds} interleaved rounds, Node ${process.versions.node}, ${cpus().length} cores.`,
    "",
    "| what | bare node | looplane | ratio | budget |",
    "|---|---|---|---|---|",
    row("`--version`", floor, valueOf("--version"), "< 35 ms (1.4x)"),
    row("`--help`", floor, valueOf("--help"), "< 90 ms (3.6x)"),
    row(
      "start to first request on the wire",
      floor,
      job("first_request_ms"),
      "< 200 ms, clone included (8x)"
    ),
    row(
      "time between model requests (one tool)",
      floor,
      job("between_requests_ms"),
      "< 10 ms, journal synced (0.4x)"
    ),
    row("three turns in all", floor, job("total_ms"), "< 400 ms (16x)"),
    row("peak resident memory", bareMemory, memory, "< 110 MiB (2.6x)", "MiB"),
    ...peers.map(({ name }) => row(`\`${name} --version\``, floor, valueOf(name), "peer")),
    "",
    peers.length === 0
      ? "No peer is installed here."
      : `Peers found: ${peers.map(({ name }) => name).join(", ")}.`
  ]
  const long = await measureLong(launcher, longRounds, tolerance)
  const commands = await measureCommands(commandRounds)
  const table = [
    ...lines,
    ...["", "## Long runs", "", long.table],
    ...["", "## Commands in the sandbox", "", commands.table]
  ].join("\n")
  console.log(table)
  if (values.write) {
    writeFileSync(join(root, "docs", "performance.md"), `${introduction}\n${table}\n`)
  }
}

if (values.check) {
  const verdict = await compareWithParent({ root, launcher, rounds, tolerance })
  console.log(verdict.text)
  const long = await measureLong(launcher, longRounds, tolerance)
  console.log(`\n${long.table}`)
  const commands = await measureCommands(commandRounds)
  console.log(`\n${commands.table}`)
  const over = [...long.over, ...commands.over]
  for (const line of over) console.log(`bench: ${line}`)
  process.exitCode = verdict.ok && over.length === 0 ? 0 : 1
} else {
  await printTable()
}
