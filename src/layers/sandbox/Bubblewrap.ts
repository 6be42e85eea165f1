/**
 * What bubblewrap is told: namespaces of its own for users, processes, IPC, names and the network, no capability, no new
 * privilege, the filter of `Seccomp.ts`, and the mounts of a view.
 */
import type { Mount, SandboxView } from "../../domain/SandboxView.ts"

/** The descriptor through which bubblewrap reads the seccomp filter. */
export const filterDescriptor = 3

/** The one on which it says which process is the command's first. */
export const statusDescriptor = 4

/** Of all that a command writes into places that are gone with it: they are memory. */
const maxEmptyBytes = 2 * 1024 * 1024 * 1024

const argumentsOf = (mount: Mount): ReadonlyArray<string> => {
  switch (mount._tag) {
    case "ReadOnly":
      return ["--ro-bind", mount.from, mount.at]
    case "Writable":
      return ["--bind", mount.from, mount.at]
    case "Empty":
      return ["--perms", "1777", "--size", String(maxEmptyBytes), "--tmpfs", mount.at]
    case "Masked":
      return ["--ro-bind", "/dev/null", mount.at]
  }
}

/** The arguments before the command. `cwd` is a path inside. */
export const bubblewrapArguments = (options: {
  readonly view: SandboxView
  readonly cwd: string
  readonly network: "none" | "host"
  /** Who the command is, to itself and to its files: the user, also inside of another namespace. */
  readonly uid: number
  readonly gid: number
}): ReadonlyArray<string> => [
  "--unshare-user",
  "--uid",
  String(options.uid),
  "--gid",
  String(options.gid),
  "--unshare-pid",
  "--unshare-ipc",
  "--unshare-uts",
  "--unshare-cgroup-try",
  ...(options.network === "none" ? ["--unshare-net"] : []),
  "--disable-userns",
  "--die-with-parent",
  "--new-session",
  "--cap-drop",
  "ALL",
  "--hostname",
  "looplane",
  "--ro-bind",
  "/",
  "/",
  "--dev",
  "/dev",
  "--proc",
  "/proc",
  // Root owns the settings of the kernel also from in here.
  ...["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"].flatMap((settings) => [
    "--ro-bind-try",
    settings,
    settings
  ]),
  ...options.view.flatMap(argumentsOf),
  "--seccomp",
  String(filterDescriptor),
  "--json-status-fd",
  String(statusDescriptor),
  "--chdir",
  options.cwd,
  "--"
]
