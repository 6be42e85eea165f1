// What a command needs before it can start: dependencies as the lock file says, a build as the sources say. It runs on
// the machine's own Node (18 or newer) in a clone that has nothing installed, so it imports nothing but Node itself.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import fs from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const inRoot = (...parts) => path.join(root, ...parts)

/** A failure that the user can act on: printed as one line, without a stack. */
export class SetupError extends Error {}

const say = (line) => fs.writeSync(2, `looplane: ${line}\n`)

const readJson = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8"))
  } catch {
    return undefined
  }
}

/**
 * Why `node_modules` does not hold what `package-lock.json` says, or undefined when it does. The comparison is by
 * content, so it does not matter who installed or when; optional packages of other platforms may be missing.
 */
export const staleDependencies = () => {
  const lock = readJson(inRoot("package-lock.json"))?.packages
  if (lock === undefined) throw new SetupError("package-lock.json is missing or cannot be read")
  const installed = readJson(inRoot("node_modules", ".package-lock.json"))?.packages
  if (installed === undefined) return "nothing is installed"
  for (const [name, wanted] of Object.entries(lock)) {
    if (!name.startsWith("node_modules/")) continue
    const found = installed[name]
    if (found === undefined) {
      if (!wanted.optional && !wanted.devOptional) return `${name} is missing`
    } else if (found.version !== wanted.version || found.integrity !== wanted.integrity) {
      return `${name} is not the locked one`
    } else if (!wanted.link && !fs.existsSync(inRoot(name))) {
      return `${name} is missing`
    }
  }
  const extra = Object.keys(installed).find((name) => name.startsWith("node_modules/") && !(name in lock))
  return extra === undefined ? undefined : `${extra} is not in the lock file`
}

/** The environment without this clone's own binaries on PATH: npm replaces them while it runs. */
const machineEnvironment = () => {
  const own = inRoot("node_modules")
  const entries = (process.env.PATH ?? "").split(path.delimiter).filter((entry) => !entry.startsWith(own))
  return { ...process.env, PATH: entries.join(path.delimiter) }
}

/** Installs with `npm ci` unless what is installed is what the lock file says. Output goes to stderr. */
export const ensureDependencies = () => {
  const reason = staleDependencies()
  if (reason === undefined) return
  say(`installing dependencies with npm ci (${reason})`)
  const { error, status } = spawnSync(
    "npm",
    ["ci", "--include=dev", "--include=optional", "--loglevel=error"],
    {
      cwd: root,
      env: machineEnvironment(),
      shell: process.platform === "win32",
      stdio: ["ignore", 2, 2]
    }
  )
  if (error !== undefined) throw new SetupError(`npm cannot be started: ${error.message}`)
  if (status !== 0) throw new SetupError(`npm ci failed with exit code ${status}`)
}

const isNewEnough = (version) => {
  const [major, minor] = version.split(".").map(Number)
  return major > 22 || (major === 22 && minor >= 19)
}

/**
 * The Node that runs our tools: the one the clone brings along, else the machine's own when it is new enough. The
 * environment may name another, so that CI can test with each Node that the package supports.
 */
export const toolNode = () => {
  if (process.env.LOOPLANE_NODE) return process.env.LOOPLANE_NODE
  const own = inRoot("node_modules", ".bin", "node")
  if (fs.existsSync(own)) return own
  if (isNewEnough(process.versions.node)) return process.execPath
  throw new SetupError(`needs Node 22.19 or newer, this is ${process.version}`)
}

const filesUnder = (directory) =>
  fs
    .readdirSync(directory, { withFileTypes: true })
    .flatMap((entry) =>
      entry.isDirectory() ? filesUnder(path.join(directory, entry.name)) : [path.join(directory, entry.name)]
    )

const buildInputs = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"]
const buildScripts = ["scripts/setup.mjs", "scripts/build.mjs", "scripts/schema.mjs"]

/** A digest of everything that the build reads: names and bytes of the sources, the settings and the build itself. */
export const buildDigest = () => {
  const hash = createHash("sha256")
  const sources = fs.existsSync(inRoot("src")) ? filesUnder(inRoot("src")) : []
  const fixed = [...buildInputs, ...buildScripts]
    .map((file) => inRoot(file))
    .filter((file) => fs.existsSync(file))
  for (const file of [...sources, ...fixed].sort()) {
    const bytes = fs.readFileSync(file)
    hash.update(`${path.relative(root, file)}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest("hex")
}

const stampFile = inRoot("dist", ".stamp.json")

/** What was built last: the digest of the inputs for the code and for the type declarations. */
export const readStamp = () => readJson(stampFile) ?? {}

export const writeStamp = (stamp) => {
  fs.mkdirSync(path.dirname(stampFile), { recursive: true })
  const temporary = `${stampFile}.${process.pid}`
  fs.writeFileSync(temporary, JSON.stringify(stamp) + "\n")
  fs.renameSync(temporary, stampFile)
}

export const codeIsBuilt = (digest) =>
  readStamp().code === digest &&
  ["cli/main.js", "index.js"].every((file) => fs.existsSync(inRoot("dist", file)))

export const typesAreBuilt = (digest) =>
  readStamp().types === digest && fs.existsSync(inRoot("dist", "types", "index.d.ts"))

const build = (...flags) => {
  say("building, because the sources changed")
  const { status } = spawnSync(toolNode(), [inRoot("scripts", "build.mjs"), ...flags], {
    cwd: root,
    stdio: ["ignore", 2, 2]
  })
  if (status !== 0) throw new SetupError("the build failed")
}

/** Builds the code (no type declarations) when the sources changed since the last build. Output goes to stderr. */
export const ensureBuilt = () => {
  if (!codeIsBuilt(buildDigest())) build("--no-types")
}

/** Builds code and type declarations when the sources changed since they were built. Output goes to stderr. */
export const ensureBuiltWithTypes = () => {
  const digest = buildDigest()
  if (!codeIsBuilt(digest) || !typesAreBuilt(digest)) build()
}
