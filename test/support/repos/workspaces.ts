import { makeRepo, type Files, type Repo, type RepoSpec } from "../Repo.ts"

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

const manifest = (name: string, dependencies: Record<string, string> = {}) => ({
  name,
  version: "1.0.0",
  type: "module",
  exports: "./index.js",
  ...(Object.keys(dependencies).length === 0 ? {} : { dependencies })
})

const installed = {
  "node_modules/app": { resolved: "packages/app", link: true },
  "node_modules/fixture-numbers": { version: "1.0.0", bin: { "fixture-numbers": "cli.js" } },
  "node_modules/lib": { resolved: "packages/lib", link: true },
  "packages/app": { version: "1.0.0", dependencies: { lib: "1.0.0" } },
  "packages/lib": { version: "1.0.0", dependencies: { "fixture-numbers": "1.0.0" } }
}

const wrong =
  'import { zero } from "fixture-numbers"\n\nexport const add = (left, right) => zero + left - right\n'

const files: Files = {
  "package.json": json({
    name: "fixture-root",
    private: true,
    type: "module",
    workspaces: ["packages/*"],
    scripts: { test: "node --test" }
  }),
  "package-lock.json": json({
    name: "fixture-root",
    lockfileVersion: 3,
    requires: true,
    packages: { "": { name: "fixture-root", workspaces: ["packages/*"] }, ...installed }
  }),
  ".gitignore": "node_modules/\n",
  "packages/lib/package.json": json(manifest("lib", { "fixture-numbers": "1.0.0" })),
  "packages/lib/index.js": wrong,
  "packages/app/package.json": json(manifest("app", { lib: "1.0.0" })),
  "packages/app/index.js":
    'import { add } from "lib"\n\nexport const total = (numbers) => numbers.reduce(add)\n',
  "packages/app/test/total.test.js":
    'import assert from "node:assert/strict"\nimport test from "node:test"\nimport { total } from "app"\n\n' +
    'test("totals", () => {\n  console.log(`lib is ${import.meta.resolve("lib")}`)\n' +
    "  assert.equal(total([1, 2, 3]), 6)\n})\n"
}

/** What `npm install` would have left: links to the packages, and one package that came from elsewhere. */
const modules: Files = {
  "node_modules/.package-lock.json": json({
    name: "fixture-root",
    lockfileVersion: 3,
    requires: true,
    packages: installed
  }),
  "node_modules/.bin/fixture-numbers": { symlink: "../fixture-numbers/cli.js" },
  "node_modules/fixture-numbers/package.json": json({
    ...manifest("fixture-numbers"),
    bin: { "fixture-numbers": "cli.js" }
  }),
  "node_modules/fixture-numbers/index.js": "export const zero = 0\n",
  "node_modules/fixture-numbers/cli.js": {
    text: '#!/usr/bin/env node\nconsole.log("numbers")\n',
    mode: 0o755
  },
  "node_modules/lib": { symlink: "../packages/lib" },
  "node_modules/app": { symlink: "../packages/app" }
}

/** The one edit that makes the test of `packages/app` pass. */
export const workspacesFix = {
  path: "packages/lib/index.js",
  old_text: "left - right",
  new_text: "left + right",
  fixed: wrong.replace("left - right", "left + right")
} as const

/**
 * An npm workspace whose `app` reaches the wrong `lib` through a link in the root's `node_modules`. The test prints
 * `lib is URL`, the file that was really loaded.
 */
export const workspacesRepo = (spec: Partial<RepoSpec> = {}): Repo =>
  makeRepo({ ...spec, files: { ...files, ...spec.files }, ignored: { ...modules, ...spec.ignored } })
