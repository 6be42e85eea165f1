/**
 * What a sandbox costs a command: the same one, bare and contained, by turns. The command does nothing, so that what is
 * measured is ours.
 */
import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { findBackend } from "../src/layers/sandbox/Backends.ts"
import { layerHost } from "../src/layers/sandbox/Host.ts"
import { Sandbox, type CommandPlace } from "../src/services/Sandbox.ts"
import { interleaved, median, runProcess } from "./measure.ts"

/** What a sandbox may add to a command: 15 ms where bare node takes 25. */
const budget = 15 / 25

const budgetText = `< 15 ms (${budget}x)`
const bubblewrapName = "bubblewrap"
const nodeName = "bare node"
const bareName = "the process alone"

interface Contestant {
  readonly name: string
  readonly once: () => Promise<unknown>
}

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layerSecureRandom)

const contestants = Effect.fnUntraced(function* (folder: string) {
  const at = (...names: ReadonlyArray<string>) => join(folder, ...names)
  for (const name of ["clone", "source/node_modules", "home"]) mkdirSync(at(name), { recursive: true })
  writeFileSync(at("source/node_modules/index.js"), "")
  const plain: CommandPlace = { root: at("clone"), at: at("source"), writable: [at("home")], layers: [] }
  const layered: CommandPlace = {
    ...plain,
    layers: [{ from: at("source/node_modules"), path: "node_modules" }]
  }
  const services = yield* Effect.context()
  const through = (sandbox: Sandbox["Service"], place: CommandPlace) => () =>
    Effect.runPromiseWith(services)(
      sandbox.run({
        argv: ["true"],
        place,
        directory: "",
        env: {},
        network: "none",
        timeout_ms: 30_000,
        max_output_bytes: 1000
      })
    )
  const host = yield* Effect.provide(Sandbox, layerHost)
  const all: Array<Contestant> = [
    { name: nodeName, once: () => runProcess([process.execPath, "-e", "0"]) },
    { name: bareName, once: () => runProcess(["true"]) },
    { name: "on this machine, nothing around it", once: through(host, plain) }
  ]
  const missing: Array<string> = []
  for (const backend of ["bubblewrap", "landlock"] as const) {
    const { proof, sandbox } = yield* findBackend({
      backend,
      cache_root: at("cache"),
      hidden: [],
      read_roots: [],
      own: []
    })
    if (sandbox === null) {
      missing.push(`${backend} is not measured: ${proof._tag === "NotProved" ? proof.reason : ""}`)
      continue
    }
    all.push({ name: backend, once: through(sandbox, plain) })
    if (sandbox.overlays)
      all.push({ name: `${backend}, dependencies shown`, once: through(sandbox, layered) })
  }
  return { all, missing }
})

/** A table of medians, and the lines of what is over its budget. */
export const measureCommands = async (rounds: number) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "looplane-bench-")))
  try {
    const { all, missing } = await Effect.runPromise(Effect.provide(contestants(folder), platform))
    const samples = await interleaved(all, rounds, async ({ once }) => {
      const started = performance.now()
      await once()
      return performance.now() - started
    })
    const medianOf = (name: string) => median(samples.find((sample) => sample.name === name)?.values ?? [])
    const bare = medianOf(bareName)
    const node = medianOf(nodeName)
    const rows = all.map(({ name }) => {
      const ms = medianOf(name)
      const added = ms - bare
      const share = added / node
      const contained = name !== nodeName && name !== bareName
      const verdict = share > budget ? `${budgetText}: **over**` : budgetText
      return {
        name,
        share,
        text: `| ${name} | ${ms.toFixed(1)} ms | ${(ms / bare).toFixed(2)}x | ${contained ? `${added.toFixed(1)} ms (${share.toFixed(2)}x)` : ""} | ${name === bubblewrapName ? verdict : ""} |`
      }
    })
    return {
      table: [
        "| a command that does nothing | median | beside the process alone | added (beside bare node) | budget |",
        "|---|---|---|---|---|",
        ...rows.map(({ text }) => text),
        "",
        ...missing
      ].join("\n"),
      over: rows
        .filter(({ name, share }) => name === bubblewrapName && share > budget)
        .map(
          ({ share }) =>
            `bubblewrap adds ${share.toFixed(2)}x of bare node to a command, more than ${budgetText}`
        )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
