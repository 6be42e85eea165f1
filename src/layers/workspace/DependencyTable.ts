/**
 * Which directories hold installed dependencies, and which lock files say what is in them. Data, so that a new ecosystem
 * is a new row.
 */
export interface DependencyRow {
  /** The directory's own name, at whatever depth. */
  readonly name: string
  /** Names of lock files, looked for at every level of the repository. */
  readonly locks: ReadonlyArray<string>
}

export const dependencyTable: ReadonlyArray<DependencyRow> = [
  {
    name: "node_modules",
    locks: [
      "package-lock.json",
      "npm-shrinkwrap.json",
      "pnpm-lock.yaml",
      "yarn.lock",
      "bun.lock",
      "bun.lockb"
    ]
  },
  { name: ".venv", locks: ["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt"] },
  { name: "venv", locks: ["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt"] },
  { name: "vendor", locks: ["composer.lock", "Gemfile.lock", "go.sum"] },
  { name: "target", locks: ["Cargo.lock"] }
]

const lockNames: ReadonlySet<string> = new Set(dependencyTable.flatMap((row) => row.locks))

const lastSegment = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

export const isLockFile = (path: string): boolean => lockNames.has(lastSegment(path))

/** The lock files that speak for some dependency directories. */
export const locksFor = (directories: ReadonlyArray<string>): ReadonlySet<string> => {
  const names = new Set(directories.map(lastSegment))
  return new Set(dependencyTable.filter((row) => names.has(row.name)).flatMap((row) => row.locks))
}

/** The outermost dependency directories among ignored paths; those end in "/" when they are directories. */
export const dependencyDirectories = (ignored: ReadonlyArray<string>): ReadonlyArray<string> => {
  const names = new Set(dependencyTable.map((row) => row.name))
  return ignored
    .filter((path) => path.endsWith("/"))
    .map((path) => path.slice(0, -1))
    .filter((path) => names.has(lastSegment(path)))
}
