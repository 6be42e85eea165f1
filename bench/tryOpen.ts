import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { cpSync, rmSync } from "node:fs"
import { performance } from "node:perf_hooks"
const [src, home, run, count] = process.argv.slice(2)
const Store = await import(`${src}/layers/journal/Store.ts`)
const { RunStore } = await import(`${src}/services/RunStore.ts`)
rmSync(`${home}/copy`, { recursive: true, force: true })
cpSync(`${home}/runs/${run}`, `${home}/copy/${run}`, { recursive: true })
const platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)
const rss0 = process.memoryUsage().rss
for (let i = 0; i < Number(count ?? 1); i++) {
const cpu0 = process.cpuUsage()
const t = performance.now()
let out: any
await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
  const store: any = yield* RunStore as any
  out = yield* store.open(run, { accept_loss: false, continuing: false })
  const state = yield* out.journal.state
  if (state.conversation.length < 1000) throw new Error("short")
})).pipe(Effect.provide(Store.layer({ run_root: `${home}/copy` }).pipe(Layer.provideMerge(platform)))) as any)
const cpu = process.cpuUsage(cpu0)
console.log(`open ${(performance.now() - t).toFixed(0)} ms, cpu user ${(cpu.user/1000).toFixed(0)} sys ${(cpu.system/1000).toFixed(0)} ms, rss ${(rss0/2**20).toFixed(0)} -> ${(process.resourceUsage().maxRSS/1024).toFixed(0)}`)
}
