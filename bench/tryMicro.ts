import { readFileSync } from "node:fs"
import { isAscii } from "node:buffer"
import { hash, createHash } from "node:crypto"
import { decodeLine, decodeEvent, mayRefer } from "../src/domain/JournalCodec.ts"
import { Result } from "effect"
import { makeCollector } from "../src/layers/journal/Collect.ts"
const all = readFileSync(process.argv[2]!)
const lines: Buffer[] = []
for (let from = 0; ;) { const to = all.indexOf(10, from); if (to < 0) break; lines.push(all.subarray(from, to)); from = to + 1 }
const u8 = new Uint8Array(all.buffer, all.byteOffset, all.length)
const dec = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
let texts: string[] = lines.map((l) => dec.decode(l)); const values = texts.map((t) => JSON.parse(t))
const envs = lines.map((l) => Result.getOrThrow(decodeLine(l)))
const events: any[] = envs.map((e) => Result.getOrThrow(decodeEvent(e as any)))
let sink: any
const cpu = () => { const c = process.cpuUsage(); return (c.user + c.system) / 1000 }
const tests: Record<string, () => void> = {
  "indexOf u8": () => { let n = 0; for (let from = 0; ;) { const to = u8.indexOf(10, from); if (to < 0) break; n++; from = to + 1 } sink = n },
  "indexOf buf": () => { let n = 0; for (let from = 0; ;) { const to = all.indexOf(10, from); if (to < 0) break; n++; from = to + 1 } sink = n },
  "mayRefer u8": () => { for (const l of lines) sink = mayRefer(new Uint8Array(l.buffer, l.byteOffset, l.length)) },
  "mayRefer buf": () => { for (const l of lines) sink = mayRefer(l) },
  "decode td": () => { for (const l of lines) sink = dec.decode(l) },
  "isAscii": () => { for (const l of lines) sink = isAscii(l) },
  "latin1Slice": () => { for (const l of lines) sink = l.latin1Slice() },
  "utf8Slice": () => { for (const l of lines) sink = l.utf8Slice() },
  "JSON.parse": () => { for (const t of texts) sink = JSON.parse(t) },
  "decodeLine": () => { for (const l of lines) sink = decodeLine(l) },
  "decodeEvent": () => { for (const l of envs) sink = decodeEvent(l as any) },
  "hash": () => { for (const l of lines) sink = hash("sha256", l, "hex") },
  "createHash": () => { for (const l of lines) sink = createHash("sha256").update(l).digest("hex") },
  "collect": () => { const c = makeCollector(); for (const e of events) c.add(e); sink = c.state() },
}
const best = new Map<string, number>()
for (let r = 0; r < 5; r++) for (const [k, f] of Object.entries(tests)) { const t = cpu(); f(); const d = cpu() - t; if (r === 0) console.log("first", k, d.toFixed(0)); else best.set(k, Math.min(best.get(k) ?? 1e9, d)) }
for (const [k, v] of best) console.log(k.padEnd(14), v.toFixed(1))
