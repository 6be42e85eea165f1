import { cpSync, readFileSync, rmSync, mkdtempSync, symlinkSync } from "node:fs"
import { spawn } from "node:child_process"
import { performance } from "node:perf_hooks"
import { createServer } from "node:http"
import { runProcess, median } from "./measure.ts"
// node tryResume.ts HOMEFOLDER REPO RUN rounds launcher...
const [home, repo, run, rounds, ...launchers] = process.argv.slice(2)
const floorTimes: number[] = []
const res: Record<string, {t:number[], m:number[], o:number[], a:number[]}> = {}
const hwm = (pid: number) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024
for (let r = -1; r < Number(rounds); r++) {
  const f = await runProcess([process.execPath, "bench/floor.mjs", `${home}/runs/${run}/events.jsonl`])
  if (r >= 0) floorTimes.push(f.ms)
  for (const l of launchers) {
    rmSync(`${home}/copy`, { recursive: true, force: true })
    cpSync(`${home}/runs/${run}`, `${home}/copy/${run}`, { recursive: true })
    let arrived = () => {}
    const first = new Promise<object>((res) => { arrived = () => res({}) })
    const srv = createServer((req, resp) => { arrived(); req.resume().on("end", () => { resp.writeHead(200, { "content-type": "text/event-stream" }); resp.end('data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Done."},"finish_reason":null}]}\n\ndata: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n') }) })
    await new Promise<void>((r) => srv.listen(0, "127.0.0.1", () => r()))
    const server = { url: `http://127.0.0.1:${(srv.address() as any).port}`, received: (_: number) => first, close: async () => { srv.closeAllConnections(); srv.close() } }
    const t0 = performance.now()
    const child = spawn(process.execPath, [l, "resume", run!, "--run-root", `${home}/copy`, "--api-url", `${server.url}/v1`], { cwd: repo!, stdio: ["ignore", "ignore", process.env["V"] ? "inherit": "ignore"], env: { PATH: process.env["PATH"]!, HOME: `${home}/home`, XDG_CACHE_HOME: "/work/main/node_modules/.cache/looplane-tests", TMPDIR: `${home}/tmp`, OPENAI_API_KEY: "x" , ...(process.env["NODE_OPTIONS2"] ? {NODE_OPTIONS: process.env["NODE_OPTIONS2"]} : {})} })
    let opened = 0, atOpen = 0
    const before = readFileSync(`${home}/copy/${run}/session.json`, "utf8")
    const poll = setInterval(() => { if (opened === 0 && readFileSync(`${home}/copy/${run}/session.json`, "utf8") !== before) { opened = performance.now() - t0; try { atOpen = hwm(child.pid!) } catch {} } }, 5)
    const done = new Promise((res) => child.on("exit", res))
    const got = await Promise.race([server.received(1), done])
    const t = performance.now() - t0
    clearInterval(poll)
    const m = typeof got === "object" && child.pid ? hwm(child.pid) : NaN
    const code = await done
    if (code !== 0 && r < 0) console.log("exit", code)
    await server.close()
    if (r >= 0) { const e = (res[l] ??= {t:[],m:[],o:[],a:[]}); e.t.push(t); e.m.push(m); e.o.push(opened); e.a.push(atOpen); const c = (process as any).x }
  }
}
console.log("floor", median(floorTimes).toFixed(0), floorTimes.map((x) => x.toFixed(0)).join(" "))
for (const [l, { t, m, o, a }] of Object.entries(res)) console.log(l, "wire", median(t).toFixed(0), "opened", median(o).toFixed(0), "ratio", (median(t)/median(floorTimes)).toFixed(2), "HWM at open", median(a).toFixed(0), "HWM", median(m).toFixed(0), t.map((x) => x.toFixed(0)).join(" "))
process.exit(0)
