/**
 * The user's home directory.
 */
import { userInfo } from "node:os"
import { isAbsolute } from "node:path"

/** HOME, else what the system has for the account; null where it knows no such user, as in some containers. */
export const homeOf = (env: NodeJS.ProcessEnv): string | null => {
  const home = env["HOME"]
  if (home !== undefined && isAbsolute(home)) return home
  try {
    return userInfo().homedir
  } catch {
    return null
  }
}
