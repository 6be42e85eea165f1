/**
 * Which sandbox this machine has: the first that proves itself. A proof holds for the machine as it runs (its boot, its
 * kernel), the program and the profile, and is made once.
 */
import {
  Context,
  Effect,
  FileSystem,
  Layer,
  Option,
  Path,
  type PlatformError,
  Schema,
  type Scope
} from "effect"
import { SecureRandom } from "effect/crypto"
import type { ChildProcessSpawner } from "effect/process"
import { arch, platform, release } from "node:os"
import type { SandboxBackend, SandboxProof } from "../../domain/SandboxRule.ts"
import { Sandbox, type SandboxError } from "../../services/Sandbox.ts"
import { bytesAt, textAt } from "../fs/Files.ts"
import { sha256 } from "../journal/Hash.ts"
import { bubblewrapArguments } from "./Bubblewrap.ts"
import { layerContained } from "./Contained.ts"
import { isWithin } from "../../domain/SandboxView.ts"
import { absolutePath, HostEnvironment } from "./Environment.ts"
import { findHelper } from "./Helper.ts"
import { layerLandlock } from "./Landlock.ts"
import { findMachine, type FoundMachine, userPath } from "./Machine.ts"
import { findProgram } from "./Named.ts"
import { prove } from "./Proof.ts"
import { seccompFilter } from "./Seccomp.ts"
import { type Ceilings, usualCeilings } from "./Warden.ts"

export interface BackendOptions {
  readonly backend: SandboxBackend
  /** Where proofs are kept; the user's own. Null: each time anew. */
  readonly cache_root: string | null
  /** What is looplane's own: no command may see it. */
  readonly hidden: ReadonlyArray<string>
  readonly read_roots: ReadonlyArray<string>
  /** The repository whose code will run: no program of looplane's comes from there. */
  readonly repository?: string
  /** Of each command; absent: the usual ones. */
  readonly ceilings?: Ceilings
  /** Where looplane itself lies: what its start put on PATH is not the user's. */
  readonly own: ReadonlyArray<string>
}

/** What was found, and the sandbox that it stands for when it is proved. */
export interface FoundBackend {
  readonly proof: SandboxProof
  readonly sandbox: Sandbox["Service"] | null
}

const notProved = (reason: string, remedy: string): FoundBackend => ({
  proof: { _tag: "NotProved", reason, remedy },
  sandbox: null
})

const install = "install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap)"
const allow =
  "let users make namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), and containers too"

const newer =
  "use Linux 6.12 or later with landlock among its security modules (the lsm= option of its start)"

/** What helps against a failure of bubblewrap's trial. */
const remedyOf = (failures: ReadonlyArray<string>): string =>
  failures.some((failure) =>
    /namespace|uid map|RTM_|NETLINK|loopback|unshare|Operation not permitted/.test(failure)
  )
    ? allow
    : "see docs/sandbox.md"

const Proofs = Schema.fromJsonString(
  Schema.Struct({ version: Schema.Literal(1), proofs: Schema.Array(Schema.String) })
)

const maxProofs = 20

/** What a proof is good for: `parts` are what contains. Paths of this user are not in it: where they lead, the same
 * mounts or grants lie. */
const keyOf = Effect.fnUntraced(function* (parts: ReadonlyArray<unknown>) {
  const boot = (yield* textAt("/proc/sys/kernel/random/boot_id")) ?? ""
  return sha256(Buffer.from(JSON.stringify([boot, release(), arch(), process.version, ...parts])))
})

/** A program by what shows that it is another one. */
const programKey = Effect.fnUntraced(function* (program: string) {
  const fs = yield* FileSystem.FileSystem
  const info = yield* fs.stat(program)
  return `${program} ${info.size} ${Option.getOrUndefined(info.mtime)?.getTime() ?? ""}`
})

const known = Effect.fnUntraced(function* (file: string) {
  const bytes = yield* bytesAt(file)
  const decoded = yield* Effect.option(
    Schema.decodeUnknownEffect(Proofs)(bytes === null ? "" : new TextDecoder().decode(bytes))
  )
  return Option.match(decoded, { onNone: () => [], onSome: ({ proofs }) => proofs })
})

/** Makes the folder ours alone; null when it cannot be. */
const ownFolder = Effect.fnUntraced(function* (folder: string, uid: number) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.gen(function* () {
    yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
    const info = yield* fs.lstat(folder)
    const ours = info.type === "Directory" && Option.contains(info.uid, uid) && (info.mode & 0o077) === 0
    return ours ? yield* fs.realPath(folder) : null
  }).pipe(Effect.orElseSucceed(() => null))
})

/** Directories in which nothing of a command may come to be. */
const forbiddenFor = ({ hidden, home }: FoundMachine): ReadonlyArray<string> => [
  ...["/", "/etc", "/usr", "/opt", "/var", "/srv", "/tmp", "/var/tmp", "/run", "/dev/shm"],
  ...hidden,
  ...(home === null ? [] : [home])
]

interface Candidate {
  readonly kind: Extract<SandboxProof, { readonly _tag: "Proved" }>["kind"]
  readonly sandbox: Sandbox["Service"]
  /** See `keyOf`. */
  readonly parts: ReadonlyArray<unknown>
  /** What helps against failures of the trial. */
  readonly remedy: (failures: ReadonlyArray<string>) => string
}

/** `folder`: where proofs are kept, if anywhere. */
const proveOnce = Effect.fnUntraced(function* (
  { kind, parts, remedy, sandbox }: Candidate,
  machine: FoundMachine,
  folder: string | null
) {
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const proved: FoundBackend = { proof: { _tag: "Proved", kind }, sandbox }
  const key = yield* keyOf([kind, ...parts])
  const file = folder === null ? null : path.join(folder, "sandbox.json")
  const proofs = file === null ? [] : yield* known(file)
  if (proofs.includes(key)) return proved
  const scratch = folder ?? (yield* fs.makeTempDirectoryScoped({ prefix: "looplane-" }))
  const failures = yield* prove(sandbox, { scratch, forbidden: forbiddenFor(machine) })
  if (failures.length > 0)
    return notProved(`${kind} does not contain them (${failures.join("; ")})`, remedy(failures))
  if (file !== null) {
    const random = yield* SecureRandom.SecureRandom
    const made = `${file}.${yield* random.uuidV4()}`
    const text = JSON.stringify({ version: 1, proofs: [...proofs, key].slice(-maxProofs) })
    // Without it the next run makes the proof again.
    yield* fs.writeFileString(made, text, { flag: "wx", mode: 0o600 }).pipe(
      Effect.andThen(fs.rename(made, file)),
      Effect.onError(() => Effect.ignore(fs.remove(made, { force: true }))),
      Effect.ignore
    )
  }
  return proved
})

/** What every backend is made from. */
interface Ground {
  readonly machine: FoundMachine
  readonly path_entries: ReadonlyArray<string>
  /** Where looplane's own programs may come from: nothing of the repository, and nothing that npm put there. */
  readonly trusted: ReadonlyArray<string>
  readonly ceilings: Ceilings
  readonly nice: string | null
  readonly bash: string | null
  readonly uid: number
  /** Ours alone; null when there is none. */
  readonly folder: string | null
}

const noFilter = notProved(`there is no filter of system calls for ${arch()} yet`, "use another machine")

const bubblewrap = Effect.fnUntraced(function* (ground: Ground) {
  const { folder, machine, path_entries, uid } = ground
  const filter = seccompFilter(arch(), "own")
  if (filter === null) return noFilter
  const program = yield* findProgram(ground.trusted, "bwrap")
  if (Option.isNone(program)) return notProved("bubblewrap is not on PATH", install)
  const unshare = yield* findProgram(ground.trusted, "unshare")
  if (Option.isNone(unshare)) return notProved("unshare is not on PATH", "install util-linux")
  const gid = process.getgid?.() ?? 0
  const context = yield* Layer.build(
    layerContained({
      ...{
        machine,
        path_entries,
        filter,
        uid,
        gid,
        ceilings: ground.ceilings,
        nice: ground.nice,
        bash: ground.bash
      },
      bubblewrap: program.value,
      unshare: unshare.value
    })
  )
  const programs = yield* Effect.forEach([program.value, unshare.value], programKey)
  const profile = bubblewrapArguments({ view: [], cwd: "/", network: "none", uid, gid: 0 })
  return yield* proveOnce(
    {
      kind: "bubblewrap",
      sandbox: Context.get(context, Sandbox),
      parts: [programs, profile, sha256(filter)],
      remedy: remedyOf
    },
    machine,
    folder
  )
})

const landlock = Effect.fnUntraced(function* (ground: Ground) {
  const { ceilings, folder, machine, path_entries, uid } = ground
  const filter = seccompFilter(arch(), "host")
  if (filter === null) return noFilter
  if (folder === null)
    return notProved("landlock's helper has no folder that is the user's alone", "set HOME or XDG_CACHE_HOME")
  const helper = yield* findHelper(folder, ground.trusted, uid)
  if (helper._tag === "Missing") return notProved(helper.reason, helper.remedy)
  const context = yield* Layer.build(
    layerLandlock({
      machine,
      path_entries,
      filter,
      ceilings,
      nice: ground.nice,
      helper: helper.file
    })
  )
  return yield* proveOnce(
    {
      kind: "landlock",
      sandbox: Context.get(context, Sandbox),
      parts: [helper.sha256, sha256(filter), uid],
      remedy: () => newer
    },
    machine,
    folder
  )
})

/** The sandbox of this machine, proved now or before. Never fails: what stands in the way is the reason. `auto` takes the
 * first that proves itself; a backend that was asked for is the only one tried. */
export const findBackend = Effect.fn("Sandbox.findBackend")(function* (
  options: BackendOptions
): Effect.fn.Return<
  FoundBackend,
  never,
  ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path | SecureRandom.SecureRandom
> {
  if (platform() !== "linux")
    return notProved(`there is no sandbox for ${platform()} yet`, "use Linux, or a container of it")
  const host = yield* HostEnvironment
  const path_entries = userPath(host, options.own)
  const machine = yield* findMachine(
    {
      hidden: [...options.hidden, ...(options.cache_root === null ? [] : [options.cache_root])],
      read_roots: options.read_roots
    },
    path_entries
  )
  const repository = options.repository
  const trusted = absolutePath(host)
    .split(":")
    .filter((entry) => entry !== "" && (repository === undefined || !isWithin(entry, repository)))
  const uid = process.getuid?.() ?? 0
  const folder = options.cache_root === null ? null : yield* ownFolder(options.cache_root, uid)
  const ground: Ground = {
    ...{ machine, path_entries, uid, folder },
    nice: Option.getOrNull(yield* findProgram(trusted, "nice")),
    bash: Option.getOrNull(yield* findProgram(trusted, "bash")),
    trusted,
    ceilings: options.ceilings ?? usualCeilings
  }
  const attempt = <R>(
    backend: Effect.Effect<FoundBackend, PlatformError.PlatformError | SandboxError, R | Scope.Scope>
  ) =>
    backend.pipe(
      Effect.scoped,
      Effect.catch((error) => Effect.succeed(notProved(error.message, "see docs/sandbox.md")))
    )
  switch (options.backend) {
    case "bubblewrap":
      return yield* attempt(bubblewrap(ground))
    case "landlock":
      return yield* attempt(landlock(ground))
    case "auto": {
      const first = yield* attempt(bubblewrap(ground))
      if (first.proof._tag === "Proved") return first
      const second = yield* attempt(landlock(ground))
      if (second.proof._tag === "Proved") return second
      const { reason, remedy } = first.proof
      return notProved(`${reason}: ${remedy}; or ${second.proof.reason}`, second.proof.remedy)
    }
  }
})
