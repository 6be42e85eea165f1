import { spawnSync } from "node:child_process"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { assert, it, onTestFinished } from "vitest"

const root = path.resolve(import.meta.dirname, "..", "..")

const node = fs.realpathSync(process.execPath)

it("the packed package, installed into an empty app, brings no node and runs on the app's own", () => {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "looplane-install-")))
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }))
  const app = path.join(directory, "app")
  fs.mkdirSync(app)
  fs.writeFileSync(
    path.join(app, "package.json"),
    JSON.stringify({ name: "app", private: true, type: "module" })
  )
  const env = { ...process.env, PATH: `${path.dirname(node)}${path.delimiter}${process.env["PATH"] ?? ""}` }
  const run = (cwd: string, command: string, ...args: ReadonlyArray<string>): string => {
    const { status, stderr, stdout } = spawnSync(command, args, { cwd, encoding: "utf8", env })
    assert.strictEqual(status, 0, `${command} ${args.join(" ")}: ${stderr}`)
    return stdout
  }

  run(root, "npm", "pack", "--ignore-scripts", "--pack-destination", directory)
  const tarball = fs.readdirSync(directory).find((file) => file.endsWith(".tgz"))
  run(app, "npm", "install", "--ignore-scripts", path.join(directory, tarball ?? "missing"))
  assert.isFalse(fs.existsSync(path.join(app, "node_modules", ".bin", "node")))
  assert.isFalse(fs.existsSync(path.join(app, "node_modules", "@looplane")))

  const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
  assert.strictEqual(run(app, "npx", "looplane", "--version"), `looplane ${version}\n`)
  assert.match(run(app, "npx", "looplane", "--help"), /exec/)

  const faces = ["looplane", "looplane/testing", "looplane/layers"]
  fs.writeFileSync(
    path.join(app, "faces.mjs"),
    faces.map((face) => `console.log(Object.keys(await import("${face}")).length > 0)`).join("\n")
  )
  assert.strictEqual(run(app, node, "faces.mjs"), "true\n".repeat(faces.length))

  // The declarations stand on their own: an app that checks its libraries too finds no error in ours.
  const imports = faces.map(
    (face, index) => `import * as face${index} from "${face}"\nconsole.log(face${index})`
  )
  fs.writeFileSync(path.join(app, "faces.ts"), imports.join("\n"))
  const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
  const flags = [
    "--noEmit",
    "--strict",
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--skipLibCheck",
    "false"
  ]
  const types = ["--typeRoots", path.join(root, "node_modules", "@types"), "--types", "node"]
  const checked = spawnSync(node, [tsc, ...flags, ...types, "faces.ts"], { cwd: app, encoding: "utf8", env })
  const ours = checked.stdout.split("\n").filter((line) => /looplane\/dist|^faces\.ts/.test(line))
  assert.deepStrictEqual(ours, [])
})
