import { execFileSync } from "node:child_process"
import fs from "node:fs"
import path from "node:path"
import { parseSync } from "rolldown/utils"
import { assert, describe, it } from "vitest"
import { version } from "../src/version.ts"

// The house's arrows (docs/architecture.md), read from the syntax trees of src/: static imports, re-exports, dynamic
// imports, `import type` and types written as import("…"). The planted sources at the end show that each rule bites.

const root = path.resolve(import.meta.dirname, "..")

type Sources = ReadonlyMap<string, string>
interface Arrow {
  readonly from: string
  /** A path from the repository's root for a file, a module's name for a package. */
  readonly to: string
  readonly isFile: boolean
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null

const importing = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
  "TSExternalModuleReference"
])

const literal = (node: unknown): string | undefined => {
  if (!isRecord(node)) return undefined
  const { quasis, value } = node
  if (typeof value === "string") return value
  const quasi: unknown = Array.isArray(quasis) && quasis.length === 1 ? quasis[0] : undefined
  return isRecord(quasi) && isRecord(quasi["value"]) && typeof quasi["value"]["cooked"] === "string"
    ? quasi["value"]["cooked"]
    : undefined
}

const computed = "a computed name"

/** What a file imports, in any of the ways the language has; a name that is computed cannot be judged and is kept. */
const specifiers = (file: string, source: string): ReadonlyArray<string> => {
  const { errors, program } = parseSync(file, source)
  assert.deepStrictEqual(errors, [], `${file} does not parse`)
  const found: Array<string> = []
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit)
    if (!isRecord(node)) return
    if (typeof node["type"] === "string" && importing.has(node["type"])) {
      const target = node["source"] ?? node["expression"]
      if (isRecord(target)) found.push(literal(target) ?? computed)
    }
    const callee = node["type"] === "CallExpression" ? node["callee"] : undefined
    if (isRecord(callee) && callee["name"] === "require" && Array.isArray(node["arguments"])) {
      found.push(literal(node["arguments"][0]) ?? computed)
    }
    Object.values(node).forEach(visit)
  }
  visit(program)
  return found
}

const arrows = (sources: Sources): ReadonlyArray<Arrow> =>
  [...sources].flatMap(([from, source]) =>
    specifiers(from, source).map((specifier) =>
      specifier.startsWith(".")
        ? { from, to: path.posix.join(path.posix.dirname(from), specifier), isFile: true }
        : { from, to: specifier, isFile: false }
    )
  )

const faces = new Set(["src/index.ts", "src/testing.ts", "src/layers.ts"])
const live = "src/layers/Live.ts"
const fakes = "src/layers/Test.ts"

const floors = ["domain", "services", "layers", "programs", "cli"] as const
type Room = (typeof floors)[number] | "face" | "elsewhere"

const room = (file: string): Room => {
  if (faces.has(file)) return "face"
  // A constant that every floor may name.
  if (file === "src/version.ts") return "domain"
  return floors.find((floor) => file.startsWith(`src/${floor}/`)) ?? "elsewhere"
}

const below: Readonly<Record<Room, ReadonlyArray<Room>>> = {
  domain: ["domain"],
  services: ["domain", "services"],
  layers: ["domain", "services", "layers"],
  programs: ["domain", "services", "programs"],
  cli: ["domain", "services", "programs", "cli"],
  face: ["domain", "services", "layers", "programs"],
  elsewhere: []
}

const isPackage = (name: string, specifier: string): boolean =>
  specifier === name || specifier.startsWith(`${name}/`)

const mayUsePackage = (from: Room, specifier: string): boolean => {
  if (isPackage("looplane", specifier) || specifier === computed) return false
  return from === "cli" || from === "layers" || isPackage("effect", specifier)
}

const isAllowed = ({ from, isFile, to }: Arrow): boolean => {
  const here = room(from)
  if (!isFile) return mayUsePackage(here, to)
  if (to === fakes) return from === "src/testing.ts"
  if (to === live) return here === "cli" || here === "face"
  return below[here].includes(room(to))
}

const forbidden = (sources: Sources): ReadonlyArray<string> =>
  arrows(sources)
    .filter((arrow) => !isAllowed(arrow))
    .map(({ from, to }) => `${from} -> ${to}`)

/** The first circle of imports found from each file on, as the list of its files; none when the graph is a tree. */
const circles = (sources: Sources): ReadonlyArray<string> => {
  const targets = new Map<string, Array<string>>()
  for (const { from, to } of arrows(sources)) {
    if (sources.has(to)) targets.set(from, [...(targets.get(from) ?? []), to])
  }
  const found: Array<string> = []
  const done = new Set<string>()
  const walk = (file: string, trail: ReadonlyArray<string>): void => {
    const start = trail.indexOf(file)
    if (start >= 0) {
      found.push([...trail.slice(start), file].join(" -> "))
      return
    }
    if (done.has(file)) return
    for (const target of targets.get(file) ?? []) walk(target, [...trail, file])
    done.add(file)
  }
  for (const file of sources.keys()) walk(file, [])
  return found
}

const readSources = (): Sources =>
  new Map(
    fs
      .readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => `src/${file.split(path.sep).join("/")}`)
      .toSorted()
      .map((file) => [file, fs.readFileSync(path.join(root, file), "utf8")])
  )

describe("the house", () => {
  const sources = readSources()

  it("has files on every floor", () => {
    const rooms = new Set([...sources.keys()].map(room))
    assert.includeMembers([...rooms], [...floors])
    assert.notInclude([...rooms], "elsewhere")
  })

  it("has no arrow that runs up or sideways", () => {
    assert.deepStrictEqual(forbidden(sources), [])
  })

  it("has no circle", () => {
    assert.deepStrictEqual(circles(sources), [])
  })
})

describe("the house, with planted faults", () => {
  const refused: ReadonlyArray<readonly [string, string]> = [
    ["src/domain/A.ts", `import { B } from "../services/B.ts"`],
    ["src/domain/A.ts", `import type { B } from "../programs/B.ts"`],
    ["src/domain/A.ts", `import "node:fs"`],
    ["src/domain/A.ts", `import jsonrepair from "jsonrepair"`],
    ["src/services/A.ts", `export { B } from "../layers/b/B.ts"`],
    ["src/services/A.ts", `export * from "../programs/B.ts"`],
    ["src/services/A.ts", `export type T = import("node:fs").Stats`],
    ["src/services/A.ts", `import { NodeServices } from "@effect/platform-node"`],
    ["src/layers/a/A.ts", `const b = () => import("../../programs/B.ts")`],
    ["src/layers/a/A.ts", `import { B } from "../../cli/B.ts"`],
    ["src/layers/a/A.ts", `import { layer } from "../Live.ts"`],
    ["src/layers/Live.ts", `import { layer } from "./Test.ts"`],
    ["src/layers/a/A.ts", "const name = 'x'; const b = import(`../../programs/${name}.ts`)"],
    ["src/programs/A.ts", `import type { B } from "../layers/b/B.ts"`],
    ["src/programs/policies/A.ts", `import { B } from "../../cli/B.ts"`],
    ["src/programs/A.ts", `const b = import(\`node:path\`)`],
    ["src/programs/A.ts", `import OpenAI from "openai"`],
    ["src/programs/A.ts", `import { layer } from "@effect/platform-node/NodeServices"`],
    ["src/programs/A.ts", `import { B } from "../index.ts"`],
    ["src/cli/A.ts", `import { B } from "../layers/b/B.ts"`],
    ["src/cli/A.ts", `const b = () => import("../layers/Test.ts")`],
    ["src/cli/A.ts", `import { run } from "looplane"`],
    ["src/cli/A.ts", `import { helper } from "../../test/support/helper.ts"`],
    ["src/cli/A.ts", `const b = require("../layers/b/B.ts")`],
    ["src/index.ts", `export { main } from "./cli/main.ts"`],
    ["src/layers.ts", `export * from "./layers/Test.ts"`],
    ["src/stray.ts", `import { B } from "./domain/B.ts"`]
  ]
  it.each(refused)("refuses in %s: %s", (file, source) => {
    assert.lengthOf(forbidden(new Map([[file, source]])), 1)
  })

  const accepted: ReadonlyArray<readonly [string, string]> = [
    ["src/domain/A.ts", `import { Schema } from "effect"; import { B } from "./patch/B.ts"`],
    ["src/domain/A.ts", `/* import "node:fs" */ export const text = 'import "node:fs"'`],
    [
      "src/services/A.ts",
      `import type { B } from "../domain/B.ts"; import { Process } from "effect/process"`
    ],
    [
      "src/layers/a/A.ts",
      `import fs from "node:fs"; import { B } from "../../services/B.ts"; import("openai")`
    ],
    ["src/layers/Live.ts", `import { layer } from "./a/A.ts"; import { x } from "@effect/platform-node"`],
    ["src/programs/A.ts", `import { B } from "../services/B.ts"`],
    ["src/cli/A.ts", `import { layer } from "../layers/Live.ts"; import { run } from "../programs/Run.ts"`],
    ["src/testing.ts", `export * from "./layers/Test.ts"`],
    ["src/layers.ts", `export * from "./layers/Live.ts"; export * from "./layers/a/A.ts"`]
  ]
  it.each(accepted)("accepts in %s: %s", (file, source) => {
    assert.deepStrictEqual(forbidden(new Map([[file, source]])), [])
  })

  it("finds a circle, also one through types and dynamic imports", () => {
    const found = circles(
      new Map([
        ["src/domain/A.ts", `import { B } from "./B.ts"`],
        ["src/domain/B.ts", `export type C = import("./sub/C.ts").C`],
        ["src/domain/sub/C.ts", `export const load = () => import("../A.ts")`],
        ["src/domain/D.ts", `import { A } from "./A.ts"`]
      ])
    )
    assert.deepStrictEqual(found, [
      "src/domain/A.ts -> src/domain/B.ts -> src/domain/sub/C.ts -> src/domain/A.ts"
    ])
  })
})

describe("what is committed", () => {
  const listing = (): ReadonlyArray<string> | undefined => {
    const options = { cwd: root, encoding: "utf8" } as const
    try {
      const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
      const all = execFileSync("git", args, options).split("\0")
      return all.filter((file) => file !== "" && fs.existsSync(path.join(root, file)))
    } catch {
      return undefined
    }
  }
  const content = (file: string): string =>
    fs.statSync(path.join(root, file)).isFile() ? fs.readFileSync(path.join(root, file), "latin1") : ""

  // Put together here, so that this file does not name what it forbids.
  const hosts = ["registry npmjs org", "registry npmjs com", "registry yarnpkg com", "npm pkg github com"]
  const names = hosts.map((host) => host.replaceAll(" ", "."))

  it("names no package registry", (context) => {
    const files = listing()
    if (files === undefined) return context.skip("not a git checkout")
    assert.includeMembers([...files], ["package.json", "test/architecture.test.ts"])
    const found = files.filter((file) => names.some((name) => content(file).includes(name)))
    assert.deepStrictEqual(found, [])
  })

  it("has one version", () => {
    const manifest: unknown = JSON.parse(content("package.json"))
    assert.strictEqual(isRecord(manifest) ? manifest["version"] : undefined, version)
  })

  it("records no download address in the lock file", () => {
    assert.notMatch(content("package-lock.json"), /"resolved":\s*"(?:https?|git)/)
  })
})
