/**
 * Processes that outlived what should have ended them: those that left the group of their command (`setsid`, a daemon),
 * and commands whose looplane was killed. Found by a mark in their environment, where the system lets one look.
 */
import { Effect } from "effect"
import { readdir, readFile, readlink } from "node:fs/promises"

/** The variable that marks everything a command started. */
export const markName = "LOOPLANE_COMMAND"

type Belongs = (environment: ReadonlyArray<string>, pid: string) => boolean | Promise<boolean>

const find = async (belongs: Belongs): Promise<ReadonlyArray<number>> => {
  const pids = (await readdir("/proc").catch(() => [])).filter(
    (name) => /^\d+$/.test(name) && Number(name) !== process.pid
  )
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Gone by now, or another user's: not ours to end.
      const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "")
      return (await belongs(environment.split("\0"), pid)) ? [Number(pid)] : []
    })
  )
  return found.flat()
}

const end = (belongs: Belongs): Effect.Effect<void> =>
  process.platform === "linux"
    ? Effect.promise(async () => {
        // What was found may have started another in the meantime.
        for (let round = 0; round < 3; round++) {
          const pids = await find(belongs)
          if (pids.length === 0) return
          for (const pid of pids) {
            try {
              process.kill(pid, "SIGKILL")
            } catch {
              // Ended between the look and the signal, which is what was wanted.
            }
          }
        }
      })
    : Effect.void

/** Kills every process that carries the mark. Never fails; does nothing where there is no /proc. */
export const endMarked = (mark: string): Effect.Effect<void> =>
  end((environment) => environment.includes(`${markName}=${mark}`))

/**
 * Kills what commands of a process that is gone have left running: whatever carries a mark, and works below the directory
 * or was given a place there. Never fails; does nothing where there is no /proc.
 */
export const endBelow = (directory: string): Effect.Effect<void> => {
  const inside = (path: string) => path === directory || path.startsWith(`${directory}/`)
  return end(async (environment, pid) => {
    if (!environment.some((each) => each.startsWith(`${markName}=`))) return false
    return (
      environment.some((each) => inside(each.slice(each.indexOf("=") + 1))) ||
      inside(await readlink(`/proc/${pid}/cwd`).catch(() => ""))
    )
  })
}
