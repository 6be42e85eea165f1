/**
 * What a run must know of its workspace when another process opens it: facts of the source as it was, which `git/` alone
 * does not tell. Paths of the run's own directory are never in it.
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import { textAt } from "../fs/Files.ts"
import { Digest, TreeId } from "../../domain/Ids.ts"
import { branchPattern } from "../git/GitDirectory.ts"

/** A path below a root, in whatever hands the file was: it leads nowhere else. */
const Inside = Schema.String.check(
  Schema.isPattern(/^(?!(?:[^]*\/)?\.\.?(?:\/|$))[^/\0][^\0]*$/, { expected: "a path that stays inside" })
)

/** A directory of ours, by what is in it. */
export const Seal = Schema.Struct({
  /** Of the kernel's own facts of every file: cheap, and other on another disk. */
  facts: Schema.String,
  /** Of every file's bytes. */
  content: Schema.String
})
export type Seal = typeof Seal.Type

export const WorkspaceRecord = Schema.Struct({
  version: Schema.Literal(1),
  branch: Schema.NullOr(Schema.String.check(Schema.isPattern(branchPattern))),
  shallow: Schema.NullOr(Schema.String),
  /** The base's ignore rules, one character a byte. */
  excludes: Schema.String,
  layer: Schema.Struct({
    from: Schema.Literals(["source", "named", "setup"]),
    copied: Schema.Array(Inside),
    included: Schema.Array(Inside),
    lock_digest: Schema.NullOr(Digest),
    reason: Schema.NullOr(Schema.String),
    locks: Schema.Array(Schema.Struct({ path: Inside, digest: Schema.String })),
    seal: Schema.NullOr(Seal)
  }),
  submodules: Schema.Array(
    Schema.Struct({
      path: Inside,
      name: Schema.NullOr(Inside),
      /** Its directory below `modules/`; null when the source had no copy. */
      module: Schema.NullOr(Schema.String.check(Schema.isPattern(/^\d+$/))),
      commit: Schema.String,
      /** The tree of that commit; null when it was not there. */
      tree: Schema.NullOr(TreeId)
    })
  ),
  ignored_before: Schema.Array(Schema.String),
  notes: Schema.Array(Schema.String)
})
export type WorkspaceRecord = typeof WorkspaceRecord.Type

const Text = Schema.fromJsonString(WorkspaceRecord)

/** Writes it whole or not at all; durable when this returns, and with it every name in `git/`. */
export const writeRecord = Effect.fnUntraced(function* (at: string, record: WorkspaceRecord) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const temporary = `${at}.lock`
  yield* fs.remove(temporary, { force: true })
  yield* Effect.scoped(
    Effect.gen(function* () {
      const file = yield* fs.open(temporary, { flag: "wx", mode: 0o600 })
      yield* file.writeAll(Buffer.from(`${Schema.encodeSync(Text)(record)}\n`))
      yield* file.sync
    })
  )
  yield* fs.rename(temporary, at)
  yield* Effect.scoped(Effect.flatMap(fs.open(path.dirname(at)), (directory) => directory.sync))
})

/** Null when there is none that can be read. */
export const readRecord = Effect.fnUntraced(function* (at: string) {
  return yield* Schema.decodeUnknownEffect(Text)(yield* textAt(at)).pipe(
    Effect.catchTag("SchemaError", () => Effect.succeed(null))
  )
})
