/**
 * The user's work tree on the disk.
 */
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { SecureRandom } from "effect/crypto"
import { ChildProcessSpawner } from "effect/process"
import type { MergedText, SurveyedPath, Texts } from "../../domain/Apply.ts"
import { type OpenUserTree, type PatchSource, UserTree } from "../../services/UserTree.ts"
import { runGit } from "../git/GitBinary.ts"
import { locateGit } from "../git/GitDirectory.ts"
import * as WriterLock from "../journal/WriterLock.ts"
import { checkCommit, makeBranch } from "./Commits.ts"
import { ApplySteps, explained, refused } from "./Fault.ts"
import { hasRecords, inPlace, makePlace, type Place, placeOf, readRecords } from "./Place.ts"
import { recover, undo } from "./PutBack.ts"
import { applyToBase, makeScratch, patchedPaths } from "./Scratch.ts"
import { readSettings } from "./Settings.ts"
import { survey } from "./Survey.ts"
import { ApplyWatcher } from "./Watcher.ts"
import { writeSteps } from "./Write.ts"

/** Beyond this many conflicts git says no more how many there are, and from 128 on that something broke. */
const mostConflicts = 127

const mergeText = Effect.fnUntraced(function* ({ base, ours, theirs }: Texts) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "looplane-" })
  const files = [
    ["yours", ours],
    ["base", base],
    ["patch", theirs]
  ] as const
  for (const [name, bytes] of files) yield* fs.writeFile(path.join(directory, name), bytes)
  const names = files.map(([name]) => name)
  const { exit_code, stdout } = yield* runGit({
    cwd: directory,
    args: ["merge-file", "-p", "--diff3", ...names.flatMap((name) => ["-L", name]), ...names]
  })
  const merged: MergedText | null =
    exit_code > mostConflicts ? null : { bytes: stdout, clean: exit_code === 0 }
  return merged
}, Effect.scoped)

const surveyPatch = Effect.fnUntraced(function* ({ location, root }: Place, source: PatchSource) {
  const settings = yield* readSettings(location, root)
  const { base_commit, run_directory } = source
  const scratch = yield* makeScratch({ location, commit: base_commit, run_directory, into: null })
  const tree = yield* applyToBase(scratch, source)
  return yield* survey(location, root, settings, yield* patchedPaths(scratch, source.base, tree))
}, Effect.scoped)

export const layer: Layer.Layer<
  UserTree,
  never,
  | ApplyWatcher
  | ChildProcessSpawner.ChildProcessSpawner
  | FileSystem.FileSystem
  | Path.Path
  | SecureRandom.SecureRandom
> = Layer.effect(
  UserTree,
  Effect.gen(function* () {
    const watcher = yield* ApplyWatcher
    const random = yield* SecureRandom.SecureRandom
    const lock = yield* WriterLock.WriterLock
    const steps = yield* ApplySteps
    const services = Context.add(
      Context.pick(
        ChildProcessSpawner.ChildProcessSpawner,
        FileSystem.FileSystem,
        Path.Path
      )(yield* Effect.context<ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path>()),
      ApplySteps,
      steps
    )

    const claim = (place: Place) =>
      lock
        .acquire(place.lock)
        .pipe(
          Effect.mapError((error) =>
            error.reason === "busy"
              ? refused(
                  `another looplane is applying a patch to ${place.root}: try again when it has ended`,
                  error
                )
              : explained("refused", `${place.root} cannot be written`)(error)
          )
        )

    const open = Effect.fn("UserTree.open")(function* (root: string, options: { readonly write: boolean }) {
      const location = yield* locateGit(root).pipe(
        Effect.mapError(explained("refused", `${root} cannot be used`))
      )
      const place = yield* placeOf(root, location)
      const known = yield* hasRecords(place).pipe(
        Effect.mapError(explained("refused", `${root} cannot be read`))
      )
      if (!known && options.write)
        yield* makePlace(place).pipe(Effect.mapError(explained("refused", `${root} cannot be written`)))
      const kept = known || options.write
      if (kept) yield* claim(place)
      const recovered = kept ? yield* recover(place).pipe(Effect.mapError(inPlace(place))) : []

      const provided = Effect.provideContext(services)
      const tree: OpenUserTree = {
        recovered,
        survey: (source) =>
          surveyPatch(place, source).pipe(
            Effect.mapError(explained("refused", "the patch cannot be compared with your tree")),
            provided
          ),
        merge: (texts) =>
          mergeText(texts).pipe(
            Effect.mapError(explained("refused", "the patch cannot be merged with your tree")),
            provided
          ),
        write: (steps, about, commit) =>
          Effect.scoped(
            Effect.andThen(watcher.start(root), writeSteps(place, random, steps, about, commit))
          ).pipe(
            Effect.mapError(explained("failed", "the patch cannot be applied")),
            Effect.withSpan("UserTree.write"),
            provided
          ),
        last: (run_id) =>
          kept
            ? readRecords(place).pipe(
                Effect.map(
                  (records) =>
                    records.findLast(
                      (record) => record.phase === "done" && (run_id === null || record.run_id === run_id)
                    ) ?? null
                ),
                Effect.mapError(inPlace(place)),
                provided
              )
            : Effect.succeed(null),
        undo: (record) =>
          Effect.scoped(Effect.andThen(watcher.start(root), undo(place, record))).pipe(
            Effect.mapError(explained("failed", "the apply cannot be undone")),
            provided
          ),
        branch: (source, name, commit) => provided(makeBranch(place, source, name, commit)),
        checkCommit: (surveyed: ReadonlyArray<SurveyedPath>) => provided(checkCommit(place, surveyed))
      }
      return tree
    })

    return UserTree.of({ open: (root, options) => Effect.provideContext(open(root, options), services) })
  })
).pipe(Layer.provide(WriterLock.layer))
