/**
 * A run of any length that is cut off and can be gone on with: begun by the built command, killed while its model is
 * asked, and its journal lengthened by turns as they look on the wire of a provider, each of which read one file.
 */
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { isKnown, type RunEvent } from "../src/domain/Event.ts"
import { Digest, ToolCallId, type TreeId } from "../src/domain/Ids.ts"
import { decodeEvent, decodeLine, encodeLine } from "../src/domain/JournalCodec.ts"
import { SessionManifest } from "../src/domain/Session.ts"
import { zero } from "../src/domain/Usage.ts"
import { sha256 } from "../src/layers/journal/Hash.ts"
import { makeHome, startCli, type Home } from "../test/support/Cli.ts"
import { gate, gated, startModelServer, turn } from "../test/support/ModelServer.ts"
import { addFix, addRepo } from "../test/support/repos/add.ts"

export interface LongRun extends AsyncDisposable {
  readonly home: Home
  readonly repository: string
  readonly run_id: string
  readonly journal: string
  readonly events: number
  readonly bytes: number
}

/** An answer's bytes as they come from a provider: few of them are the answer. */
const body = (words: string, times: number) =>
  `data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"${words}\\""}}]},"logprobs":null,"finish_reason":null}],"usage":null}\n\n`.repeat(
    times
  )

const source = "export const measure = (left: number, right: number): number => left + right // and so on\n"

/** About four kilobytes an event, six events a turn; two kilobytes of a turn are conversation. */
const turnEvents = (step: number, tree: TreeId): ReadonlyArray<RunEvent> => {
  const who = { step, provider: "openai-compatible", model: "m" } as const
  const text = `Step ${step}. ${"I look at the next file to see where this is used. ".repeat(12)}`
  const call = {
    id: ToolCallId.make(`call_${step}`),
    name: "read_file",
    arguments: { path: `src/module-${step}.ts`, start_line: 1, end_line: 400 }
  }
  return [
    { event_type: "model.requested", data: { ...who, lane: "primary", active_ms: step } },
    {
      event_type: "model.exchanged",
      data: {
        ...who,
        attempt: 1,
        exchange: {
          sent: Digest.make("5".repeat(64)),
          answered_at_ms: 1_764_000_000_000 + step,
          status: 200,
          headers: { "content-type": "text/event-stream", "x-request-id": `req_${step}` },
          body: { encoding: "utf8", text: body(`${step} and more`, 64) },
          pieces: Array.from({ length: 64 }, () => 250),
          fault: null
        }
      }
    },
    {
      event_type: "model.completed",
      data: {
        ...who,
        lane: "primary",
        turn: {
          text,
          reasoning: [],
          tool_calls: [call],
          finish_reason: "tool_use",
          usage: { ...zero, input_tokens: 100, output_tokens: 20 }
        }
      }
    },
    { event_type: "tool.requested", data: { call, effect: "read" } },
    { event_type: "tool.started", data: { tool_call_id: call.id, name: call.name, tree } },
    {
      event_type: "tool.completed",
      data: {
        tool_call_id: call.id,
        name: call.name,
        ok: true,
        content: `${step}: ${source.repeat(14)}`,
        tree
      }
    }
  ]
}

/** Writes events behind what a journal holds, and the head of the manifest. */
const lengthen = (directory: string, events: number) => {
  const file = join(directory, "events.jsonl")
  const lines = (readFileSync(file, "utf8").match(/.*\n/g) ?? []).map((line) => Buffer.from(line))
  const read = lines.map((line) => Result.getOrThrow(decodeLine(line.subarray(0, -1))))
  const tree = read
    .filter(({ event_type }) => event_type === "workspace.prepared")
    .map((envelope) => Result.getOrThrow(decodeEvent(envelope)))
    .flatMap((event) =>
      isKnown(event) && event.event_type === "workspace.prepared" ? [event.data.tree] : []
    )[0]
  if (tree === undefined) throw new Error("the run was killed before it had a workspace")
  // The turn that was cut off is asked again behind all others.
  const kept = lines.slice(
    0,
    read.findLastIndex(({ event_type }) => event_type === "model.requested")
  )
  writeFileSync(file, Buffer.concat(kept))
  let sequence = kept.length - 1
  let previous = sha256(kept.at(-1) ?? new Uint8Array())
  for (let step = 2; sequence + 7 < events; step++) {
    const written: Array<Uint8Array> = []
    for (const event of turnEvents(step, tree)) {
      const header = { sequence: ++sequence, previous, created_at: "2026-01-01T00:00:00.000Z" }
      const { line } = Result.getOrThrow(encodeLine(sha256, header, event))
      previous = sha256(line)
      written.push(line)
    }
    appendFileSync(file, Buffer.concat(written))
  }
  const manifest = join(directory, "session.json")
  const session = Schema.decodeUnknownSync(SessionManifest)(JSON.parse(readFileSync(manifest, "utf8")))
  writeFileSync(manifest, JSON.stringify({ ...session, head: { sequence, hash: previous } }))
  return { journal: file, events: sequence + 1, bytes: statSync(file).size }
}

/** A run that was cut off after at most so many events. */
export const makeLongRun = async (program: string, events: number): Promise<LongRun> => {
  const repo = addRepo()
  const home = makeHome()
  const never = gate()
  const reads = turn({ toolCalls: [{ name: "read_file", arguments: { path: addFix.path } }] })
  const server = await startModelServer([reads, gated(turn({ text: "Done." }), never)])
  const cli = startCli(
    [
      ...["exec", "Fix add.", "-C", repo.root, "--run-root", home.runRoot],
      ...["--no-check", "--max-steps", "100000"],
      ...["--provider", "openai-compatible", "--model", "m", "--api-url", `${server.url}/v1`]
    ],
    { cwd: repo.root, home, env: { OPENAI_API_KEY: "x" }, program }
  )
  await server.received(2)
  cli.signal("SIGKILL", "group")
  await cli.done
  await server.close()
  const [run_id = ""] = readdirSync(home.runRoot)
  return {
    home,
    repository: repo.root,
    run_id,
    ...lengthen(join(home.runRoot, run_id), events),
    [Symbol.asyncDispose]: async () => {
      home.dispose()
      await repo[Symbol.asyncDispose]()
    }
  }
}
