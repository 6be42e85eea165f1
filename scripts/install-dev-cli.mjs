// `npm run install-dev-cli [-- --dir DIR]`: puts a `looplane` command on PATH that always runs this clone. The command
// is a small shell script: before each start it refreshes dependencies and build when the lock file or the sources
// changed (scripts/dev-cli.mjs). Running it again changes nothing.
import { execFileSync } from "node:child_process"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { parseArgs } from "node:util"
import { root, SetupError } from "./setup.mjs"

const marker = "# looplane development command"

const { values } = parseArgs({ options: { dir: { type: "string" } } })

const isWritable = (directory) => {
  try {
    fs.accessSync(directory, fs.constants.W_OK)
    return fs.statSync(directory).isDirectory()
  } catch {
    return false
  }
}

const onPath = (directory) => (process.env.PATH ?? "").split(path.delimiter).includes(directory)

/** npm's own place for commands where this user may write, else the user's. */
const chooseDirectory = () => {
  if (values.dir !== undefined) return path.resolve(values.dir)
  const global = path.join(execFileSync("npm", ["prefix", "-g"], { encoding: "utf8" }).trim(), "bin")
  return isWritable(global) && onPath(global) ? global : path.join(os.homedir(), ".local", "bin")
}

const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`

const shim = `#!/bin/sh
${marker}, written by npm run install-dev-cli
root=${quote(root)}
node="$root/node_modules/.bin/node"
[ -x "$node" ] || node=node
exec "$node" "$root/scripts/dev-cli.mjs" "$@"
`

const install = () => {
  if (process.platform === "win32") throw new SetupError("install-dev-cli needs a POSIX shell")
  const directory = chooseDirectory()
  const file = path.join(directory, "looplane")
  const found = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined
  if (found === shim) return `${file} already runs this clone`
  if (found !== undefined && !found.includes(marker)) {
    throw new SetupError(`${file} is another program: remove it or choose a folder with --dir`)
  }
  fs.mkdirSync(directory, { recursive: true })
  const temporary = `${file}.${process.pid}`
  fs.writeFileSync(temporary, shim, { mode: 0o755 })
  fs.renameSync(temporary, file)
  const hint = onPath(directory) ? "" : ` (add ${directory} to PATH)`
  return `${file} runs this clone and refreshes it when the lock file or the sources change${hint}`
}

try {
  process.stdout.write(install() + "\n")
} catch (error) {
  if (!(error instanceof SetupError)) throw error
  process.stderr.write(`looplane: ${error.message}\n`)
  process.exitCode = 1
}
