/**
 * The view of a command for a sandbox that cannot mount: what it may read as a list of grants, each of everything at and
 * below a path. A right that was granted cannot be taken back further down, so whatever holds something hidden is granted
 * piece by piece. Pure.
 */
import { isWithin, type SandboxView, shows } from "./SandboxView.ts"

/** What a directory holds, by the directory; of one that is missing, nothing below is granted. Symlinks are not in it:
 * what they lead to is granted where it lies. */
export type Listings = ReadonlyMap<string, ReadonlyArray<string>>

const below = (directory: string, name: string): string =>
  directory === "/" ? `/${name}` : `${directory}/${name}`

const hiddenIn = (view: SandboxView): ReadonlyArray<string> =>
  view.flatMap((mount) =>
    (mount._tag === "Empty" || mount._tag === "Masked") && !shows(view, mount.at) ? [mount.at] : []
  )

/** Where the shown begins: the whole machine, and what is shown in a hidden place. */
const startsOf = (view: SandboxView): ReadonlyArray<string> =>
  ["/", ...view.flatMap((mount) => (mount._tag === "ReadOnly" ? [mount.at] : []))].filter((path) =>
    shows(view, path)
  )

/** The directories of which `grantsOf` needs the listings: shown ones that hold something hidden. */
export const directoriesToList = (view: SandboxView): ReadonlyArray<string> => {
  const directories = new Set<string>()
  for (const path of hiddenIn(view))
    for (let end = path.lastIndexOf("/"); end >= 0; end = path.lastIndexOf("/", end - 1)) {
      directories.add(path.slice(0, end) || "/")
      if (end === 0) break
    }
  return [...directories].filter((path) => shows(view, path))
}

/** The paths to grant, so that a path is at or below one of them exactly when the view shows it; besides directories that
 * hold something hidden, whose names are not to be read. */
export const grantsOf = (view: SandboxView, listings: Listings): ReadonlyArray<string> => {
  const hidden = hiddenIn(view)
  const visit = (path: string): ReadonlyArray<string> => {
    if (!shows(view, path)) return []
    if (!hidden.some((place) => isWithin(place, path))) return [path]
    return (listings.get(path) ?? []).flatMap((name) => visit(below(path, name)))
  }
  return [...new Set(startsOf(view).flatMap(visit))]
}
