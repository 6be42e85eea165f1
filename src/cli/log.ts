/**
 * The log file: stacks and warnings that would only confuse on a terminal. Made when there is something to write.
 */
import { appendFileSync, mkdirSync } from "node:fs"
import { dirname, isAbsolute, join } from "node:path"
import { Logger } from "effect"
import { homeOf } from "./home.ts"

/** `looplane/looplane.log` under the XDG state directory; null where there is none. */
export const logFile = (env: NodeJS.ProcessEnv): string | null => {
  const state = env["XDG_STATE_HOME"]
  if (state !== undefined && isAbsolute(state)) return join(state, "looplane", "looplane.log")
  const home = homeOf(env)
  return home === null ? null : join(home, ".local", "state", "looplane", "looplane.log")
}

/** Appends warnings and worse. A log that cannot be written is not worth an error of its own. */
export const fileLogger = (env: NodeJS.ProcessEnv) =>
  Logger.make((options) => {
    if (options.logLevel === "Debug" || options.logLevel === "Trace" || options.logLevel === "Info") return
    try {
      const file = logFile(env)
      if (file === null) return
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      appendFileSync(file, `${Logger.formatLogFmt.log(options)}\n`, { mode: 0o600 })
    } catch {
      // Nobody could be told in a better place.
    }
  })
