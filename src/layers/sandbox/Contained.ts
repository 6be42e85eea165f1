/**
 * Commands in a sandbox of bubblewrap. What they see is `/` read-only with the private places empty, the place that they
 * work in at the path of the user's own repository, and its dependencies as overlays of which nothing stays.
 */
import { Context, Effect, FileSystem, Layer, Path, type PlatformError } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { isWithin, shows, type SandboxView, viewOf } from "../../domain/SandboxView.ts"
import { type CommandPlace, Sandbox, type SandboxCommand, SandboxError } from "../../services/Sandbox.ts"
import { bubblewrapArguments } from "./Bubblewrap.ts"
import { HostEnvironment, scrubbedEnvironment } from "./Environment.ts"
import { hostNetwork } from "./HostNetwork.ts"
import type { FoundMachine } from "./Machine.ts"
import { programOf } from "./Named.ts"
import { overlaying } from "./Overlay.ts"
import { runProcess } from "./Runner.ts"
import { type Ceilings, watch } from "./Warden.ts"

export interface ContainedOptions {
  readonly machine: FoundMachine
  /** Absolute. */
  readonly bubblewrap: string
  readonly unshare: string
  readonly filter: Uint8Array
  readonly ceilings: Ceilings
  /** See `Process`. */
  readonly nice: string | null
  readonly bash: string | null
  readonly uid: number
  readonly gid: number
  /** The user's PATH, without relative entries. */
  readonly path_entries: ReadonlyArray<string>
}

type NonEmpty = readonly [string, ...ReadonlyArray<string>]

const refuse = (reason: SandboxError["reason"], message: string, cause?: unknown) =>
  new SandboxError({ reason, message, ...(cause === undefined ? {} : { cause }) })

/** Without the empty places for which there is no directory on this machine: nothing can be seen in those. */
const thatExist = Effect.fnUntraced(function* (view: SandboxView) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.filter(view, (mount) =>
    mount._tag === "Empty" ? Effect.orElseSucceed(fs.exists(mount.at), () => false) : Effect.succeed(true)
  )
})

/** Over these no clone is laid: a repository of dotfiles, or of /etc, is shown where the clone is. */
const needed = ["/bin", "/dev", "/etc", "/lib", "/proc", "/sbin", "/sys", "/usr"]

/** Where the place's root is shown: at the user's repository, unless something lies there that programs need. */
const rootInside = Effect.fnUntraced(function* (
  place: CommandPlace,
  { home }: FoundMachine,
  view: SandboxView
) {
  const fs = yield* FileSystem.FileSystem
  const covers = [...needed, ...(home === null ? [] : [home])].some((directory) =>
    isWithin(directory, place.at)
  )
  const inside = needed.some((directory) => isWithin(place.at, directory))
  if (covers || inside) return place.root
  const isThere = yield* fs.exists(place.at).pipe(Effect.orElseSucceed(() => false))
  return isThere || !shows(view, place.at) ? place.at : place.root
})

/** bubblewrap's last word on its status descriptor: the command was there, and this is how it ended. */
const ended = /"exit-code"/

const notStarted = (program: string) => (error: PlatformError.PlatformError | SandboxError) =>
  error._tag === "SandboxError"
    ? error
    : refuse("refused", `${program} cannot be started: ${error.message}`, error)

const run = Effect.fn("Sandbox.run")(function* (command: SandboxCommand, options: ContainedOptions) {
  const path = yield* Path.Path
  const host = yield* HostEnvironment
  const { place } = command
  const own = yield* thatExist(viewOf(options.machine, { writable: [] }))
  const root = yield* rootInside(place, options.machine, own)
  const overlay = yield* overlaying(place, root)
  const network = command.network === "host" ? yield* hostNetwork : { mounts: [], env: {} }
  const view: SandboxView = [
    ...(yield* thatExist(
      viewOf(options.machine, {
        writable: [{ from: place.root, at: root }, ...place.writable.map((at) => ({ from: at, at }))]
      })
    )),
    ...overlay.mounts,
    ...network.mounts.filter(({ at }) => !shows(own, at))
  ]
  // What a name leads to in the user's own tree stands in the place, at the same path.
  const isInPlace = (file: string): boolean => root === place.at && isWithin(file, root)
  const program = yield* programOf(command.argv[0], {
    ...{ root, path_entries: options.path_entries },
    shows: (found, real) => (shows(view, found) || isInPlace(found)) && (shows(view, real) || isInPlace(real))
  })
  const inside: NonEmpty = [
    options.bubblewrap,
    ...bubblewrapArguments({
      view,
      cwd: path.join(root, command.directory),
      network: command.network,
      uid: options.uid,
      gid: options.gid
    }),
    program,
    ...command.argv.slice(1)
  ]
  const argv: NonEmpty = overlay.wrap(options.unshare, inside)
  const environment = scrubbedEnvironment(host)
  const result = yield* runProcess({
    argv,
    cwd: "/",
    env: {
      ...environment,
      ...options.machine.variables,
      ...network.env,
      PATH: options.path_entries.join(":"),
      ...command.env
    },
    contained: {
      filter: options.filter,
      watch: (status) => watch(status, place.root, options.ceilings),
      nice: options.nice,
      closing: { bash: options.bash }
    },
    timeout_ms: command.timeout_ms,
    max_output_bytes: command.max_output_bytes
  }).pipe(Effect.mapError(notStarted(argv[0])))
  const { status, ...outcome } = result
  const { exit_code, output, stopped, timed_out } = outcome
  if (timed_out || stopped !== null || exit_code > 128 || ended.test(status)) return outcome
  const [complaint = ""] = output.trim().split("\n")
  return yield* refuse(
    "refused",
    `${JSON.stringify(command.argv[0])} was not started: ${complaint.replace(/^(?:bwrap|unshare|mount|nice): /, "")}`
  )
}, Effect.scoped)

type Needs = ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path

/** Runs commands contained by bubblewrap. Whether that holds on this machine is for `Proof.ts` to say. */
export const layerContained = (options: ContainedOptions): Layer.Layer<Sandbox, never, Needs> =>
  Layer.effect(
    Sandbox,
    Effect.gen(function* () {
      const services = yield* Effect.map(
        Effect.context<Needs>(),
        Context.pick(ChildProcessSpawner.ChildProcessSpawner, FileSystem.FileSystem, Path.Path)
      )
      return Sandbox.of({
        kind: "bubblewrap",
        overlays: true,
        run: (command) => Effect.provideContext(run(command, options), services)
      })
    })
  )
