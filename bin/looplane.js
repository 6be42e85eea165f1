#!/usr/bin/env node
// The launcher: answers --version without loading anything, finds a Node that is new enough, switches the compile
// cache on and hands over to the bundle. It must stay parseable by Node 18, so that an old Node gets one clear line.
import fs from "node:fs"
import module from "node:module"
import os from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const [major, minor] = process.versions.node.split(".").map(Number)

/** Prints one line on stderr and ends with the exit code of usage and configuration errors. */
const refuse = (line) => {
  fs.writeSync(2, `looplane: ${line}\n`)
  process.exit(2)
}

const printVersion = () => {
  const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
  try {
    fs.writeSync(1, `looplane ${version}\n`)
  } catch (error) {
    // A reader that went away is no fault; a place that takes nothing is, and that needs no stack.
    if (error.code !== "EPIPE") process.exitCode = 1
  }
}

const makeDirectory = (directory) => {
  try {
    fs.mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if (error.code !== "EEXIST") throw error
  }
}

/** Empty where nothing says one: Node throws for an account that the system does not know. */
const homeDirectory = () => {
  try {
    return os.homedir()
  } catch {
    return ""
  }
}

/**
 * The compile cache holds code that is executed later, so it is only used when nobody else can write to it: the two
 * folders that are ours must be real directories of this user with mode 0700.
 */
const compileCacheDirectory = () => {
  if (typeof process.getuid !== "function") return undefined
  const xdg = process.env.XDG_CACHE_HOME
  const cache = xdg && path.isAbsolute(xdg) ? xdg : path.join(homeDirectory(), ".cache")
  if (!path.isAbsolute(cache)) return undefined
  const ours = path.join(cache, "looplane")
  const directory = path.join(ours, "compile")
  try {
    // One level at a time: a recursive mkdir never returns below /proc.
    makeDirectory(cache)
    for (const each of [ours, directory]) {
      makeDirectory(each)
      const found = fs.lstatSync(each)
      if (!found.isDirectory() || found.uid !== process.getuid() || (found.mode & 0o077) !== 0)
        return undefined
    }
    return directory
  } catch {
    return undefined
  }
}

/** A reader that went away (`looplane … | head -1`) must neither end a run nor print a stack. */
const tolerateClosedPipes = () => {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error) => {
      if (error.code !== "EPIPE") throw error
    })
  }
}

const start = async () => {
  const bundle = path.join(root, "dist", "cli", "main.js")
  if (!fs.existsSync(bundle)) refuse("not built yet: run `npm run build` in " + root)
  const cache = compileCacheDirectory()
  if (cache !== undefined) module.enableCompileCache(cache)
  tolerateClosedPipes()
  await import("../dist/cli/main.js")
}

/** Runs the same command line under `node`, with this process as a transparent stand-in for signals and exit. */
const reexecute = async (node) => {
  const { spawn } = await import("node:child_process")
  const { isatty } = await import("node:tty")
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" })
  // A terminal delivers its own signals to the child as well: passing those on would make one Ctrl-C look like two.
  const onTerminal = [0, 1, 2].some((fd) => isatty(fd))
  const forwarded = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR2"]
  for (const signal of forwarded) {
    const fromTerminal = onTerminal && (signal === "SIGINT" || signal === "SIGQUIT")
    process.on(signal, () => {
      if (!fromTerminal) child.kill(signal)
    })
  }
  child.on("error", (error) => refuse(`cannot start ${node}: ${error.message}`))
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code)
    for (const each of forwarded) process.removeAllListeners(each)
    process.kill(process.pid, signal)
  })
}

/** The Node that this checkout brings along, unless it is the one already running. */
const ownNode = () => {
  const bundled = path.join(root, "node_modules", ".bin", "node")
  try {
    const real = fs.realpathSync(bundled)
    return real === fs.realpathSync(process.execPath) ? undefined : real
  } catch {
    return undefined
  }
}

if (process.argv.length === 3 && (process.argv[2] === "--version" || process.argv[2] === "-V")) {
  printVersion()
} else if (major > 22 || (major === 22 && minor >= 19)) {
  await start()
} else {
  const node = ownNode()
  if (node === undefined) refuse(`needs Node 22.19 or newer, this is ${process.version}`)
  await reexecute(node)
}
