/**
 * Descriptors that looplane was started with and that would go on to every child (`flock 200>file` in a script leaves
 * one): Node closes none of them, and an open directory is a way around every mount.
 */
import { Effect } from "effect"
import { readdir, readFile } from "node:fs/promises"
import { SandboxError } from "../../services/Sandbox.ts"

const closeOnExec = 0o2000000

/** The numbers of those that are not closed when a program starts. Empty where there is no /proc. */
const inherited = Effect.promise(async () => {
  const numbers = (await readdir("/proc/self/fdinfo").catch(() => [])).map(Number).filter((fd) => fd > 2)
  const flags = await Promise.all(
    numbers.map(async (fd) => {
      const info = await readFile(`/proc/self/fdinfo/${fd}`, "latin1").catch(() => "")
      const octal = /^flags:\s*([0-7]+)$/m.exec(info)?.[1]
      return octal === undefined || (Number.parseInt(octal, 8) & closeOnExec) !== 0 ? null : fd
    })
  )
  return flags.filter((fd) => fd !== null)
})

/** Closes what must not go on, then becomes the command. Descriptors 3 and 4 are the sandbox's own by then. */
const script = 'for n in $1; do eval "exec $n>&-"; done; shift; exec "$@"'

type NonEmpty = readonly [string, ...ReadonlyArray<string>]

/** The command with nothing open that is not its own. `bash`: a shell that knows descriptors of more than one digit. */
export const closingInherited = Effect.fnUntraced(function* (argv: NonEmpty, bash: string | null) {
  const open = (yield* inherited).filter((fd) => fd > 4)
  if (open.length === 0) return argv
  if (bash === null)
    return yield* new SandboxError({
      reason: "refused",
      message: `${JSON.stringify(argv[0])} was not started: looplane was started with descriptors ${open.join(", ")} open, and without bash nothing can close them for it`
    })
  const closing: NonEmpty = [bash, "-c", script, "bash", open.join(" "), ...argv]
  return closing
})
