// Writes the JSON Schemas of what looplane stores and prints into schema/, from the definitions that the code itself
// uses: the library's `jsonSchemas`, a record from file name (without .json) to schema. With --check nothing is written
// and a difference is an error, so that a change of a published format is seen in review.
import fs from "node:fs"
import path from "node:path"
import { root } from "./setup.mjs"

const check = process.argv.includes("--check")
// By address and not by name: the linter's types must not depend on whether dist/ was built before.
const { jsonSchemas = {} } = await import(new URL("../dist/index.js", import.meta.url).href)

for (const [name, schema] of Object.entries(jsonSchemas)) {
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
