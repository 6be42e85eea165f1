// The main job from end to end on a small repository with a failing test. Everything is real (clone, tools, edit,
// checks, bundle, HTTP) except the model: its turns were recorded and are replayed by a server on this machine.
import { spawn, spawnSync } from "node:child_process"
import fs from "node:fs"
import http from "node:http"
import os from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const fixture = path.join(root, "scripts", "demo")
const turns = JSON.parse(fs.readFileSync(path.join(fixture, "turns.json"), "utf8"))
const place = fs.mkdtempSync(path.join(os.tmpdir(), "looplane-demo-"))
const repository = path.join(place, "repo")
const runs = path.join(place, "runs")

const git = (...args) => {
  const result = spawnSync("git", ["-C", repository, ...args], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: place, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" }
  })
  if (result.status !== 0) throw new Error(`git ${args.join(" ")}: ${result.stderr || result.error}`)
  return result.stdout
}

fs.cpSync(path.join(fixture, "repo"), repository, { recursive: true })
git("init", "--quiet")
git("add", "--all")
git(
  "-c",
  "user.name=demo",
  "-c",
  "user.email=demo@localhost",
  "commit",
  "--quiet",
  "--message",
  "A bug and its test"
)

/** One recorded turn as the events of an OpenAI-compatible stream. */
const eventsOf = ({ text, tool_calls }, number) => {
  const chunk = (delta, finish_reason = null) => ({
    id: `recorded-${number}`,
    object: "chat.completion.chunk",
    model: "recorded",
    choices: [{ index: 0, delta, finish_reason }]
  })
  return [
    chunk({ role: "assistant", content: text }),
    ...tool_calls.map(({ arguments: args, name }, index) =>
      chunk({
        tool_calls: [
          {
            index,
            id: `call_${number}_${index}`,
            type: "function",
            function: { name, arguments: JSON.stringify(args) }
          }
        ]
      })
    ),
    chunk({}, tool_calls.length > 0 ? "tool_calls" : "stop"),
    {
      ...chunk({}),
      choices: [],
      usage: { prompt_tokens: 900 + 150 * number, completion_tokens: 60, total_tokens: 960 + 150 * number }
    }
  ]
}

let served = 0
const server = http.createServer((request, response) => {
  request.resume().on("end", () => {
    const turn = turns[served]
    served += 1
    if (turn === undefined) return response.writeHead(500).end("the recording is over")
    response.writeHead(200, { "content-type": "text/event-stream" })
    const lines = eventsOf(turn, served).map((event) => `data: ${JSON.stringify(event)}\n\n`)
    response.end(`${lines.join("")}data: [DONE]\n\n`)
  })
})
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))

console.log("looplane demo: a real clone, real tools, a real check. Only the model's turns are recorded.\n")
const args = [
  path.join(root, "bin", "looplane.js"),
  "exec",
  "The discount test fails. Fix the code, not the test.",
  ...["-C", repository, "--run-root", runs, "--check", "node --test", "--unsafe-local-exec"],
  ...["--provider", "openai-compatible", "--model", "recorded", "--output", "text"],
  ...["--api-url", `http://127.0.0.1:${server.address().port}/v1`]
]
const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit"] })
const code = await new Promise((resolve) => child.on("close", resolve))
server.close()

if (code === 0) {
  const [run] = fs.readdirSync(runs)
  const patch = path.join(runs, run, "changes.patch")
  console.log(`\nThe patch, verified, at ${patch}:\n\n${fs.readFileSync(patch, "utf8")}`)
  console.log(
    `The repository is as it was: git status there prints ${JSON.stringify(git("status", "--short"))}.`
  )
  const home = `${path.join(root, "bin", "looplane.js")} apply ${run} --run-root ${runs}`
  console.log(`Take it home with:  ${process.execPath} ${home}`)
}
console.log(`Everything of this demo lies in ${place}: remove it when you have seen enough.`)
process.exitCode = code ?? 1
