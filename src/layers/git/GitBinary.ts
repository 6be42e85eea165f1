/**
 * Runs the git program so that nothing a repository or a user planted can start another one: no system, global or
 * inherited settings, no hooks, no file system monitor, no transport, no prompt.
 */
import { Effect, type PlatformError, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import type { ByteString } from "../../domain/patch/ByteString.ts"
import { GitError } from "../../services/Git.ts"
import { absolutePath, HostEnvironment } from "../sandbox/Environment.ts"

export interface GitCommand {
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  /** Beyond this the command fails: git's lists are never cut. */
  readonly max_output_bytes?: number
  readonly timeout_ms?: number
}

export interface GitOutput {
  readonly exit_code: number
  readonly stdout: Uint8Array
  /** The last 8 KiB. */
  readonly stderr: string
}

/** A git directory of our own with a work tree and an index: the three need not lie together. */
export interface Repository {
  readonly git_dir: string
  readonly work_tree: string
  readonly index: string
}

const defaultMaxOutput = 512 * 1024 * 1024
const defaultTimeout = 120_000

const safe = [
  "--no-pager",
  ...[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "safe.directory=*"
  ].flatMap((setting) => ["-c", setting])
]

const environment = (path: string): Record<string, string> => ({
  PATH: path,
  LC_ALL: "C",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_ASKPASS: "/usr/bin/false",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_EDITOR: "/usr/bin/false",
  GIT_LITERAL_PATHSPECS: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_SSH_COMMAND: "/usr/bin/false",
  GIT_TERMINAL_PROMPT: "0"
})

const gather = (
  stream: Stream.Stream<Uint8Array, PlatformError.PlatformError>,
  onChunk: (chunk: Uint8Array) => boolean
) =>
  Stream.runForEach(stream, (chunk) =>
    onChunk(chunk)
      ? Effect.void
      : Effect.fail(new GitError({ reason: "failed", message: "git wrote more than looplane reads" }))
  )

const spawnFailure = (error: PlatformError.PlatformError): GitError =>
  error.reason._tag === "NotFound" && error.reason.module === "ChildProcess"
    ? new GitError({ reason: "missing_git", message: "git was not found on PATH: install git", cause: error })
    : new GitError({ reason: "failed", message: `git could not be run: ${error.message}`, cause: error })

/** Runs git to its end. A non-zero exit is a value. */
export const runGit = Effect.fnUntraced(function* (command: GitCommand) {
  const host = yield* HostEnvironment
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const handle = yield* spawner
    .spawn(
      ChildProcess.make("git", [...safe, ...command.args], {
        cwd: command.cwd,
        env: { ...environment(absolutePath(host)), ...command.env },
        stdin: command.stdin === undefined ? "ignore" : Stream.succeed(command.stdin),
        forceKillAfter: "500 millis"
      })
    )
    .pipe(Effect.mapError(spawnFailure))
  const limit = command.max_output_bytes ?? defaultMaxOutput
  const stdout: Array<Uint8Array> = []
  let size = 0
  let stderr: Buffer = Buffer.alloc(0)
  const [exit_code] = yield* Effect.all(
    [
      handle.exitCode,
      gather(handle.stdout, (chunk) => {
        stdout.push(chunk)
        size += chunk.length
        return size <= limit
      }),
      gather(handle.stderr, (chunk) => {
        stderr = Buffer.concat([stderr, chunk]).subarray(-8192)
        return true
      })
    ],
    { concurrency: "unbounded" }
  ).pipe(
    Effect.catchTag("PlatformError", (error) => Effect.fail(spawnFailure(error))),
    Effect.timeoutOrElse({
      duration: command.timeout_ms ?? defaultTimeout,
      orElse: () =>
        Effect.fail(
          new GitError({ reason: "failed", message: `git ${command.args[0] ?? ""} did not end in time` })
        )
    })
  )
  const output: GitOutput = { exit_code, stdout: Buffer.concat(stdout), stderr: stderr.toString("utf8") }
  return output
}, Effect.scoped)

/** The line of git's complaint that says most, without its "fatal:": the one that names a lock, else the last. */
export const complaint = (output: GitOutput): string => {
  const lines = output.stderr.trim().split("\n")
  const locked = lines.find((line) => /[Uu]nable to create '.*\.lock'/.test(line))
  if (locked !== undefined)
    return `${locked.replace(/^.*[Uu]nable to create/, "unable to create")} Remove it if no git is running`
  return (lines.at(-1) ?? "").replace(/^(?:fatal|error): /, "")
}

/** Runs git and returns its stdout; any exit but 0 is a failure. */
export const git = Effect.fnUntraced(function* (command: GitCommand) {
  const output = yield* runGit(command)
  if (output.exit_code === 0) return output.stdout
  const what = command.args.find((arg, at, args) => !arg.startsWith("-") && args[at - 1] !== "-c") ?? ""
  return yield* new GitError({
    reason: "failed",
    message: `git ${what} failed (exit ${output.exit_code}): ${complaint(output)}`
  })
})

/** Runs git on a git directory of our own. */
export const gitIn = (
  repository: Repository,
  args: ReadonlyArray<string>,
  options: Omit<GitCommand, "args" | "cwd"> = {}
) =>
  git({
    ...options,
    cwd: repository.work_tree,
    args: [`--git-dir=${repository.git_dir}`, `--work-tree=${repository.work_tree}`, ...args],
    env: { GIT_INDEX_FILE: repository.index, ...options.env }
  })

/** The records of a NUL-separated list, as bytes: a file name need not be UTF-8. */
export const splitNul = (bytes: Uint8Array): ReadonlyArray<ByteString> => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
  return text === "" ? [] : (text.endsWith("\0") ? text.slice(0, -1) : text).split("\0")
}

/** The opposite of `splitNul`. */
export const joinNul = (records: ReadonlyArray<ByteString>): Uint8Array =>
  Buffer.from(records.map((record) => `${record}\0`).join(""), "latin1")

/** A name in bytes as the file system services take it; undefined when it is not UTF-8. */
export const textOf = (name: ByteString): string | undefined => {
  const text = Buffer.from(name, "latin1").toString("utf8")
  return Buffer.from(text, "utf8").toString("latin1") === name ? text : undefined
}

/** A name in bytes as it is shown: as it is when it is UTF-8, else quoted and escaped as git does. */
export const displayName = (name: ByteString): string =>
  textOf(name) ??
  `"${name.replace(/[^\x20-\x7e]|["\\]/g, (char) =>
    char === '"' || char === "\\" ? `\\${char}` : `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`
  )}"`

/** A text as the bytes of a name. */
export const nameOf = (text: string): ByteString => Buffer.from(text, "utf8").toString("latin1")

/** The path of a name in bytes below a root, for calls that take bytes: the FileSystem service takes only text. */
export const bytePath = (root: string, name: ByteString): Buffer =>
  Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")])

/** An output that is one line, such as an object's id. */
export const lineOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1").trim()

/** Byte order, as git sorts names. */
export const byBytes = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
