import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { assert, describe, it, onTestFinished } from "vitest"

const root = path.resolve(import.meta.dirname, "..", "..")

const temporary = (): string => {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "looplane-package-")))
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

interface Installation {
  readonly launcher: string
  readonly directory: string
  readonly env: Readonly<Record<string, string>>
}

/** The launcher as it lies in a package, with a bundle of the test's choosing behind it. */
const installation = (
  options: { readonly bundle?: string; readonly version?: string } = {}
): Installation => {
  const directory = temporary()
  const launcher = path.join(directory, "bin", "looplane.js")
  fs.mkdirSync(path.dirname(launcher))
  fs.copyFileSync(path.join(root, "bin", "looplane.js"), launcher)
  const manifest = { name: "looplane", version: options.version ?? "0.0.1", type: "module" }
  fs.writeFileSync(path.join(directory, "package.json"), JSON.stringify(manifest))
  if (options.bundle !== undefined) {
    fs.mkdirSync(path.join(directory, "dist", "cli"), { recursive: true })
    fs.writeFileSync(path.join(directory, "dist", "cli", "main.js"), options.bundle)
  }
  const cache = path.join(directory, "cache")
  fs.mkdirSync(cache)
  return { directory, launcher, env: { PATH: process.env["PATH"] ?? "", XDG_CACHE_HOME: cache } }
}

/** Makes the launcher believe that an older Node runs it; a Node that it starts in turn is the real one. */
const oldNode = `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.11.0"}})`

const run = (
  { env, launcher }: Installation,
  args: ReadonlyArray<string> = [],
  nodeArgs: ReadonlyArray<string> = []
) => {
  const { signal, status, stderr, stdout } = spawnSync(process.execPath, [...nodeArgs, launcher, ...args], {
    encoding: "utf8",
    env: { ...env },
    input: "from stdin"
  })
  return { signal, status, stderr, stdout }
}

/** A Node beside the package, as `npm ci` leaves it in a clone; a script, so that it is not the running binary. */
const bringNode = ({ directory }: Installation): void => {
  const bin = path.join(directory, "node_modules", ".bin")
  fs.mkdirSync(bin, { recursive: true })
  fs.writeFileSync(path.join(bin, "node"), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`, { mode: 0o755 })
}

describe("the launcher", () => {
  it.each(["--version", "-V"])("answers %s from package.json, without the bundle", (flag) => {
    const place = installation({ version: "7.8.9-rc.1" })
    assert.deepStrictEqual(run(place, [flag]), {
      signal: null,
      status: 0,
      stderr: "",
      stdout: "looplane 7.8.9-rc.1\n"
    })
    assert.deepStrictEqual(fs.readdirSync(path.join(place.directory, "cache")), [])
  })

  it("leaves every other command line to the bundle", () => {
    const place = installation({ bundle: "console.log(JSON.stringify(process.argv.slice(2)))" })
    assert.strictEqual(run(place, ["exec", "--version"]).stdout, `["exec","--version"]\n`)
  })

  it("says in one line what to do when it is not built", () => {
    const { status, stderr, stdout } = run(installation())
    assert.deepStrictEqual([status, stdout, stderr.trimEnd().split("\n").length], [2, "", 1])
    assert.match(stderr, /npm run build/)
  })

  it("keeps the compile cache in a folder of its user, mode 0700", () => {
    const place = installation({ bundle: "export {}" })
    assert.strictEqual(run(place).status, 0)
    for (const each of ["looplane", "looplane/compile"]) {
      assert.strictEqual(fs.statSync(path.join(place.directory, "cache", each)).mode & 0o777, 0o700)
    }
    assert.isNotEmpty(fs.readdirSync(path.join(place.directory, "cache", "looplane", "compile")))
  })

  it("uses no compile cache that others can write to, or that is a link", () => {
    const open = installation({ bundle: "export {}" })
    const openCache = path.join(open.directory, "cache", "looplane", "compile")
    fs.mkdirSync(openCache, { recursive: true })
    fs.chmodSync(path.dirname(openCache), 0o700)
    fs.chmodSync(openCache, 0o770)
    assert.strictEqual(run(open).status, 0)
    assert.deepStrictEqual(fs.readdirSync(openCache), [])

    const linked = installation({ bundle: "export {}" })
    const elsewhere = path.join(linked.directory, "elsewhere")
    fs.mkdirSync(path.join(elsewhere, "compile"), { recursive: true, mode: 0o700 })
    fs.symlinkSync(elsewhere, path.join(linked.directory, "cache", "looplane"))
    assert.strictEqual(run(linked).status, 0)
    assert.deepStrictEqual(fs.readdirSync(path.join(elsewhere, "compile")), [])
  })

  it("works without a cache where none can be made", () => {
    const place = installation({ bundle: "console.log('ran')" })
    fs.writeFileSync(path.join(place.directory, "cache", "looplane"), "a file in the way")
    const { status, stdout } = run(place)
    assert.deepStrictEqual([status, stdout], [0, "ran\n"])
  })

  it("makes no cache where the user stands, whatever HOME is", () => {
    const place = installation({ bundle: "console.log('ran')" })
    const here = path.join(place.directory, "here")
    fs.mkdirSync(here)
    for (const HOME of ["", "relative"]) {
      const env = { PATH: process.env["PATH"] ?? "", HOME }
      const { status } = spawnSync(process.execPath, [place.launcher, "x"], { cwd: here, env })
      assert.strictEqual(status, 0)
      assert.deepStrictEqual(fs.readdirSync(here), [], JSON.stringify(HOME))
    }
  })

  it.runIf(process.getuid?.() === 0)("works for an account that the system does not know", () => {
    const place = installation({ bundle: "console.log('ran')" })
    fs.chmodSync(place.directory, 0o755)
    const unknown = {
      uid: 54321,
      gid: 54321,
      env: { PATH: process.env["PATH"] ?? "" },
      encoding: "utf8"
    } as const
    const { stderr, stdout } = spawnSync(process.execPath, [place.launcher, "x"], unknown)
    assert.deepStrictEqual([stdout, stderr], ["ran\n", ""])
  })

  it.runIf(fs.existsSync("/proc/self"))("works with a home that is no place for files", () => {
    const place = installation({ bundle: "console.log('ran')" })
    for (const cache of ["/proc", "/dev/null", "/nonexistent/deep/er"]) {
      const { status, stdout } = run({ ...place, env: { ...place.env, XDG_CACHE_HOME: cache } })
      assert.deepStrictEqual([status, stdout], [0, "ran\n"], cache)
    }
  })

  it("goes on when the reader of stdout goes away", async () => {
    const bundle = `
      import fs from "node:fs"
      let lines = 0
      const write = () => {
        process.stdout.write("x".repeat(65536) + "\\n")
        if (++lines < 50) setImmediate(write)
        else fs.writeFileSync(new URL("../../finished", import.meta.url), "")
      }
      write()
    `
    const place = installation({ bundle })
    const child = spawn(process.execPath, [place.launcher], {
      env: { ...place.env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.stdout.once("data", () => child.stdout.destroy())
    const [status]: ReadonlyArray<unknown> = await once(child, "close")
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.isTrue(fs.existsSync(path.join(place.directory, "finished")))
  })
})

describe("the launcher under a Node that is too old", () => {
  const preload = ["--import", oldNode]

  it("still answers --version", () => {
    assert.strictEqual(run(installation(), ["--version"], preload).stdout, "looplane 0.0.1\n")
  })

  it("says in one line what it needs", () => {
    const place = installation({ bundle: "console.log('must not run')" })
    const { status, stderr, stdout } = run(place, [], preload)
    assert.deepStrictEqual([status, stdout, stderr.trimEnd().split("\n").length], [2, "", 1])
    assert.match(stderr, /Node 22\.19 or newer/)
  })

  it("runs under the Node that the clone brings: arguments, streams and exit code are the command's own", () => {
    const bundle = `
      import fs from "node:fs"
      process.stdout.write(fs.readFileSync(0, "utf8") + JSON.stringify(process.argv.slice(2)))
      process.stderr.write(process.versions.node)
      process.exitCode = 4
    `
    const place = installation({ bundle })
    bringNode(place)
    assert.deepStrictEqual(run(place, ["a b", "--c=d"], preload), {
      signal: null,
      status: 4,
      stderr: process.versions.node,
      stdout: `from stdin["a b","--c=d"]`
    })
  })

  const started = async (place: Installation) => {
    const child = spawn(process.execPath, [...preload, place.launcher], {
      env: { ...place.env },
      stdio: ["ignore", "pipe", "inherit"]
    })
    await once(child.stdout, "data")
    return child
  }

  it("passes a signal on once and ends as the command ended", async () => {
    const bundle = `
      let seen = 0
      process.on("SIGINT", () => { seen += 1; setTimeout(() => process.exit(129 + seen), 200) })
      setInterval(() => {}, 1000)
      process.stdout.write("ready")
    `
    const place = installation({ bundle })
    bringNode(place)
    const child = await started(place)
    child.kill("SIGINT")
    assert.deepStrictEqual(await once(child, "close"), [130, null])
  })

  it("dies of the signal that the command died of", async () => {
    const place = installation({ bundle: `setInterval(() => {}, 1000); process.stdout.write("ready")` })
    bringNode(place)
    const child = await started(place)
    child.kill("SIGTERM")
    assert.deepStrictEqual(await once(child, "close"), [null, "SIGTERM"])
  })
})

describe("the published package", () => {
  const pack = (): string => {
    const directory = temporary()
    const packed = spawnSync("npm", ["pack", "--ignore-scripts", "--pack-destination", directory], {
      cwd: root,
      encoding: "utf8"
    })
    assert.strictEqual(packed.status, 0, packed.stderr)
    const [tarball] = fs.readdirSync(directory)
    assert.isDefined(tarball)
    assert.strictEqual(spawnSync("tar", ["xf", tarball ?? ""], { cwd: directory }).status, 0)
    return path.join(directory, "package")
  }

  it("holds the launcher, the bundles and the texts, and starts without anything beside it", () => {
    const directory = pack()
    const files = fs.readdirSync(directory, { recursive: true, encoding: "utf8" })
    const top = new Set(fs.readdirSync(directory))
    for (const name of ["schema", "README.md", "README.zh-TW.md"]) top.delete(name)
    assert.deepStrictEqual([...top].toSorted(), ["LICENSE", "bin", "dist", "native", "package.json"])
    assert.deepStrictEqual(fs.readdirSync(path.join(directory, "bin")), ["looplane.js"])
    assert.includeMembers(files, ["dist/cli/main.js", "dist/index.js", "dist/THIRD-PARTY-LICENSES.txt"])
    assert.notInclude(files, "dist/.stamp.json")

    const launcher = path.join(directory, "bin", "looplane.js")
    const help = spawnSync(process.execPath, [launcher, "--help"], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", XDG_CACHE_HOME: path.join(directory, "..") }
    })
    assert.deepStrictEqual([help.status, help.stderr], [0, ""])
    assert.match(help.stdout, /looplane/)
  })

  it("leaves Effect to the host and asks for nothing else that is not declared", () => {
    const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
    const declared = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)]
    const read = (directory: string): ReadonlyArray<string> =>
      fs
        .readdirSync(directory, { withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith(".js"))
        .flatMap((entry) => {
          const source = fs.readFileSync(path.join(directory, entry.name), "utf8")
          return [...source.matchAll(/^import\b[^"'\n]*["']([^."'][^"']*)["']/gm)].map(
            (match) => match[1] ?? ""
          )
        })
    const chunks = path.join(root, "dist", "chunks")
    const specifiers = new Set([
      ...read(path.join(root, "dist")),
      ...(fs.existsSync(chunks) ? read(chunks) : [])
    ])
    const packages = [...specifiers].filter((name) => !name.startsWith("node:"))
    const missing = packages.filter(
      (name) => !declared.some((each) => name === each || name.startsWith(`${each}/`))
    )
    assert.includeMembers(packages, ["effect"])
    assert.deepStrictEqual(missing, [])
  })
})
