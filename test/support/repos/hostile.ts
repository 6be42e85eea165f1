import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeRepo, type Files, type Repo } from "../Repo.ts"
import { addFiles } from "./add.ts"

export interface HostileRepo extends Repo {
  /** The name of every planted program. */
  readonly planted: ReadonlyArray<string>
  /** Which planted programs have run so far, in order, repeated as often as they ran. */
  readonly ran: () => ReadonlyArray<string>
}

const hooks = [
  "applypatch-msg",
  "commit-msg",
  "fsmonitor-watchman",
  "post-applypatch",
  "post-checkout",
  "post-commit",
  "post-index-change",
  "post-merge",
  "post-rewrite",
  "post-update",
  "pre-applypatch",
  "pre-auto-gc",
  "pre-commit",
  "pre-merge-commit",
  "pre-push",
  "pre-rebase",
  "pre-receive",
  "prepare-commit-msg",
  "proc-receive",
  "push-to-checkout",
  "reference-transaction",
  "sendemail-validate",
  "update"
] as const

/** Configuration keys whose value git runs as a program, with what the program does besides telling. */
const programs: ReadonlyArray<readonly [key: string, tail: string]> = [
  ["filter.planted.clean", "cat"],
  ["filter.planted.smudge", "cat"],
  // Shakes hands and offers nothing, so that git goes on to the other traps.
  [
    "filter.plantedlong.process",
    "printf '0016git-filter-server\\n000eversion=2\\n00000000'; cat > /dev/null"
  ],
  ["diff.planted.textconv", 'cat "$1"'],
  ["diff.plantedcommand.command", ":"],
  ["diff.external", ":"],
  ["merge.planted.driver", "exit 1"],
  ["core.fsmonitor", "exit 1"],
  ["core.pager", "cat"],
  ["pager.log", "cat"],
  ["interactive.diffFilter", "cat"],
  ["core.editor", ":"],
  ["sequence.editor", ":"],
  ["core.sshCommand", "exit 1"],
  ["core.askPass", ":"],
  ["core.gitProxy", "exit 1"],
  ["core.alternateRefsCommand", ":"],
  ["credential.helper", ":"],
  ["gpg.program", "exit 1"],
  ["gpg.ssh.program", "exit 1"],
  ["trailer.planted.command", ":"],
  ["uploadpack.packObjectsHook", '"$@"'],
  ["remote.origin.uploadpack", "exit 1"],
  ["remote.origin.receivepack", "exit 1"]
]

/** Files at the root that carry the names of programs which a careless search path would find first. */
const lures = ["git", "rg", "node", "sh"] as const

/** Commands of the repository's own that only an alias makes. */
const aliases = ["st", "snapshot"] as const

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A line of git's configuration: `section.name`, or `section.subsection.name`. */
const setting = (key: string, value: string): string => {
  const [section, ...rest] = key.split(".")
  const name = rest.pop()
  const head = rest.length === 0 ? section : `${section} "${rest.join(".")}"`
  return `[${head}]\n\t${name} = "${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"\n`
}

/**
 * The repository of `addRepo` with a program planted wherever git, or a careless caller, would run one. Each appends
 * its name to the file `marker` (absolute, outside the repository). Nothing has run when this returns.
 */
export const hostileRepo = (marker: string): HostileRepo => {
  const tell = (name: string, tail: string) =>
    `#!/bin/sh\nprintf '%s\\n' ${quoted(name)} >> ${quoted(marker)}\n${tail}\n`
  const lureFiles: Files = Object.fromEntries(
    lures.map((name) => [name, { text: tell(`path:${name}`, "exit 1"), mode: 0o755 }])
  )
  const repo = makeRepo({
    files: {
      ...addFiles,
      ...lureFiles,
      "picture.bin": { b64: Buffer.from([0, 1, 2, 255, 254, 10]).toString("base64") },
      "long.txt": "handled by the long-running filter\n",
      "shown.txt": "handled by the diff command\n",
      ".gitattributes":
        "*.js filter=planted diff=planted merge=planted\n*.bin diff=planted\n" +
        "long.txt filter=plantedlong\nshown.txt diff=plantedcommand\n"
    }
  })
  const directory = join(repo.root, ".git")
  const place = (path: string, name: string, tail: string) => {
    const target = join(directory, path)
    writeFileSync(target, tell(name, tail))
    chmodSync(target, 0o755)
    return target
  }
  const config = (key: string, value: string, file = "config") =>
    appendFileSync(join(directory, file), setting(key, value))

  for (const folder of ["hooks", "planted", "info"]) mkdirSync(join(directory, folder), { recursive: true })
  for (const name of hooks) place(join("hooks", name), `hook:${name}`, "exit 0")
  for (const [key, tail] of programs) {
    const value = place(join("planted", key), key, tail)
    // Half of the traps lie in an included file, where a reader of `config` alone does not see them.
    config(key, value, key.startsWith("core.") ? "planted.config" : "config")
  }
  for (const name of aliases)
    config(`alias.${name}`, `!${place(join("planted", `alias.${name}`), `alias:${name}`, ":")}`)
  config("include.path", "planted.config")
  config("commit.gpgSign", "true")
  config("protocol.ext.allow", "always")
  config("remote.origin.url", `ext::${place(join("planted", "remote"), "remote.origin.url", "exit 1")}`)
  config("core.attributesFile", join(directory, "planted.attributes"))
  writeFileSync(join(directory, "planted.attributes"), "*.md filter=planted diff=planted\n")
  appendFileSync(
    join(directory, "info", "attributes"),
    "package.json filter=planted diff=planted merge=planted\n"
  )

  return {
    ...repo,
    planted: [
      ...hooks.map((name) => `hook:${name}`),
      ...programs.map(([key]) => key),
      ...aliases.map((name) => `alias:${name}`),
      ...lures.map((name) => `path:${name}`),
      "remote.origin.url"
    ],
    ran: () =>
      existsSync(marker)
        ? readFileSync(marker, "utf8")
            .split("\n")
            .filter((line) => line !== "")
        : []
  }
}
