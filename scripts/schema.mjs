// Writes the JSON Schemas of what looplane stores and prints into schema/, from the definitions that the code itself
// uses. With --check nothing is written and a difference is an error, so that a change of a published format is seen in
// review.
import fs from "node:fs"
import path from "node:path"
import { jsonSchemas } from "../src/domain/Published.ts"
import { root } from "./setup.mjs"

const check = process.argv.includes("--check")

for (const [name, schema] of Object.entries(jsonSchemas())) {
  const file = path.join(root, "schema", `${name}.json`)
  const wanted = JSON.stringify(schema, null, 2) + "\n"
  const found = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined
  if (found === wanted) continue
  if (check) {
    process.stderr.write(`looplane: schema/${name}.json is not what the code says: run npm run schema\n`)
    process.exitCode = 1
  } else {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, wanted)
  }
}
