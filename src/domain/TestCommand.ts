/**
 * Which program a command really starts, behind what only wraps it: `npx`, `uv run`, `coverage run -m`, `env A=b`.
 */

const baseName = (word: string): string => word.slice(word.lastIndexOf("/") + 1)

/** Words that start what comes after them. Their options are skipped, and so are numbers, as of `timeout 60`. */
const wrappers: ReadonlySet<string> = new Set([
  ...["env", "nice", "time", "timeout", "xvfb-run", "cross-env", "dotenv"],
  ...["npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "exec", "x", "dlx", "run"],
  ...["uv", "poetry", "pipenv", "pdm", "hatch", "rye", "coverage"]
])

export interface StartedProgram {
  /** Without its directory: "pytest", "node", "go"; a Python module is named as the program that it is. */
  readonly name: string
  /** What follows it. */
  readonly args: ReadonlyArray<string>
}

const skipped = (word: string): boolean =>
  wrappers.has(baseName(word)) || /^-|^[A-Za-z_][A-Za-z0-9_]*=|^\d+[smh]?$/.test(word)

/** The package of a script that is started by its path: `node_modules/jest/bin/jest.js` is jest. */
const scriptName = (path: string): string =>
  /(?:^|\/)node_modules\/(?:\.bin\/)?(?:@[^/]+\/)?([^/]+)/.exec(path)?.[1] ??
  baseName(path).replace(/\.[cm]?js$/, "")

/** Null when the command holds nothing but wrappers. */
export const startedBy = (argv: ReadonlyArray<string>): StartedProgram | null => {
  const at = argv.findIndex((word) => !skipped(word))
  const word = argv[at]
  if (word === undefined) return null
  const args = argv.slice(at + 1)
  const name = baseName(word)
  if (/^(?:python|pypy)[\d.]*$|^py$/.test(name)) {
    const module = args.indexOf("-m")
    return module === -1 ? { name: "python", args } : startedBy(args.slice(module + 1))
  }
  if (name === "node" || name === "nodejs") {
    if (args.includes("--test")) return { name: "node", args }
    const script = args.findIndex((arg) => !arg.startsWith("-"))
    return script === -1
      ? { name: "node", args }
      : { name: scriptName(args[script] ?? ""), args: args.slice(script + 1) }
  }
  return { name, args }
}
