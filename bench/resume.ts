/**
 * `looplane resume` of a run that was cut off, up to its next request.
 */
import { cpSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { startCli } from "../test/support/Cli.ts"
import type { LongRun } from "./longRun.ts"

export interface Resumed {
  /** From the start of the process until the run is its own again: locked, read, checked and folded. */
  readonly open_ms: number
  /** From the start of the process to the first request on the wire. */
  readonly first_request_ms: number
}

const answer = [
  { index: 0, delta: { role: "assistant", content: "Done." }, finish_reason: null },
  { index: 0, delta: {}, finish_reason: "stop" }
]
  .map(
    (choice) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [choice] })}\n\n`
  )
  .join("")

/** A model that understands nothing, so that its own work is not measured. */
const startModel = async () => {
  const first = Promise.withResolvers<number>()
  const server = createServer((request, response) => {
    first.resolve(performance.now())
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end(`${answer}data: [DONE]\n\n`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("the server has no port")
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    first: first.promise,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    }
  }
}

/** Goes on with a copy of a run, to its end. `extra` is laid over the environment. */
export const resumeOnce = async (
  program: string,
  run: LongRun,
  extra: Readonly<Record<string, string>> = {}
): Promise<Resumed> => {
  const runRoot = join(run.home.folder, "resumed")
  rmSync(runRoot, { recursive: true, force: true })
  cpSync(run.home.runRoot, runRoot, { recursive: true })
  await using model = await startModel()
  const started = performance.now()
  await using cli = startCli(["resume", run.run_id, "--run-root", runRoot, "--api-url", model.url], {
    cwd: run.repository,
    home: run.home,
    env: { OPENAI_API_KEY: "x", ...extra },
    program
  })
  const opened = cli.stderrLine(/^going on after step/).then(() => performance.now() - started)
  const arrived = Promise.race([model.first, cli.done.then(() => null)])
  const [open_ms, ended] = await Promise.all([opened, cli.done])
  const at = await arrived
  if (at === null || ended.code !== 0)
    throw new Error(`the resumed run ended with ${ended.code}:\n${ended.stderr}`)
  return { open_ms, first_request_ms: at - started }
}
