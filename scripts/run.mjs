// `node scripts/run.mjs TASK [ARGS]`: every npm script goes through here, so that each works as the first command in a
// fresh clone and on a machine whose own Node is too old: install when needed, build when needed, then the tool.
import { spawn } from "node:child_process"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { ensureBuilt, ensureDependencies, root, SetupError, toolNode } from "./setup.mjs"

/** The script behind a package's command, so that it runs under our Node and not under the one its first line finds. */
const tool = (name, command = name) => {
  const directory = path.join(root, "node_modules", name)
  const { bin } = JSON.parse(fs.readFileSync(path.join(directory, "package.json"), "utf8"))
  return path.join(directory, typeof bin === "string" ? bin : bin[command])
}

const script = (file) => path.join(root, file)

// Each task is a list of command lines for our Node; `args` are what the caller added.
const tasks = {
  build: { steps: (args) => [[script("scripts/build.mjs"), ...args]] },
  schema: { built: true, steps: (args) => [[script("scripts/schema.mjs"), ...args]] },
  lint: { steps: (args) => [[tool("oxlint"), "--type-aware", "--deny-warnings", ...args]] },
  format: { steps: (args) => [[tool("oxfmt"), ...args]] },
  "format:check": { steps: (args) => [[tool("oxfmt"), "--check", ...args]] },
  typecheck: { steps: (args) => [[tool("typescript", "tsc"), "-p", script("tsconfig.json"), ...args]] },
  diagnostics: { steps: (args) => [[script("scripts/diagnostics.mjs"), ...args]] },
  test: { steps: (args) => [[tool("vitest"), "run", ...args]] },
  "test:real": {
    steps: (args) => [
      [script("scripts/build.mjs")],
      [tool("vitest"), "run", "--config", script("vitest.real.config.ts"), ...args]
    ]
  },
  demo: { built: true, steps: (args) => [[script("scripts/demo.mjs"), ...args]] },
  bench: { built: true, steps: (args) => [[script("bench/main.ts"), ...args]] },
  "install-dev-cli": { built: true, steps: (args) => [[script("scripts/install-dev-cli.mjs"), ...args]] },
  check: {
    steps: () =>
      ["lint", "format:check", "typecheck", "diagnostics", "build", "test"].flatMap((name) =>
        tasks[name].steps([])
      )
  }
}

/** Runs one command line with our Node, passes on what asks this process to stop, and resolves with the exit code. */
const run = (commandLine) => {
  const node = toolNode()
  const places = [path.dirname(node), path.join(root, "node_modules", ".bin"), process.env.PATH ?? ""]
  const child = spawn(node, commandLine, {
    cwd: root,
    env: { ...process.env, PATH: places.join(path.delimiter) },
    stdio: "inherit"
  })
  const forward = (signal) => child.kill(signal)
  // A terminal's Ctrl-C reaches the tool by itself: it decides how to end, and this process reports that.
  const ignore = () => {}
  process.on("SIGINT", ignore).on("SIGTERM", forward).on("SIGHUP", forward)
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new SetupError(`cannot start ${node}: ${error.message}`)))
    child.on("exit", (code, signal) => {
      process.off("SIGINT", ignore).off("SIGTERM", forward).off("SIGHUP", forward)
      resolve(code ?? 128 + os.constants.signals[signal])
    })
  })
}

const [name, ...args] = process.argv.slice(2)
const task = Object.hasOwn(tasks, name ?? "") ? tasks[name] : undefined
try {
  if (task === undefined)
    throw new SetupError(`unknown task ${name}, known: ${Object.keys(tasks).join(", ")}`)
  ensureDependencies()
  if (task.built) ensureBuilt()
  for (const commandLine of task.steps(args)) {
    process.exitCode = await run(commandLine)
    if (process.exitCode !== 0) break
  }
} catch (error) {
  if (!(error instanceof SetupError)) throw error
  fs.writeSync(2, `looplane: ${error.message}\n`)
  process.exitCode = 1
}
