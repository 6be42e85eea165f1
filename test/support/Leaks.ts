import { createHash } from "node:crypto"
import {
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  type Stats
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"

/** One path of a snapshot. Times are left out on purpose: only content and what the user can see count. */
export interface Entry {
  readonly kind: "file" | "directory" | "symlink" | "other"
  /** Permission bits, octal. */
  readonly mode: string
  readonly size: number
  /** SHA-256 of a file's bytes; the target of a link. */
  readonly content: string
  /** Names of a file, so that a hard link from elsewhere is seen. */
  readonly links: number
  /** The text of a short file, for a readable difference. */
  readonly text: string | undefined
}

/** Path below the folder -> what lies there. `.` is the folder itself. */
export type Snapshot = ReadonlyMap<string, Entry>

const shortFile = 8192

const textOf = (bytes: Buffer): string | undefined =>
  bytes.length > shortFile || bytes.includes(0) ? undefined : bytes.toString("utf8")

const entryOf = (path: string, stats: Stats): Entry => {
  const mode = (stats.mode & 0o7777).toString(8)
  const other = { mode, size: 0, content: "", links: 1, text: undefined }
  if (stats.isSymbolicLink()) return { ...other, kind: "symlink", mode: "", content: readlinkSync(path) }
  if (stats.isDirectory()) return { ...other, kind: "directory" }
  if (!stats.isFile()) return { ...other, kind: "other" }
  const bytes = readFileSync(path)
  const content = createHash("sha256").update(bytes).digest("hex")
  return { kind: "file", mode, size: bytes.length, content, links: stats.nlink, text: textOf(bytes) }
}

/**
 * Every path below `folder`, links not followed, `.git` included: index, refs, HEAD, config, logs and every object are
 * files like others.
 */
export const snapshotTree = (folder: string): Snapshot => {
  const entries = new Map<string, Entry>()
  const visit = (path: string) => {
    const absolute = join(folder, path)
    const entry = entryOf(absolute, lstatSync(absolute))
    entries.set(path, entry)
    if (entry.kind !== "directory") return
    for (const name of readdirSync(absolute).toSorted()) visit(path === "." ? name : `${path}/${name}`)
  }
  visit(".")
  return entries
}

const firstDifference = (before: string, after: string): string => {
  const [left, right] = [before.split("\n"), after.split("\n")]
  const at = left.findIndex((line, index) => line !== right[index])
  const line = at === -1 ? left.length : at
  return `line ${line + 1}: ${JSON.stringify(left[line] ?? "(end)")} -> ${JSON.stringify(right[line] ?? "(end)")}`
}

const compare = (path: string, before: Entry, after: Entry): ReadonlyArray<string> => {
  const changes: Array<string> = []
  if (before.kind !== after.kind) changes.push(`${before.kind} -> ${after.kind}`)
  else if (before.kind === "symlink" && before.content !== after.content)
    changes.push(`target ${before.content} -> ${after.content}`)
  else if (before.content !== after.content) {
    changes.push(`content of ${before.size} bytes -> ${after.size} bytes`)
    if (before.text !== undefined && after.text !== undefined)
      changes.push(firstDifference(before.text, after.text))
  }
  if (before.mode !== after.mode) changes.push(`mode ${before.mode} -> ${after.mode}`)
  if (before.links !== after.links) changes.push(`hard links ${before.links} -> ${after.links}`)
  return changes.length === 0 ? [] : [`~ ${path}: ${changes.join("; ")}`]
}

/** One line per path that differs: `+` added, `-` removed, `~` changed and how. */
export const diffTrees = (before: Snapshot, after: Snapshot): ReadonlyArray<string> =>
  [...new Set([...before.keys(), ...after.keys()])].toSorted().flatMap((path) => {
    const [left, right] = [before.get(path), after.get(path)]
    if (left === undefined) return [`+ ${path} (${right?.kind ?? "nothing"})`]
    return right === undefined ? [`- ${path} (${left.kind})`] : compare(path, left, right)
  })

/** Fails with the differences when the folder is not byte for byte what it was. */
export const assertUntouched = (before: Snapshot, after: Snapshot): void => {
  const lines = diffTrees(before, after)
  if (lines.length === 0) return
  const shown = lines.length > 40 ? [...lines.slice(0, 40), `and ${lines.length - 40} more`] : lines
  throw new Error(`the folder was touched:\n${shown.join("\n")}`)
}

export interface RunningProcess {
  readonly pid: number
  readonly command: string
  /** Why it is counted: its environment, its working directory or an open file. */
  readonly why: string
}

const tryRead = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    // The process has ended meanwhile, or belongs to another user.
    return undefined
  }
}

const exitingFlag = 0x4
const killBit = 1n << 8n

/** A zombie, a process that is on its way out, or one with a SIGKILL under way: nobody can save it any more. */
const isDying = (pid: number): boolean => {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
  if (stat === undefined) return true
  const [state, , , , , , flags] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  if (state === "Z" || state === "X" || (Number(flags) & exitingFlag) !== 0) return true
  const status = tryRead(() => readFileSync(`/proc/${pid}/status`, "utf8")) ?? ""
  const pending = [...status.matchAll(/^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$/gm)]
  return pending.some(([, mask]) => (BigInt(`0x${mask ?? "0"}`) & killBit) !== 0n)
}

const reasonOf = (pid: number, token: string, folders: ReadonlyArray<string>): string | undefined => {
  const environment = tryRead(() => readFileSync(`/proc/${pid}/environ`, "utf8"))
  if (environment?.split("\0").includes(`LOOPLANE_TEST_TOKEN=${token}`) === true) return "its environment"
  const inside = (path: string | undefined) =>
    path !== undefined && folders.some((folder) => path === folder || path.startsWith(`${folder}/`))
  // A scrubbed environment keeps no token, but home and temporary folder still point here.
  const names = environment?.split("\0").find((pair) => inside(pair.slice(pair.indexOf("=") + 1)))
  if (names !== undefined) return `its environment (${names.slice(0, names.indexOf("="))})`
  if (inside(tryRead(() => readlinkSync(`/proc/${pid}/cwd`)))) return "its working directory"
  const open = (tryRead(() => readdirSync(`/proc/${pid}/fd`)) ?? [])
    .map((fd) => tryRead(() => readlinkSync(`/proc/${pid}/fd/${fd}`)))
    .find(inside)
  return open === undefined ? undefined : `the open file ${open}`
}

/**
 * Processes that belong to a test run: their environment holds `LOOPLANE_TEST_TOKEN=token` or names one of the folders,
 * or they work or hold a file there. This process is never counted. Only Linux shows the environment of others; on
 * other systems `processCheck` is false and the list is empty.
 */
export const processesOf = (
  token: string,
  folders: ReadonlyArray<string> = []
): ReadonlyArray<RunningProcess> =>
  (tryRead(() => readdirSync("/proc")) ?? [])
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const pid = Number(name)
      const why = reasonOf(pid, token, folders)
      if (why === undefined || isDying(pid)) return []
      const line = tryRead(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? ""
      return [{ pid, command: line.split("\0").join(" ").trim(), why }]
    })

/** Whether `processesOf` can see anything on this system. */
export const processCheck = tryRead(() => readFileSync("/proc/self/environ")) !== undefined

const isDatabase = (path: string): boolean => {
  const file = openSync(path, "r")
  try {
    const head = Buffer.alloc(16)
    const length = readSync(file, head)
    return length === 0 || head.toString("latin1") === "SQLite format 3\0"
  } finally {
    closeSync(file)
  }
}

/** Whether somebody else could take the lock now. The lock is an exclusive SQLite transaction on the file. */
export const lockIsFree = (path: string): boolean => {
  const database = new DatabaseSync(path)
  try {
    database.exec("PRAGMA busy_timeout = 0")
    database.exec("BEGIN EXCLUSIVE")
    database.exec("ROLLBACK")
    return true
  } catch {
    return false
  } finally {
    database.close()
  }
}

/**
 * Locks that a run has left below `folder`: a lock database that cannot be taken, and every other file that git or a
 * tool would take for a lock (`*.lock`). Files of a work tree (`workspace/`) are the project's own.
 */
export const heldLocks = (folder: string): ReadonlyArray<string> =>
  [...snapshotTree(folder)]
    .filter(([path, entry]) => entry.kind === "file" && /(^|\/)[^/]*lock[^/]*$/i.test(path))
    .filter(([path]) => !/(^|\/)(workspace|blobs)\//.test(path))
    .filter(([path]) => {
      const absolute = join(folder, path)
      return isDatabase(absolute) && !/\/git\/.*\.lock$/.test(absolute)
        ? !lockIsFree(absolute)
        : path.endsWith(".lock")
    })
    .map(([path]) => path)
