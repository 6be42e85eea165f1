import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** A file by its text (mode 644), its exact bytes, or a symbolic link. */
export type FileSpec =
  | string
  | { readonly text: string; readonly mode?: number }
  | { readonly b64: string; readonly mode?: number }
  | { readonly symlink: string }

export type Files = Readonly<Record<string, FileSpec>>

export interface RepoSpec {
  /** The tree of the first commit. */
  readonly files: Files
  readonly message?: string
  /** Further commits: files laid over the tree before. */
  readonly commits?: ReadonlyArray<{ readonly files: Files; readonly message: string }>
  /** Written after the commits. The spec's own `.gitignore` must cover them; that is checked. */
  readonly ignored?: Files
  /** Written after the commits and not ignored; that is checked. */
  readonly untracked?: Files
  /** Tracked files with other content than HEAD; that is checked. */
  readonly dirty?: Files
  /** Where a command would be started, relative to the root. Absent: the root. */
  readonly subdirectory?: string
}

export interface Repo extends AsyncDisposable {
  /** The folder that holds nothing but the repository: a write beside it is seen there. */
  readonly folder: string
  /** The work tree, with every link resolved. */
  readonly root: string
  /** `root`, or the subdirectory of the spec. */
  readonly cwd: string
  /** HEAD when the fixture was made. The same spec gives the same id on every machine. */
  readonly head: string
  /** Runs git with a scrubbed environment and returns stdout without its final newline. */
  readonly git: (...args: ReadonlyArray<string>) => string
  readonly write: (files: Files) => void
  readonly read: (path: string) => string
  /** Writes, adds everything that is not ignored and commits on `main`. Returns the commit's id. */
  readonly commit: (files: Files, message: string) => string
  readonly dispose: () => void
}

/** What git sees: nothing of the user's configuration, always the same person at the same time. */
export const gitEnvironment = (home: string): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  HOME: home,
  XDG_CONFIG_HOME: join(home, ".config"),
  LC_ALL: "C",
  TZ: "UTC",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
  GIT_AUTHOR_NAME: "Fixture",
  GIT_AUTHOR_EMAIL: "fixture@example.invalid",
  GIT_AUTHOR_DATE: "2026-01-02T03:04:05Z",
  GIT_COMMITTER_NAME: "Fixture",
  GIT_COMMITTER_EMAIL: "fixture@example.invalid",
  GIT_COMMITTER_DATE: "2026-01-02T03:04:05Z"
})

/** Writes files below `root`, with their modes whatever the umask is. */
export const writeFiles = (root: string, files: Files): void => {
  for (const [path, spec] of Object.entries(files)) {
    const target = join(root, path)
    mkdirSync(dirname(target), { recursive: true })
    rmSync(target, { force: true })
    if (typeof spec !== "string" && "symlink" in spec) {
      symlinkSync(spec.symlink, target)
      continue
    }
    const content =
      typeof spec === "string" ? spec : "text" in spec ? spec.text : Buffer.from(spec.b64, "base64")
    writeFileSync(target, content)
    chmodSync(target, typeof spec === "string" ? 0o644 : (spec.mode ?? 0o644))
  }
}

/** Fails when a file of the spec is not in the state that the spec promises. */
const checkStates = (spec: RepoSpec, git: Repo["git"]): void => {
  const seen = git("status", "--porcelain=v1", "--ignored=matching", "--untracked-files=all", "-z")
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => [line.slice(3), line.slice(0, 2)] as const)
  const expected = [
    [spec.ignored, "!!"],
    [spec.untracked, "??"],
    [spec.dirty, " M"]
  ] as const
  for (const [files, state] of expected) {
    for (const path of Object.keys(files ?? {})) {
      const found = seen.find(([at]) => at === path || (at.endsWith("/") && path.startsWith(at)))?.[1]
      if (found !== state) throw new Error(`fixture: ${path} should be "${state}" and is "${found ?? "  "}"`)
    }
  }
}

const templates = fileURLToPath(new URL("../../node_modules/.cache/looplane-tests/repos", import.meta.url))

/**
 * The committed part of a repository: made once by git, then copied. The same spec gives the same commits, so a copy is
 * what git would make again, at a fraction of its processes.
 */
const fromTemplate = (spec: RepoSpec, root: string, make: () => string): string => {
  const { commits, files, message } = spec
  const key = createHash("sha256")
    .update(JSON.stringify([files, message, commits]))
    .digest("hex")
  const template = join(templates, key)
  if (existsSync(template)) {
    cpSync(template, root, { recursive: true, verbatimSymlinks: true })
    return readFileSync(join(root, ".git", "refs", "heads", "main"), "utf8").trim()
  }
  const head = make()
  mkdirSync(templates, { recursive: true })
  const fresh = mkdtempSync(join(templates, "new-"))
  cpSync(root, fresh, { recursive: true, verbatimSymlinks: true })
  try {
    renameSync(fresh, template)
  } catch {
    // Another worker was faster with the same one.
    rmSync(fresh, { recursive: true, force: true })
  }
  return head
}

/** Makes a real repository in a fresh temporary folder. */
export const makeRepo = (spec: RepoSpec): Repo => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "looplane-repo-")))
  const root = join(folder, "repo")
  const env = gitEnvironment(folder)
  const git = (...args: ReadonlyArray<string>): string =>
    execFileSync("git", args, {
      cwd: root,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"]
    }).replace(/\n$/, "")
  const write = (files: Files) => writeFiles(root, files)
  const commit = (files: Files, message: string) => {
    write(files)
    git("add", "--all")
    git("commit", "--quiet", "--no-verify", "--allow-empty", "--message", message)
    return readFileSync(join(root, ".git", "refs", "heads", "main"), "utf8").trim()
  }
  const dispose = () => rmSync(folder, { recursive: true, force: true })
  const commitAll = (): string => {
    mkdirSync(root)
    git("-c", "init.defaultBranch=main", "init", "--quiet", "--template=")
    // Automatic maintenance would go on in the background after the fixture is ready.
    const quiet = "[core]\n\tautocrlf = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    appendFileSync(join(root, ".git", "config"), quiet)
    let head = commit(spec.files, spec.message ?? "fixture")
    for (const next of spec.commits ?? []) head = commit(next.files, next.message)
    return head
  }
  const build = (): string => {
    const head = fromTemplate(spec, root, commitAll)
    write({ ...spec.ignored, ...spec.untracked, ...spec.dirty })
    if (spec.ignored !== undefined || spec.untracked !== undefined || spec.dirty !== undefined)
      checkStates(spec, git)
    return head
  }

  try {
    const head = build()
    return {
      folder,
      root,
      cwd: spec.subdirectory === undefined ? root : join(root, spec.subdirectory),
      head,
      git,
      write,
      read: (path) => readFileSync(join(root, path), "utf8"),
      commit,
      dispose,
      [Symbol.asyncDispose]: async () => dispose()
    }
  } catch (cause) {
    dispose()
    throw cause
  }
}
