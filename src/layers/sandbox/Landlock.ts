/**
 * Commands contained by Landlock and a filter of system calls, for a Linux on which users may make no namespaces. What a
 * command may read, write and execute is granted path by path; the network, signals and the insides of other processes
 * are refused.
 *
 * It holds less than bubblewrap, and these gaps cannot be closed without namespaces:
 * - other processes are seen in `/proc`: that they run, and their command lines; not their environment, memory or files;
 * - that a file exists, its size, mode and times can be asked for wherever it lies; and modes, owners, times and extended
 *   attributes of files that the user owns can be set, though not their bytes;
 * - the priority of the user's other processes can be set;
 * - what a place holds is writable whole: `.git/hooks` of a clone too;
 * - the place stands at its own path, and dependencies in it are copies that the command can change;
 * - `/tmp` and `/dev/shm` are refused rather than empty: only what TMPDIR names is there for temporary files.
 */
import { Clock, Context, Effect, FileSystem, Layer, Path, type PlatformError, Random } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { directoriesToList, grantsOf } from "../../domain/SandboxGrants.ts"
import { isWithin, type SandboxView, viewOf } from "../../domain/SandboxView.ts"
import { type CommandPlace, Sandbox, type SandboxCommand, SandboxError } from "../../services/Sandbox.ts"
import { HostEnvironment, scrubbedEnvironment } from "./Environment.ts"
import { endMarked, markName } from "./Leftovers.ts"
import type { FoundMachine } from "./Machine.ts"
import { programOf } from "./Named.ts"
import { runProcess } from "./Runner.ts"
import { type Ceilings, watchDescendants } from "./Warden.ts"

export interface LandlockOptions {
  readonly machine: FoundMachine
  /** Absolute; see `native/landlock.c`. */
  readonly helper: string
  /** Refuses every socket: there is no other network than the host's. */
  readonly filter: Uint8Array
  readonly ceilings: Ceilings
  /** See `Process`. */
  readonly nice: string | null
  /** The user's PATH, without relative entries. */
  readonly path_entries: ReadonlyArray<string>
}

/** Hidden as well where nothing can be mounted over them: real devices, and what this machine serves. */
const alsoHidden = ["/dev", "/srv"]

/** Without these nothing runs: a repository of dotfiles, or of /etc, is not hidden beyond what is hidden anyway. */
const needed = ["/bin", "/etc", "/lib", "/proc", "/sbin", "/sys", "/usr"]

const devices = ["null", "zero", "full", "random", "urandom", "tty"].map((name) => `/dev/${name}`)

const refuse = (reason: SandboxError["reason"], message: string, cause?: unknown) =>
  new SandboxError({ reason, message, ...(cause === undefined ? {} : { cause }) })

const realOr = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.orElseSucceed(fs.realPath(file), () => file)
})

/** What a command may read and execute: what the view of the machine shows, without the user's repository. */
const readable = Effect.fnUntraced(function* (machine: FoundMachine, place: CommandPlace) {
  const fs = yield* FileSystem.FileSystem
  const source = yield* realOr(place.at)
  const isNeeded = [...needed, ...(machine.home === null ? [] : [machine.home])].some((directory) =>
    isWithin(directory, source)
  )
  const view: SandboxView = [
    ...viewOf({ ...machine, hidden: [...machine.hidden, ...alsoHidden] }, { writable: [] }),
    ...(isNeeded ? [] : [{ _tag: "Empty" as const, at: source }])
  ]
  const listings = new Map<string, ReadonlyArray<string>>()
  for (const directory of directoriesToList(view)) {
    const entries = yield* fs.readDirectoryEntries(directory).pipe(Effect.orElseSucceed(() => []))
    listings.set(
      directory,
      entries.filter(({ type }) => type !== "SymbolicLink").map(({ name }) => name)
    )
  }
  return grantsOf(view, listings)
})

/** What the helper says when the command was never started. */
const setUpFailure = /^landlock: ([^\n]*)\n?$/

const notStarted = (error: PlatformError.PlatformError | SandboxError) =>
  error._tag === "SandboxError"
    ? error
    : refuse("refused", `landlock's helper cannot be started: ${error.message}`, error)

const run = Effect.fn("Sandbox.run")(function* (command: SandboxCommand, options: LandlockOptions) {
  const path = yield* Path.Path
  const host = yield* HostEnvironment
  const { place } = command
  const quoted = JSON.stringify(command.argv[0])
  if (command.network !== "none")
    return yield* refuse(
      "refused",
      `${quoted} was not started: the landlock backend refuses the network, --sandbox-backend bubblewrap may give it`
    )
  const reads = yield* readable(options.machine, place)
  const writes = yield* Effect.forEach([place.root, ...place.writable], realOr)
  const program = yield* programOf(command.argv[0], {
    ...{ root: place.root, path_entries: options.path_entries },
    // A link on the way needs no right: what it leads to does.
    shows: (_, real) => [...reads, ...writes].some((grant) => isWithin(real, grant))
  })
  const option = (name: string, paths: ReadonlyArray<string>) => paths.flatMap((each) => [name, each])
  const mark = `${process.pid}-${yield* Random.nextInt}-${yield* Clock.currentTimeMillis}`
  // The helper ends everything, unless it was killed itself. Added before the spawn: runs after the group was ended.
  yield* Effect.addFinalizer(() => endMarked(mark))
  const result = yield* runProcess({
    argv: [
      options.helper,
      ...option("--read", reads),
      ...option("--write", writes),
      ...option("--device", devices),
      ...option("--processes", [String(options.ceilings.processes)]),
      "--",
      program,
      ...command.argv.slice(1)
    ],
    cwd: path.join(place.root, command.directory),
    env: {
      ...scrubbedEnvironment(host),
      ...options.machine.variables,
      PATH: options.path_entries.join(":"),
      ...command.env,
      [markName]: mark
    },
    contained: {
      filter: options.filter,
      watch: (status) => watchDescendants(status, place.root, options.ceilings),
      nice: options.nice,
      closing: null
    },
    timeout_ms: command.timeout_ms,
    max_output_bytes: command.max_output_bytes
  }).pipe(Effect.mapError(notStarted))
  const complaint = setUpFailure.exec(result.output)
  if (result.exit_code !== 126 || complaint === null) return result
  return yield* refuse("refused", `${quoted} was not started: ${complaint[1] ?? ""}`)
}, Effect.scoped)

type Needs = ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path

/** Runs commands contained by Landlock. Whether that holds on this machine is for `Proof.ts` to say. */
export const layerLandlock = (options: LandlockOptions): Layer.Layer<Sandbox, never, Needs> =>
  Layer.effect(
    Sandbox,
    Effect.gen(function* () {
      const services = yield* Effect.map(
        Effect.context<Needs>(),
        Context.pick(ChildProcessSpawner.ChildProcessSpawner, FileSystem.FileSystem, Path.Path)
      )
      return Sandbox.of({
        kind: "landlock",
        overlays: false,
        run: (command) => Effect.provideContext(run(command, options), services)
      })
    })
  )
