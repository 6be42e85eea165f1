/**
 * What stands at a path of the user's tree right now, and the moves that change it.
 */
import { Effect } from "effect"
import { type ApplyRecord, type Found, sameStanding, type Standing } from "../../domain/ApplyRecord.ts"
import { checkWorkspacePath, parentsOf } from "../../domain/WorkspacePath.ts"
import { errnoOf, infoAt } from "../fs/Files.ts"
import { sha256 } from "../journal/Hash.ts"
import { nodeAt } from "../workspace/Contained.ts"
import { failed as unreadable } from "../workspace/Failure.ts"
import { failed } from "./Fault.ts"
import type { Place } from "./Place.ts"

/** Of one file that is compared and kept for the way back. */
export const maxFileBytes = 512 * 1024 * 1024

const absent: Standing = { kind: "absent" }

/** What cannot be looked at is not taken for absent. */
const seen = (at: string) =>
  Effect.mapError(infoAt(at), (cause) => unreadable(`${at} cannot be looked at`, cause))

/** Null for what no record holds: a device, something behind a symbolic link. A directory counts as nothing there. */
export const standingAt = Effect.fnUntraced(function* (
  { disk, root }: Place,
  path: string
): Effect.fn.Return<
  Standing | null,
  Effect.Error<ReturnType<typeof nodeAt>>,
  Effect.Services<ReturnType<typeof nodeAt>>
> {
  for (const parent of parentsOf(path)) {
    const info = yield* seen(disk.path.join(root, parent))
    if (info === undefined || info.type === "File") return absent
    if (info.type !== "Directory") return null
  }
  const info = yield* seen(disk.path.join(root, path))
  const node = yield* nodeAt(root, path, maxFileBytes)
  switch (node?._tag) {
    case undefined:
    case "Directory":
      return absent
    case "File":
      return {
        kind: "file",
        digest: sha256(node.bytes),
        executable: node.executable,
        mode: (info?.mode ?? 0o644) & 0o7777
      }
    case "Symlink":
      return { kind: "symlink", target: node.target }
    case "Special":
      return null
  }
})

/** How every path of a record stands. A path that no record of ours could name is nobody's to touch. */
export const findAll = Effect.fnUntraced(function* (place: Place, record: ApplyRecord) {
  const found = new Map<string, Found>()
  for (const { after, before, path } of record.files) {
    const checked = checkWorkspacePath(path)
    const standing =
      checked._tag === "Success" && checked.success === path ? yield* standingAt(place, path) : null
    found.set(
      path,
      standing === null
        ? "foreign"
        : sameStanding(standing, after)
          ? "after"
          : sameStanding(standing, before)
            ? "before"
            : "foreign"
    )
  }
  return (path: string): Found => found.get(path) ?? "foreign"
})

const temporaryFor = (place: Place, path: string, record: string, at: number): string =>
  place.disk.path.join(
    place.disk.path.dirname(place.disk.path.join(place.root, path)),
    `.looplane-${record}-${at}`
  )

/** Moves a file of a record to its path: at once, and never half of it. */
export const put = Effect.fnUntraced(function* (
  place: Place,
  source: string,
  path: string,
  record: string,
  at: number
) {
  const { disk, root } = place
  const { fs } = disk
  const target = disk.path.join(root, path)
  yield* fs.rename(source, target).pipe(
    Effect.catchIf(
      (error) => errnoOf(error) === "EXDEV",
      // The git directory lies on another disk than the file: the bytes travel first, beside the target.
      Effect.fnUntraced(function* () {
        const temporary = temporaryFor(place, path, record, at)
        yield* fs.remove(temporary, { force: true })
        const info = yield* fs.lstat(source)
        if (info.type === "SymbolicLink") yield* fs.symlink(yield* fs.readLink(source), temporary)
        else {
          yield* fs.copyFile(source, temporary)
          yield* fs.chmod(temporary, info.mode & 0o7777)
          yield* Effect.scoped(Effect.flatMap(fs.open(temporary, { flag: "r" }), (file) => file.sync))
        }
        yield* fs.rename(temporary, target)
        yield* fs.remove(source, { force: true })
      })
    )
  )
})

/** Removes what a crash may have left beside the target of a path. */
export const sweep = Effect.fnUntraced(function* (place: Place, record: ApplyRecord) {
  yield* Effect.forEach(record.files, ({ path }, at) =>
    place.disk.fs.remove(temporaryFor(place, path, record.id, at), { force: true }).pipe(Effect.ignore)
  )
})

/** Makes the names in every directory that a record touches durable. */
export const syncDirectories = Effect.fnUntraced(function* (place: Place, record: ApplyRecord) {
  const { disk, root } = place
  const directories = new Set(
    record.files.flatMap(({ path }) => ["", ...parentsOf(path)]).map((each) => disk.path.join(root, each))
  )
  yield* Effect.forEach(directories, (directory) =>
    Effect.flatMap(infoAt(directory), (info) =>
      info?.type === "Directory" ? disk.syncDirectory(directory) : Effect.void
    )
  )
})

export const changedMeanwhile = (path: string) =>
  failed(`${path} was changed while the patch was being applied: nothing is applied, try again`)
