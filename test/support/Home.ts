import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { heldLocks, processesOf } from "./Leaks.ts"

/** The world of one or more runs of the command: its own home, temporary folder and token, and nothing inherited. */
export interface Home extends AsyncDisposable {
  readonly folder: string
  /** An empty folder for `--run-root`. */
  readonly runRoot: string
  readonly tmp: string
  readonly token: string
  readonly env: Readonly<Record<string, string>>
  /** What runs have left: processes, temporary files, locks; one readable line each. Empty: nothing. */
  readonly leftovers: (runRoots?: ReadonlyArray<string>) => ReadonlyArray<string>
  /** Kills every process that is left. Returns how many there were. */
  readonly kill: () => number
  /** Kills what is left and removes the folder. */
  readonly dispose: () => void
}

/** What a user's second run finds: the bundle compiled. Every home has it, since nothing else is kept there. */
const sharedCache = (): string => {
  const folder = fileURLToPath(new URL("../../node_modules/.cache/looplane-tests", import.meta.url))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

export const makeHome = (): Home => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "looplane-home-")))
  const at = (name: string) => {
    mkdirSync(join(folder, name), { mode: 0o700 })
    return join(folder, name)
  }
  const token = randomUUID()
  const tmp = at("tmp")
  const runRoot = at("runs")
  const env = {
    // The Node of this test run comes first, so that a check's `node` is not an older one.
    PATH: [dirname(process.execPath), process.env["PATH"] ?? "/usr/bin:/bin"].join(delimiter),
    HOME: at("home"),
    XDG_CONFIG_HOME: at("config"),
    XDG_STATE_HOME: at("state"),
    XDG_CACHE_HOME: sharedCache(),
    XDG_DATA_HOME: at("data"),
    XDG_RUNTIME_DIR: at("runtime"),
    TMPDIR: tmp,
    LANG: "C.UTF-8",
    TZ: "UTC",
    LOOPLANE_TEST_TOKEN: token
  }
  const kill = () => {
    const running = processesOf(token, [folder])
    for (const { pid } of running) {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // Gone between the look and the signal.
      }
    }
    return running.length
  }
  const dispose = () => {
    kill()
    rmSync(folder, { recursive: true, force: true })
  }
  return {
    folder,
    runRoot,
    tmp,
    token,
    env,
    leftovers: (runRoots = []) => [
      ...processesOf(token, [folder, ...runRoots]).map(
        ({ pid, command, why }) => `process ${pid} (${command}), known by ${why}`
      ),
      ...readdirSync(tmp).map((name) => `temporary file ${name}`),
      ...[folder, ...runRoots]
        .filter(existsSync)
        .flatMap((root) => heldLocks(root).map((path) => `lock ${join(root, path)}`))
    ],
    kill,
    dispose,
    [Symbol.asyncDispose]: async () => dispose()
  }
}
