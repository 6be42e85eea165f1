/**
 * What this machine has, for the view of the sandbox: the private places, and the programs and toolchains that lie in
 * them.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { userInfo } from "node:os"
import { textAt } from "../fs/Files.ts"
import { isWithin, type Machine } from "../../domain/SandboxView.ts"
import { HostEnvironment } from "./Environment.ts"
import { systemCredentials, toolchainTable } from "./Toolchains.ts"

/** Other people's homes, and disks that hold a whole machine of somebody's. */
const alwaysHidden = ["/home", "/root", "/mnt", "/media"]

/** Nothing in them leads into a private place, and they are long. */
const systemDirectories: ReadonlySet<string> = new Set(["/usr/bin", "/bin", "/usr/sbin", "/sbin"])

/** A directory of programs is mostly one of several in what was installed together. */
const programDirectories: ReadonlySet<string> = new Set(["bin", "sbin", "shims", "Scripts", "libexec"])

/** What lies beside a directory of programs in an installation. */
const installations: ReadonlySet<string> = new Set([
  ...["lib", "lib64", "libexec", "share", "include", "versions"],
  ...["pyvenv.cfg", "conda-meta", "release", "jmods"]
])

/** npm's own settings, below where Node is installed. */
const npmSettings = ["etc/npmrc", "lib/node_modules/npm/npmrc"]

/** Settings are wanted, and some people write secrets into them: then the file is masked. */
const secretWords = /token|password|passwd|secret|_auth|credential/i

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

  /** The directory around one of programs, when it is that of an installation and not just where it lies. */
  const prefixOf = Effect.fnUntraced(function* (directory: string) {
    if (!programDirectories.has(path.basename(directory))) return null
    const prefix = path.dirname(directory)
    const names = yield* fs.readDirectory(prefix).pipe(Effect.orElseSucceed(() => []))
    return names.some((name) => installations.has(name)) ? prefix : null
  })

  /** What was installed together with a program; the program alone, where nothing says that anything was. */
  const around = Effect.fnUntraced(function* (program: string) {
    const parts = program.split("/")
    const packages = parts.indexOf("node_modules")
    return packages > 0
      ? parts.slice(0, packages + 1).join("/")
      : ((yield* prefixOf(path.dirname(program))) ?? program)
  })

  /** Also a directory that is still to be made: the place that it will have. */
  const realOrPlanned = (directory: string): Effect.Effect<string> =>
    fs
      .realPath(directory)
      .pipe(
        Effect.catch(() =>
          path.dirname(directory) === directory
            ? Effect.succeed(directory)
            : Effect.map(realOrPlanned(path.dirname(directory)), (parent) =>
                path.join(parent, path.basename(directory))
              )
        )
      )

  const account = homeOfAccount()
  const usable = (home: string | null | undefined): ReadonlyArray<string> =>
    home === null || home === undefined || !home.startsWith("/") || home === "/" ? [] : [home]
  const homes = yield* reals([...usable(host["HOME"]), ...usable(account)])
  const [home = null, ...others] = [...new Set(homes)].filter((each) => each !== "/")
  const own = [...options.hidden, ...usable(host["TMPDIR"])]
  const hidden = [
    ...new Set([
      ...(yield* reals([...alwaysHidden, ...others])),
      ...(yield* Effect.forEach(own, realOrPlanned))
    ])
  ].filter((each) => each !== "/")
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
    return yield* Effect.forEach(targets.filter(isPrivate), around)
  })

  const directories = yield* reals(path_entries)
  const linked = (yield* Effect.forEach(directories, behindLinks, { concurrency: 4 })).flat()
  const programs = yield* Effect.forEach(directories.filter(isPrivate), (directory) =>
    Effect.map(prefixOf(directory), (prefix) => [directory, ...(prefix === null ? [] : [prefix])])
  )
  const node = yield* real(process.execPath)
  const prefix = Option.isNone(node) ? null : yield* around(node.value)

  const tellsSecrets = (file: string) =>
    Effect.map(textAt(file), (text) => text === null || secretWords.test(text))
  const roots: Array<string> = []
  const maybe: Array<string> = prefix === null ? [] : npmSettings.map((name) => path.join(prefix, name))
  const credentials: Array<string> = [...systemCredentials]
  const variables: Record<string, string> = {}
  for (const { credentials: names, settings, usual, variable } of toolchainTable) {
    const said = variable === null ? undefined : host[variable]
    const place =
      said !== undefined && said !== ""
        ? said
        : home === null || usual === null
          ? null
          : path.join(home, usual)
    if (place === null || !place.startsWith("/")) continue
    const found = yield* real(place)
    if (Option.isNone(found)) continue
    roots.push(found.value)
    if (variable !== null) variables[variable] = said ?? place
    credentials.push(...names.map((name) => path.join(found.value, name)))
    for (const name of settings) {
      const at = path.join(found.value, name)
      const inside = yield* fs.readDirectory(at).pipe(Effect.orElseSucceed(() => null))
      maybe.push(...(inside === null ? [at] : inside.map((each) => path.join(at, each))))
    }
  }

  const machine: FoundMachine = {
    home,
    hidden,
    roots: [
      ...new Set([
        ...programs.flat(),
        ...linked,
        ...(prefix === null ? [] : [prefix]),
        ...roots,
        ...(yield* reals(options.read_roots))
      ])
    ],
    credentials: [
      ...(yield* reals([...new Set(credentials)])),
      ...(yield* Effect.filter(yield* reals(maybe), tellsSecrets))
    ],
    variables
  }
  return machine
})
