// The Effect diagnostics of `@effect/tsgo`, which knows what plain TypeScript cannot see (an effect that nobody runs, an
// untyped failure). Errors and warnings fail. So does a run that looked at no file: without its plugin entry in
// tsconfig.json the tool checks nothing and reports success.
import { spawnSync } from "node:child_process"
import fs from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { root } from "./setup.mjs"

const directory = path.dirname(createRequire(import.meta.url).resolve("@effect/tsgo/package.json"))
const platform = `tsgo-${process.platform}-${process.arch}`

const diagnose = () => {
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      path.join(directory, "dist", "effect-tsgo.cjs"),
      "diagnostics",
      ...["--project", path.join(root, "tsconfig.json")],
      ...["--strict", "--format", "text", "--severity", "error,warning"],
      ...process.argv.slice(2)
    ],
    { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024, stdio: ["ignore", "pipe", "inherit"] }
  )
  process.stdout.write(stdout)
  const checked = Number(/Checked (\d+) files/.exec(stdout)?.[1] ?? 0)
  if (checked === 0) process.stderr.write("looplane: the Effect diagnostics checked no file\n")
  return status === 0 && checked === 0 ? 1 : (status ?? 1)
}

// The lock file could only record the binary for Linux on x64; package.json overrides the others with a stand-in.
if (fs.existsSync(path.join(directory, "..", platform, "lib", "upstream.json"))) {
  process.exitCode = diagnose()
} else {
  process.stderr.write(`looplane: no Effect diagnostics here, @effect/${platform} is not in the lock file\n`)
}
