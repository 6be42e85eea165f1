// Builds dist/: the CLI as one split, minified bundle that starts fast, the library with `effect` left to the host, the
// type declarations, and the notices of what was bundled. Flags: --no-types (code only), --clean (keep no older chunk),
// --force (build although nothing changed).
import { spawnSync } from "node:child_process"
import fs from "node:fs"
import { builtinModules, createRequire } from "node:module"
import path from "node:path"
import { parseArgs } from "node:util"
import { rolldown } from "rolldown"
import { buildDigest, codeIsBuilt, readStamp, root, typesAreBuilt, writeStamp } from "./setup.mjs"

const { values: flags } = parseArgs({
  options: {
    "no-types": { type: "boolean", default: false },
    clean: { type: "boolean", default: false },
    force: { type: "boolean", default: false }
  }
})

const dist = path.join(root, "dist")
const require = createRequire(import.meta.url)
// Loads a binary that lies beside it, so it cannot move into a bundle.
const neverBundled = ["@vscode/ripgrep"]
// One copy of Effect in the host's process: service tags and fibers must be the host's own.
const leftToTheHost = ["effect", "@effect/platform-node"]
const keptChunkAge = 24 * 60 * 60 * 1000

const matches = (packages) => (id) => packages.some((name) => id === name || id.startsWith(`${name}/`))
const isBuiltin = (id) => id.startsWith("node:") || builtinModules.includes(id)

/** An import of a module or a name that is not there would become a crash on a user's machine: fail here instead. */
const onLog = (level, log, handler) => {
  if (log.code === "UNRESOLVED_IMPORT" || log.code === "IMPORT_IS_UNDEFINED") throw new Error(log.message)
  handler(level, log)
}

const bundle = async ({ directory, external, input, minify }) => {
  const isExternal = matches(external)
  const build = await rolldown({
    cwd: root,
    input,
    platform: "node",
    external: (id) => isBuiltin(id) || isExternal(id),
    onLog,
    tsconfig: path.join(root, "tsconfig.json")
  })
  try {
    const { output } = await build.generate({
      dir: directory,
      format: "esm",
      minify,
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name]-[hash].js"
    })
    return { directory, output }
  } finally {
    await build.close()
  }
}

/** Writes through a rename: whoever starts the CLI during a build gets the old file or the new one, never half of one. */
const write = (file, content) => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  const temporary = `${file}.${process.pid}.tmp`
  fs.writeFileSync(temporary, content)
  fs.renameSync(temporary, file)
}

/** Entries are written after the chunks that they name. Returns the files that this build consists of. */
const emit = ({ directory, output }) => {
  const ordered = [...output].sort((a, b) => Number(a.isEntry ?? false) - Number(b.isEntry ?? false))
  return ordered.map((item) => {
    const file = path.join(directory, item.fileName)
    write(file, item.type === "chunk" ? item.code : item.source)
    return file
  })
}

/** A process that is running loads chunks of its own build on first use, so those of the last day stay. */
const removeOlder = (written, now) => {
  const keep = new Set(written)
  for (const entry of fs.readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name)
    if (!entry.isFile() || keep.has(file) || file.startsWith(path.join(dist, "types") + path.sep)) continue
    if (path.basename(file) === ".stamp.json") continue
    if (flags.clean || now - fs.statSync(file).mtimeMs > keptChunkAge) fs.rmSync(file, { force: true })
  }
}

/** The licence texts of every package with code in the bundles, which their terms ask to be passed on. */
const notices = (builds) => {
  const packages = new Set()
  for (const { output } of builds) {
    for (const id of output.flatMap((item) => (item.type === "chunk" ? item.moduleIds : []))) {
      const found = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)
      if (found !== null) packages.add(found[0])
    }
  }
  const sections = [...packages].sort().map((directory) => {
    const { license, name, version } = JSON.parse(
      fs.readFileSync(path.join(directory, "package.json"), "utf8")
    )
    const files = fs.readdirSync(directory).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    const texts = files.map((file) => fs.readFileSync(path.join(directory, file), "utf8").trim())
    return [`${name} ${version} (${license})`, ...texts].join("\n\n")
  })
  return sections.join(`\n\n${"-".repeat(80)}\n\n`) + "\n"
}

const buildCode = async (digest) => {
  const before = readStamp()
  const builds = await Promise.all([
    bundle({
      directory: path.join(dist, "cli"),
      input: { main: "src/cli/main.ts" },
      external: neverBundled,
      minify: true
    }),
    bundle({
      directory: dist,
      input: { index: "src/index.ts", testing: "src/testing.ts", layers: "src/layers.ts" },
      external: [...neverBundled, ...leftToTheHost],
      minify: "dce-only"
    })
  ])
  const written = builds.flatMap(emit)
  const noticesFile = path.join(dist, "THIRD-PARTY-LICENSES.txt")
  write(noticesFile, notices(builds))
  removeOlder([...written, noticesFile], Date.now())
  writeStamp({ ...before, code: digest })
  const size = written.reduce((sum, file) => sum + fs.statSync(file).size, 0)
  return `${written.length} files, ${Math.round(size / 1024)} kB`
}

const runNode = (commandLine) => {
  const { status } = spawnSync(process.execPath, commandLine, { cwd: root, stdio: "inherit" })
  if (status !== 0) throw new Error(`${path.relative(root, commandLine[0])} failed`)
}

const buildTypes = (digest) => {
  const manifest = require.resolve("typescript/package.json")
  const tsc = path.join(path.dirname(manifest), require(manifest).bin.tsc)
  fs.rmSync(path.join(dist, "types"), { recursive: true, force: true })
  runNode([tsc, "-p", path.join(root, "tsconfig.build.json")])
  writeStamp({ ...readStamp(), types: digest })
}

const started = performance.now()
const digest = buildDigest()
try {
  const done = []
  if (flags.clean) fs.rmSync(dist, { recursive: true, force: true })
  if (flags.force || !codeIsBuilt(digest)) {
    done.push(await buildCode(digest))
    const schema = path.join(root, "scripts", "schema.mjs")
    if (fs.existsSync(schema)) runNode([schema])
  }
  if (!flags["no-types"] && (flags.force || !typesAreBuilt(digest))) {
    buildTypes(digest)
    done.push("type declarations")
  }
  const took = `${Math.round(performance.now() - started)} ms`
  process.stderr.write(done.length === 0 ? "dist is up to date\n" : `dist: ${done.join(", ")} in ${took}\n`)
} catch (error) {
  process.stderr.write(`looplane: the build failed: ${error.message}\n`)
  process.exitCode = 1
}
