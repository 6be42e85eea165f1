/**
 * What an install at one place remembers of that place, and how its copy forgets it.
 */
import { Effect, FileSystem, Path } from "effect"
import { readdir } from "node:fs/promises"
import { thrown } from "./Failure.ts"

interface Found {
  readonly links: ReadonlyArray<string>
  readonly files: ReadonlyArray<string>
}

/** Small texts in which an interpreter or a package manager writes absolute paths. */
const launcher = /(?:^|\/)(?:\.bin|bin|Scripts)\/[^/]+$/
const pointer = /(?:\.pth|\.egg-link|\/direct_url\.json|\/pyvenv\.cfg|__editable__[^/]*\.py)$/

/** The FileSystem service cannot list a deep directory with types in one go; a big install needs that. */
const survey = (directory: string) =>
  Effect.tryPromise({
    try: async (): Promise<Found> => {
      const links: Array<string> = []
      const files: Array<string> = []
      const queue = [directory]
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        for (const entry of await readdir(next, { withFileTypes: true })) {
          const at = `${next}/${entry.name}`
          if (entry.isSymbolicLink()) links.push(at)
          else if (entry.isDirectory()) queue.push(at)
          else if (launcher.test(at) || pointer.test(at)) files.push(at)
        }
      }
      return { links, files }
    },
    catch: thrown(`${directory} cannot be read`)
  })

const nextIsPartOfName = /^[A-Za-z0-9._-]/

/** A text with one directory put in another's place, where it stands as a whole path. */
const replacePath = (text: string, from: string, to: string): string =>
  text
    .split(from)
    .reduce(
      (done, part, index) =>
        index === 0 ? part : `${done}${nextIsPartOfName.test(part) ? from : to}${part}`,
      ""
    )

const maxTextBytes = 1_000_000

/** A root that is nowhere: what is put aside belongs to it until it is copied to a place. */
export const nowhere = "/looplane/put-aside"

export interface Relocation {
  /** The root that the copy lies below now. */
  readonly at: string
  /** The root that the original belongs to: the source, or the workspace that set-up ran in. */
  readonly from: string
  /** The root that the copy is to belong to. */
  readonly to: string
  /** Whether pointers to `from` (editable installs and the like) are rewritten, or reported. */
  readonly pointers: "rewrite" | "report"
}

const relocateLink = Effect.fnUntraced(function* (link: string, options: Relocation) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const target = yield* fs.readLink(link)
  const original = path.join(options.from, path.relative(options.at, link))
  const absolute = path.resolve(path.dirname(original), target)
  const inside = absolute === options.from || absolute.startsWith(`${options.from}/`)
  // A relative link that stays inside means the same thing in the copy; one that leaves must not start to mean another.
  if (path.isAbsolute(target) ? !inside : inside) return
  const wanted = inside ? path.join(options.to, path.relative(options.from, absolute)) : absolute
  yield* fs.remove(link)
  yield* fs.symlink(wanted, link)
})

const relocateFile = Effect.fnUntraced(function* (file: string, options: Relocation) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const info = yield* fs.stat(file)
  if (Number(info.size) > maxTextBytes) return null
  const bytes = Buffer.from(yield* fs.readFile(file))
  if (bytes.includes(0)) return null
  const text = bytes.toString("latin1")
  const from = Buffer.from(options.from, "utf8").toString("latin1")
  // `command =` only records how the environment was made; nothing follows it.
  const judged = file.endsWith("/pyvenv.cfg") ? text.replace(/^command\s*=.*$/m, "") : text
  const changed = replacePath(text, from, Buffer.from(options.to, "utf8").toString("latin1"))
  if (replacePath(judged, from, "") === judged) return null
  if (pointer.test(file) && options.pointers === "report") {
    return `${path.relative(options.at, file)} points back into ${options.from}`
  }
  yield* fs.chmod(file, info.mode | 0o200)
  yield* fs.writeFile(file, Buffer.from(changed, "latin1"))
  yield* fs.chmod(file, info.mode & 0o7777)
  return null
})

/**
 * Makes a copied install belong to its new place: absolute links and launchers that name the old one name the new one.
 * Returns why the copy could not be believed, or null.
 */
export const relocate = Effect.fnUntraced(function* (directory: string, options: Relocation) {
  if (options.from === options.to) return null
  const found = yield* survey(directory)
  yield* Effect.forEach(found.links, (link) => relocateLink(link, options), { concurrency: 8, discard: true })
  const reasons = yield* Effect.forEach(found.files, (file) => relocateFile(file, options), {
    concurrency: 8
  })
  return reasons.find((reason) => reason !== null) ?? null
})
