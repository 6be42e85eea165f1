/**
 * Writing the steps of a plan, all or nothing: first a durable record of what every path was and shall be, then one
 * rename a path, then the word that it is done.
 */
import { DateTime, Effect, type FileSystem } from "effect"
import type { SecureRandom } from "effect/crypto"
import type { ApplyStep } from "../../domain/ApplyPlan.ts"
import { type ApplyRecord, sameStanding, type Standing } from "../../domain/ApplyRecord.ts"
import type { FileNode } from "../../domain/patch/FileSet.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import type { ApplyAbout, NewCommit } from "../../services/UserTree.ts"
import { infoAt, makeDirectoryOnce, modeFor, removeIfEmpty } from "../fs/Files.ts"
import { sha256 } from "../journal/Hash.ts"
import { prepareCommit } from "./Commits.ts"
import { type Cause, explained, failed, reached } from "./Fault.ts"
import { land, unland } from "./Land.ts"
import {
  afterFile,
  beforeFile,
  directoryOf,
  makeRecordDirectory,
  type Place,
  prune,
  removeRecord,
  writeRecord
} from "./Place.ts"
import { goBack } from "./PutBack.ts"
import { changedMeanwhile, put, standingAt, syncDirectories } from "./Standing.ts"

/** Writes a node into the record, not yet durable. `mode` null: as a new file gets it. */
const keep = Effect.fnUntraced(function* (
  { disk: { fs } }: Place,
  file: string,
  node: FileNode,
  mode: number | null
) {
  if (node._tag === "Symlink") return yield* fs.symlink(node.target, file)
  if (node._tag !== "File") return yield* failed(`${file} cannot be kept`)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* fs.open(file, { flag: "wx", mode: node.executable ? 0o777 : 0o666 })
      yield* handle.writeAll(node.bytes)
      if (mode !== null) yield* fs.chmod(file, mode)
    })
  )
})

const standingOf = (node: FileNode | undefined, mode: number): Standing =>
  node?._tag === "File"
    ? { kind: "file", digest: sha256(node.bytes), executable: node.executable, mode }
    : node?._tag === "Symlink"
      ? { kind: "symlink", target: node.target }
      : { kind: "absent" }

/** What stands there must still be what the plan was made from. */
const unchanged = Effect.fnUntraced(function* (place: Place, path: string, before: Standing) {
  const standing = yield* standingAt(place, path)
  if (standing === null || !sameStanding(standing, before)) return yield* changedMeanwhile(path)
  return standing
})

const capture = Effect.fnUntraced(function* (place: Place, id: string, step: ApplyStep, at: number) {
  yield* reached(`keep ${at}`)
  const { from, to } = step
  const before = yield* unchanged(place, step.path, standingOf(from, 0))
  const mode = before.kind === "file" ? before.mode : null
  if (from !== undefined) yield* keep(place, beforeFile(place, id, at), from, mode)
  if (to?._tag === "File")
    yield* keep(place, afterFile(place, id, at), to, mode === null ? null : modeFor(mode, to.executable))
  else if (to !== undefined) yield* keep(place, afterFile(place, id, at), to, null)
  const after = standingOf(to, mode === null ? 0o644 : mode)
  return { path: step.path, change: step.change, merged: step.merged, before, after }
})

/** As many at once as the disk can take together: one after the other, each would wait for its own turn of it. */
const syncsAtOnce = 16

/** Makes every file of a record durable. */
const syncKept = Effect.fnUntraced(function* ({ disk: { fs, path } }: Place, directory: string) {
  const entries = yield* fs.readDirectoryEntries(directory)
  yield* Effect.forEach(
    entries.filter((entry) => entry.type === "File"),
    (entry) =>
      Effect.scoped(
        Effect.flatMap(fs.open(path.join(directory, entry.name), { flag: "r" }), (file) => file.sync)
      ),
    { concurrency: syncsAtOnce, discard: true }
  )
})

/** Directories that will be made, and those that may be left empty. */
const directories = Effect.fnUntraced(function* (place: Place, steps: ReadonlyArray<ApplyStep>) {
  const { disk, root } = place
  const made = new Set<string>()
  const emptied = new Map<string, number>()
  for (const { path, to } of steps) {
    for (const parent of parentsOf(path)) {
      const info = yield* infoAt(disk.path.join(root, parent))
      if (to !== undefined && info?.type !== "Directory") made.add(parent)
      if (to === undefined && info?.type === "Directory") emptied.set(parent, info.mode & 0o7777)
    }
  }
  const byDepth = (a: string, b: string) => a.split("/").length - b.split("/").length
  return {
    made: [...made].toSorted(byDepth),
    emptied: [...emptied].map(([path, mode]) => ({ path, mode })).toSorted((a, b) => byDepth(a.path, b.path))
  }
})

const prepare = Effect.fnUntraced(function* (
  place: Place,
  id: string,
  steps: ReadonlyArray<ApplyStep>,
  about: ApplyAbout,
  commit: NewCommit | null
) {
  yield* reached("record")
  yield* makeRecordDirectory(place, id)
  const around = yield* directories(place, steps)
  const files = yield* Effect.forEach(steps, (step, at) => capture(place, id, step, at))
  yield* reached("sync")
  yield* syncKept(place, directoryOf(place, id))
  const onto = commit === null ? {} : { onto: yield* prepareCommit(place, steps, commit) }
  const record: ApplyRecord = {
    version: 1,
    id,
    ...about,
    created_at: DateTime.formatIso(yield* DateTime.now),
    phase: "prepared",
    commit: null,
    ...onto,
    files,
    ...around
  }
  yield* reached("prepared")
  yield* writeRecord(place, record)
  return record
})

/** Moves every path to `after`; `written` gets the numbers of those that are. */
const perform = Effect.fnUntraced(function* (place: Place, record: ApplyRecord, written: Set<number>) {
  const { disk, root } = place
  const all = record.files.map((file, at) => ({ file, at }))
  const each = (
    { at, file }: (typeof all)[number],
    move: Effect.Effect<void, Cause, FileSystem.FileSystem>
  ) =>
    Effect.gen(function* () {
      yield* reached(`write ${at}`)
      yield* unchanged(place, file.path, file.before)
      yield* move
      written.add(at)
    }).pipe(Effect.mapError(explained("failed", `${file.path} cannot be written, and nothing is applied`)))
  for (const one of all)
    if (one.file.after.kind === "absent")
      yield* each(one, disk.fs.remove(disk.path.join(root, one.file.path)))
  const emptied = record.emptied.map(({ path }) => path).toReversed()
  for (const one of all) {
    if (one.file.after.kind === "absent") continue
    const { path } = one.file
    // What the patch cleared away made room for it.
    for (const directory of emptied)
      if (directory === path || directory.startsWith(`${path}/`))
        yield* removeIfEmpty(disk.path.join(root, directory))
    const make = Effect.forEach(
      parentsOf(path).filter((parent) => record.made.includes(parent)),
      (parent) => makeDirectoryOnce(disk.path.join(root, parent)),
      { discard: true }
    )
    const source = afterFile(place, record.id, one.at)
    yield* each(one, Effect.andThen(make, put(place, source, path, record.id, one.at)))
  }
  for (const directory of emptied) yield* removeIfEmpty(disk.path.join(root, directory))
  yield* reached("written")
  yield* syncDirectories(place, record)
  const { onto } = record
  if (onto !== undefined)
    yield* land(place, record.run_id, onto).pipe(
      Effect.mapError(explained("failed", "the patch cannot be committed, and nothing is applied"))
    )
  yield* reached("done")
  const done: ApplyRecord = { ...record, phase: "done", commit: onto?.commit ?? null }
  yield* writeRecord(place, done)
  yield* reached("told")
  return done
})

export const writeSteps = Effect.fnUntraced(function* (
  place: Place,
  random: SecureRandom.SecureRandom["Service"],
  steps: ReadonlyArray<ApplyStep>,
  about: ApplyAbout,
  commit: NewCommit | null
) {
  const id = yield* random.uuidV7()
  return yield* Effect.uninterruptible(
    Effect.gen(function* () {
      const record = yield* prepare(place, id, steps, about, commit).pipe(
        Effect.mapError(
          explained(
            "failed",
            `what your files are cannot be kept in ${directoryOf(place, id)}, so nothing is applied`
          )
        ),
        Effect.onError(() => Effect.ignore(removeRecord(place, id)))
      )
      const written = new Set<number>()
      const back = Effect.gen(function* () {
        if (record.onto !== undefined) yield* unland(place, record.run_id, record.onto)
        yield* goBack(place, record, written)
      })
      const done = yield* perform(place, record, written).pipe(
        Effect.catchCause((cause) => Effect.andThen(back, Effect.failCause(cause)))
      )
      yield* prune(place).pipe(Effect.ignore)
      return done
    })
  )
})
