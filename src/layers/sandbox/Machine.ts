/**
 * What this machine has, for the view of the sandbox: the private places, and the programs and toolchains that lie in
 * them.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { userInfo } from "node:os"
import { isWithin, type Machine } from "../../domain/SandboxView.ts"
import { HostEnvironment } from "./Environment.ts"
import { systemCredentials, toolchainTable } from "./Toolchains.ts"

/** Other people's homes, and disks that hold a whole machine of somebody's. */
const alwaysHidden = ["/home", "/root", "/mnt", "/media"]

/** Nothing in them leads into a private place, and they are long. */
const systemDirectories: ReadonlySet<string> = new Set(["/usr/bin", "/bin", "/usr/sbin", "/sbin"])

/** A directory of programs is mostly one of several in what was installed together. */
const programDirectories: ReadonlySet<string> = new Set(["bin", "sbin", "shims", "Scripts", "libexec"])

export interface MachineOptions {
  /** Where looplane keeps its runs and what is its own: nothing of that is any command's business. */
  readonly hidden: ReadonlyArray<string>
  /** More that commands may read, from the user's own settings. Absolute. */
  readonly read_roots: ReadonlyArray<string>
}

export interface FoundMachine extends Machine {
  /** Variables by which programs find what is shown, with HOME being another one. */
  readonly variables: Readonly<Record<string, string>>
}

/** PATH as the user has it, without what looplane's own start put in front, and without relative entries. */
export const userPath = (
  host: Readonly<Record<string, string | undefined>>,
  own: ReadonlyArray<string>
): ReadonlyArray<string> =>
  (host["PATH"] ?? "/usr/local/bin:/usr/bin:/bin")
    .split(":")
    .filter((entry) => entry.startsWith("/") && !own.some((place) => isWithin(entry, place)))

const homeOfAccount = (): string | null => {
  try {
    return userInfo().homedir
  } catch {
    // An account without an entry: what HOME says is all there is.
    return null
  }
}

/** Looks at the machine. Costs a few directory listings: once for a process. */
export const findMachine = Effect.fn("Sandbox.findMachine")(function* (
  options: MachineOptions,
  path_entries: ReadonlyArray<string>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const host = yield* HostEnvironment
  const real = (file: string) => Effect.option(fs.realPath(file))
  const reals = Effect.fnUntraced(function* (files: ReadonlyArray<string>) {
    return (yield* Effect.forEach(files, real, { concurrency: 16 })).flatMap(Option.toArray)
  })

  /** What was installed together with a program. */
  const prefixOf = (program: string): string => {
    const directory = path.dirname(program)
    return programDirectories.has(path.basename(directory)) ? path.dirname(directory) : directory
  }

  const account = homeOfAccount()
  const usable = (home: string | null | undefined): ReadonlyArray<string> =>
    home === null || home === undefined || !home.startsWith("/") || home === "/" ? [] : [home]
  const homes = yield* reals([...usable(host["HOME"]), ...usable(account)])
  const [home = null, ...others] = [...new Set(homes)].filter((each) => each !== "/")
  const hidden = [...new Set(yield* reals([...alwaysHidden, ...others, ...options.hidden]))].filter(
    (each) => each !== "/"
  )
  const isPrivate = (file: string) =>
    [...hidden, "/tmp", "/var/tmp", "/run", ...(home === null ? [] : [home])].some((place) =>
      isWithin(file, place)
    )

  /** Where the links of a directory of programs lead, as far as that is somewhere private. */
  const behindLinks = Effect.fnUntraced(function* (directory: string) {
    if (systemDirectories.has(directory)) return []
    const entries = yield* fs.readDirectoryEntries(directory).pipe(Effect.orElseSucceed(() => []))
    const links = entries.filter((entry) => entry.type === "SymbolicLink")
    const targets = yield* reals(links.map((entry) => path.join(directory, entry.name)))
    return targets.filter(isPrivate).map(prefixOf)
  })

  const directories = yield* reals(path_entries)
  const linked = (yield* Effect.forEach(directories, behindLinks, { concurrency: 4 })).flat()
  const programs = directories.filter(isPrivate).flatMap((directory) => {
    const parent = path.dirname(directory)
    return programDirectories.has(path.basename(directory)) ? [directory, parent] : [directory]
  })
  const node = yield* real(process.execPath)

  const roots: Array<string> = []
  const credentials: Array<string> = [...systemCredentials]
  const variables: Record<string, string> = {}
  for (const { credentials: names, usual, variable } of toolchainTable) {
    const said = variable === null ? undefined : host[variable]
    const places = said !== undefined && said !== "" ? said.split(path.sep === "/" ? /[: ]/ : ";") : []
    const place = places[0] ?? (home === null || usual === null ? null : path.join(home, usual))
    if (place === null || !place.startsWith("/")) continue
    const found = yield* real(place)
    if (Option.isNone(found)) continue
    roots.push(found.value, ...(yield* reals(places.slice(1).filter((each) => each.startsWith("/")))))
    if (variable !== null) variables[variable] = said ?? place
    credentials.push(...names.map((name) => path.join(found.value, name)))
  }

  const machine: FoundMachine = {
    home,
    hidden,
    roots: [
      ...new Set([
        ...programs,
        ...linked,
        ...(Option.isSome(node) ? [prefixOf(node.value)] : []),
        ...roots,
        ...(yield* reals(options.read_roots))
      ])
    ],
    credentials: yield* reals([...new Set(credentials)]),
    variables
  }
  return machine
})
