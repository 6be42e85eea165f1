/**
 * Compares start-up with the parent of the change, both built here and now and measured in the same rounds.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { interleaved, median, runProcess, spread } from "./measure.ts"

export interface Comparing {
  readonly root: string
  readonly launcher: string
  readonly rounds: number
  /** Per cent that the median may be worse. */
  readonly tolerance: number
}

export interface Verdict {
  readonly ok: boolean
  readonly text: string
}

const git = (root: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", root, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim()

/** The commit to compare with: HEAD when there are changes on top of it, else its parent; null when there is none. */
const parentOf = (root: string): string | null => {
  try {
    return git(root, "rev-parse", "--verify", git(root, "status", "--porcelain") === "" ? "HEAD^" : "HEAD")
  } catch {
    return null
  }
}

export const compareWithParent = async (options: Comparing): Promise<Verdict> => {
  const parent = parentOf(options.root)
  if (parent === null) return { ok: true, text: "bench: there is no parent commit to compare with" }
  const place = mkdtempSync(join(tmpdir(), "looplane-parent-"))
  const checkout = join(place, "parent")
  try {
    git(options.root, "worktree", "add", "--detach", "--quiet", checkout, parent)
    symlinkSync(join(options.root, "node_modules"), join(checkout, "node_modules"))
    const build = join(checkout, "scripts", "build.mjs")
    if (!existsSync(build)) return { ok: true, text: "bench: the parent commit has no build" }
    try {
      execFileSync(process.execPath, [build], { cwd: checkout, stdio: ["ignore", "ignore", "pipe"] })
    } catch {
      return {
        ok: true,
        text: "bench: the parent commit does not build, so there is nothing to compare with"
      }
    }
    const lines: Array<string> = []
    let ok = true
    for (const flag of ["--version", "--help"]) {
      const [now, before] = await interleaved(
        [
          { name: "now", argv: [process.execPath, options.launcher, flag] as const },
          { name: "parent", argv: [process.execPath, join(checkout, "bin", "looplane.js"), flag] as const }
        ],
        options.rounds,
        async ({ argv }) => (await runProcess(argv)).ms
      )
      if (now === undefined || before === undefined) continue
      const worse = (median(now.values) / median(before.values) - 1) * 100
      const noise = (Math.max(spread(now.values), spread(before.values)) / median(before.values)) * 100
      const fails = worse > options.tolerance && worse > noise
      ok &&= !fails
      lines.push(
        `bench: ${flag} ${worse >= 0 ? "+" : ""}${worse.toFixed(1)} % against the parent (noise ${noise.toFixed(1)} %, allowed ${options.tolerance} %)${fails ? ": too slow" : ""}`
      )
    }
    return { ok, text: lines.join("\n") }
  } finally {
    try {
      git(options.root, "worktree", "remove", "--force", checkout)
    } catch {
      rmSync(checkout, { recursive: true, force: true })
    }
    rmSync(place, { recursive: true, force: true })
  }
}
