/**
 * Processes that left the group of the command that started them (`setsid`, a daemon): found by a mark in their
 * environment, where the system lets one look.
 */
import { Effect } from "effect"
import { readdir, readFile } from "node:fs/promises"

/** The variable that marks everything a command started. */
export const markName = "LOOPLANE_COMMAND"

const find = async (mark: string): Promise<ReadonlyArray<number>> => {
  const wanted = `${markName}=${mark}`
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Gone by now, or another user's: not ours to end.
      const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "")
      return environment.split("\0").includes(wanted) ? [Number(pid)] : []
    })
  )
  return found.flat()
}

/** Kills every process that carries the mark. Never fails; does nothing where there is no /proc. */
export const endMarked = (mark: string): Effect.Effect<void> =>
  process.platform === "linux"
    ? Effect.promise(async () => {
        // What was found may have started another in the meantime.
        for (let round = 0; round < 3; round++) {
          const pids = await find(mark)
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
