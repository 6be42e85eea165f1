import { makeRepo, type Files, type Repo, type RepoSpec } from "../Repo.ts"

const wrong = "export const add = (left, right) => left - right\n"

/** The files of a tiny ESM package whose `add` subtracts and whose only test fails. */
export const addFiles: Files = {
  "package.json": `${JSON.stringify({ name: "add", version: "1.0.0", private: true, type: "module", scripts: { test: "node --test" } }, null, 2)}\n`,
  "README.md": "# add\n\nAdds two numbers.\n",
  "src/add.js": wrong,
  "test/add.test.js":
    'import assert from "node:assert/strict"\nimport test from "node:test"\nimport { add } from "../src/add.js"\n\n' +
    'test("adds", () => {\n  assert.equal(add(2, 3), 5)\n})\n',
  ".gitignore": "node_modules/\ndist/\n*.log\n"
}

/** The one edit that makes the test of `addRepo` pass. */
export const addFix = {
  path: "src/add.js",
  old_text: "left - right",
  new_text: "left + right",
  fixed: wrong.replace("left - right", "left + right")
} as const

export const addRepo = (spec: Partial<RepoSpec> = {}): Repo =>
  makeRepo({ ...spec, files: { ...addFiles, ...spec.files } })
