/**
 * The main job against a scripted model on this machine: read, edit, finish. No model latency, so what is left is ours.
 */
import { performance } from "node:perf_hooks"
import { makeHome, type Home } from "../test/support/Cli.ts"
import { startModelServer, turn } from "../test/support/ModelServer.ts"
import { addFix, addRepo } from "../test/support/repos/add.ts"
import { runProcess } from "./measure.ts"

export interface Job {
  /** From the start of the process to the first request on the wire. */
  readonly first_request_ms: number
  /** From a request's answer to the next request, one tool between them. */
  readonly between_requests_ms: number
  readonly total_ms: number
}

/** Runs the job once with a built looplane. `extra` is laid over the environment. */
export const runJob = async (
  launcher: string,
  extra: Readonly<Record<string, string>> = {}
): Promise<Job> => {
  await using home = makeHome()
  return await runJobIn(home, launcher, extra)
}

/** The same in a home that keeps the run. */
export const runJobIn = async (
  home: Home,
  launcher: string,
  extra: Readonly<Record<string, string>> = {}
): Promise<Job> => {
  await using repo = addRepo()
  const arrived: Array<number> = []
  const steps = [
    turn({ toolCalls: [{ name: "read_file", arguments: { path: addFix.path } }] }),
    turn({
      toolCalls: [
        {
          name: "replace_text",
          arguments: { path: addFix.path, old_text: addFix.old_text, new_text: addFix.new_text }
        }
      ]
    }),
    turn({ text: "Done." })
  ]
  await using server = await startModelServer((_request, index) => {
    arrived.push(performance.now())
    return steps[index] ?? turn({ text: "Done." })
  })
  const started = performance.now()
  const ended = await runProcess(
    [
      process.execPath,
      launcher,
      ...["exec", "Fix add.", "-C", repo.root, "--run-root", home.runRoot, "--no-check"],
      ...["--provider", "openai-compatible", "--model", "m", "--api-url", `${server.url}/v1`]
    ],
    { cwd: repo.root, env: { ...home.env, OPENAI_API_KEY: "x", ...extra } }
  )
  if (ended.code !== 0) throw new Error(`the job failed with ${ended.code}:\n${ended.stderr}`)
  const [first = Number.NaN, second = Number.NaN, third = Number.NaN] = arrived
  return {
    first_request_ms: first - started,
    between_requests_ms: third - second,
    total_ms: ended.ms
  }
}
