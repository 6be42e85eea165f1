// What the installed development command starts: this clone, refreshed when needed, then the launcher in this process.
import fs from "node:fs"
import path from "node:path"
import { ensureBuilt, ensureDependencies, root, SetupError } from "./setup.mjs"

try {
  ensureDependencies()
} catch (error) {
  if (!(error instanceof SetupError)) throw error
  fs.writeSync(2, `looplane: ${error.message}\n`)
  process.exit(2)
}

try {
  ensureBuilt()
} catch (error) {
  // looplane is used on its own sources: while they are broken, the last good build goes on working.
  if (!(error instanceof SetupError) || !fs.existsSync(path.join(root, "dist", "cli", "main.js"))) throw error
  fs.writeSync(2, `looplane: ${error.message}, running the last good one\n`)
}

await import("../bin/looplane.js")
