/**
 * What the user's git settings say, read without running anything that they name.
 */
import { Effect, FileSystem, Path } from "effect"
import { displayName, git, joinNul, nameOf, splitNul } from "../git/GitBinary.ts"
import type { GitLocation } from "../git/GitDirectory.ts"
import { HostEnvironment } from "../sandbox/Environment.ts"
import { refused } from "./Fault.ts"

export type Settings = ReadonlyMap<string, string>

const quoted = (value: string): string => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`

/** The files of the user's own settings, as git finds them. */
const globalFiles = (host: Readonly<Record<string, string | undefined>>): ReadonlyArray<string> => {
  const own = host["GIT_CONFIG_GLOBAL"]
  if (own !== undefined) return own === "" ? [] : [own]
  const home = host["HOME"]
  const xdg = host["XDG_CONFIG_HOME"] ?? (home === undefined ? undefined : `${home}/.config`)
  return [
    ...(xdg === undefined ? [] : [`${xdg}/git/config`]),
    ...(home === undefined ? [] : [`${home}/.gitconfig`])
  ].filter((file) => file.startsWith("/"))
}

/** Every setting that git would see there, names in lower case, the last value of each. */
export const readSettings = Effect.fnUntraced(function* (location: GitLocation, root: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const host = yield* HostEnvironment
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "looplane-" })
  const global = path.join(directory, "config")
  // Git dies of a file that it may not read; without the user's own settings it still has the repository's.
  const readable = yield* Effect.filter(globalFiles(host), (file) =>
    fs.access(file, { readable: true }).pipe(
      Effect.as(true),
      Effect.orElseSucceed(() => false)
    )
  )
  yield* fs.writeFileString(global, readable.map((file) => `[include]\n\tpath = ${quoted(file)}\n`).join(""))
  const listed = yield* git({
    cwd: root,
    args: [`--git-dir=${location.git_dir}`, "config", "--includes", "-z", "--list"],
    env: {
      GIT_CONFIG_GLOBAL: global,
      GIT_CONFIG_NOSYSTEM: host["GIT_CONFIG_NOSYSTEM"] ?? "0",
      ...(host["HOME"] === undefined ? {} : { HOME: host["HOME"] })
    }
  })
  const settings: Settings = new Map(
    splitNul(listed).map((record): readonly [string, string] => {
      const end = record.indexOf("\n")
      // A name without a value means true.
      return end < 0
        ? [record, "true"]
        : [record.slice(0, end), Buffer.from(record.slice(end + 1), "latin1").toString("utf8")]
    })
  )
  return settings
}, Effect.scoped)

/** Who the user is to git, as the environment of a git that commits. */
export const identityOf = Effect.fnUntraced(function* (settings: Settings) {
  const host = yield* HostEnvironment
  const value = (who: "AUTHOR" | "COMMITTER", what: "name" | "email"): string | undefined => {
    const said =
      host[`GIT_${who}_${what.toUpperCase()}`] ??
      settings.get(`${who.toLowerCase()}.${what}`) ??
      settings.get(`user.${what}`)
    return said === undefined || said.trim() === "" ? undefined : said
  }
  const author = { name: value("AUTHOR", "name"), email: value("AUTHOR", "email") }
  const committer = { name: value("COMMITTER", "name"), email: value("COMMITTER", "email") }
  if (
    author.name === undefined ||
    author.email === undefined ||
    committer.name === undefined ||
    committer.email === undefined
  ) {
    return yield* refused(
      "git does not know who you are, so nothing can be committed: git config --global user.name NAME, and user.email"
    )
  }
  return {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_COMMITTER_NAME: committer.name,
    GIT_COMMITTER_EMAIL: committer.email
  }
})

const names = ["text", "eol", "filter", "working-tree-encoding"] as const
export type Attributes = Readonly<Record<(typeof names)[number], string>>
export const noAttributes: Attributes = {
  text: "unspecified",
  eol: "unspecified",
  filter: "unspecified",
  "working-tree-encoding": "unspecified"
}

/** The attributes of paths, by path. */
export const readAttributes = Effect.fnUntraced(function* (
  location: GitLocation,
  root: string,
  paths: ReadonlyArray<string>
) {
  const found = splitNul(
    yield* git({
      cwd: root,
      args: [
        ...[`--git-dir=${location.git_dir}`, `--work-tree=${root}`],
        ...["check-attr", "-z", "--stdin", ...names]
      ],
      stdin: joinNul(paths.map(nameOf))
    })
  )
  const attributes = new Map<string, Attributes>()
  for (let at = 0; at + 2 < found.length; at += 3) {
    const [name = "", attribute = "", value = ""] = found.slice(at, at + 3)
    const path = displayName(name)
    attributes.set(path, { ...(attributes.get(path) ?? noAttributes), [attribute]: value })
  }
  return attributes
})
