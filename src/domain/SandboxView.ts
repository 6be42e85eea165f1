/**
 * What a command in the sandbox sees of this machine's files, as a list of mounts over `/` read-only. Pure, so that a
 * question about it ("would it see this file?") has one answer, before anything is started.
 */

/** Later ones lie over earlier ones. All paths are absolute and without `.` and `..`. */
export type Mount =
  | { readonly _tag: "ReadOnly"; readonly from: string; readonly at: string }
  | { readonly _tag: "Writable"; readonly from: string; readonly at: string }
  /** A directory with nothing in it, that it may write to and that is gone with it. */
  | { readonly _tag: "Empty"; readonly at: string }
  /** A file without a byte. */
  | { readonly _tag: "Masked"; readonly at: string }

export type SandboxView = ReadonlyArray<Mount>

/** Whether a path is a directory or lies below it. */
export const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`)

/** The path on this machine that is shown at a path; null where something of the sandbox's own is. */
export const shownAt = (view: SandboxView, path: string): string | null => {
  const mount = view.findLast(({ at }) => isWithin(path, at))
  if (mount === undefined) return path
  switch (mount._tag) {
    case "ReadOnly":
    case "Writable":
      return `${mount.from === "/" ? "" : mount.from}${path.slice(mount.at === "/" ? 0 : mount.at.length)}`
    case "Empty":
    case "Masked":
      return null
  }
}

/** Whether a path of this machine is shown at its own name. */
export const shows = (view: SandboxView, path: string): boolean => shownAt(view, path) === path

/** What this machine has, as far as the view depends on it. Every path is real: no symlink in it. */
export interface Machine {
  /** The user's home; null where there is none. */
  readonly home: string | null
  /** Directories that are hidden as well: looplane's runs, its settings. */
  readonly hidden: ReadonlyArray<string>
  /** What must be seen wherever it lies: programs, toolchains, what the user named. */
  readonly roots: ReadonlyArray<string>
  /** Files that hold credentials, among what is seen. */
  readonly credentials: ReadonlyArray<string>
}

/** Shared places in which anybody leaves anything, sockets included. */
const shared = ["/tmp", "/var/tmp", "/run", "/dev/shm"]

/** Places so wide that showing one whole would show what is hidden for a reason. */
const isTooWide = ({ hidden, home }: Machine, root: string): boolean =>
  [...shared, ...hidden, ...(home === null ? [] : [home, `${home}/.local`, `${home}/.config`])].some(
    (place) => isWithin(place, root)
  )

const parts = (path: string): number => path.split("/").length

/**
 * The view of a command: `/` read-only, private places empty, with holes for what must be seen; then what it may write.
 * A root that would show a private place whole is left out.
 */
export const viewOf = (
  machine: Machine,
  places: {
    /** Each shown at a path of its own choice. */
    readonly writable: ReadonlyArray<{ readonly from: string; readonly at: string }>
  }
): SandboxView => {
  const all = [...shared, ...machine.hidden, ...(machine.home === null ? [] : [machine.home])]
  const empty = [...new Set(all)]
    .filter((place) => !all.some((other) => other !== place && isWithin(place, other)))
    .map((at): Mount => ({ _tag: "Empty", at }))
  const covered = (path: string) => empty.some(({ at }) => isWithin(path, at))
  const roots = machine.roots
    .filter((root) => covered(root) && !isTooWide(machine, root))
    .toSorted((a, b) => parts(a) - parts(b))
    .map((root): Mount => ({ _tag: "ReadOnly", from: root, at: root }))
  const seen: SandboxView = [...empty, ...roots]
  const masked = machine.credentials
    .filter((file) => shows(seen, file))
    .map((at): Mount => ({ _tag: "Masked", at }))
  const writable = places.writable
    .toSorted((a, b) => parts(a.at) - parts(b.at))
    .map(({ at, from }): Mount => ({ _tag: "Writable", from, at }))
  return [...seen, ...masked, ...writable]
}
