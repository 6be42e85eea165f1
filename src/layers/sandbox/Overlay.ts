/**
 * Dependencies as overlays: the installed directory below, a throw-away above. bubblewrap 0.8 has none of its own, so
 * they are mounted in a user and mount namespace around it, which holds nothing but that, and bound from there.
 */
import { Effect, FileSystem, Path } from "effect"
import type { Mount } from "../../domain/SandboxView.ts"
import { type CommandPlace, SandboxError } from "../../services/Sandbox.ts"
import { parentsOf } from "../../domain/WorkspacePath.ts"
import { typeAt } from "../fs/Files.ts"
import { removeTree } from "../workspace/RemoveTree.ts"

/** Characters that separate the options of an overlay. */
const escaped = (path: string): string => path.replaceAll(/[\\,:]/g, (each) => `\\${each}`)

/** Mounts each pair of options and directory, then becomes the command. */
const script =
  'while [ "$1" != -- ]; do mount -t overlay -o "$1" overlay "$2" || exit 1; shift 2; done; shift; exec "$@"'

type NonEmpty = readonly [string, ...ReadonlyArray<string>]

interface Overlaying {
  readonly mounts: ReadonlyArray<Mount>
  /** The command around bubblewrap's, when there is something to mount first. */
  readonly wrap: (unshare: string, inside: NonEmpty) => NonEmpty
}

const cannot = (why: string, cause?: unknown) =>
  new SandboxError({
    reason: "refused",
    message: `dependencies cannot be shown: ${why}`,
    ...(cause === undefined ? {} : { cause })
  })

/** Everything that has to be there for the layers of a place, gone with the scope. */
export const overlaying = Effect.fnUntraced(
  function* (place: CommandPlace, root: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const nothing: Overlaying = { mounts: [], wrap: (_, inside) => inside }
    if (place.layers.length === 0) return nothing
    const scratch = yield* Effect.acquireRelease(
      fs.makeTempDirectory({ directory: path.dirname(place.root), prefix: "overlay-" }),
      removeTree
    )
    const mounts: Array<Mount> = []
    const pairs: Array<string> = []
    for (const [at, { from, path: name }] of place.layers.entries()) {
      // mount(8) has no way to write it.
      if (from.includes('"') || scratch.includes('"'))
        return yield* cannot(`the path of ${from} has a quotation mark in it: use --deps copy`)
      for (const parent of parentsOf(name))
        if ((yield* typeAt(path.join(place.root, parent))) === "SymbolicLink")
          return yield* cannot(`${parent} is a symbolic link`)
      const info = yield* fs.stat(from)
      const shown = path.join(root, name)
      if (info.type !== "Directory") {
        mounts.push({ _tag: "ReadOnly", from, at: shown })
        continue
      }
      const part = (kind: string) => path.join(scratch, `${at}.${kind}`)
      const upper = part("upper")
      const work = part("work")
      const merged = part("merged")
      for (const directory of [upper, work, merged]) yield* fs.makeDirectory(directory, { mode: 0o700 })
      // What is merged has the mode of what lies above.
      yield* fs.chmod(upper, info.mode & 0o7777)
      pairs.push(
        `lowerdir=${escaped(from)},upperdir=${escaped(upper)},workdir=${escaped(work)},userxattr`,
        merged
      )
      mounts.push({ _tag: "Writable", from: merged, at: shown })
    }
    const overlays: Overlaying = {
      mounts,
      wrap: (unshare, inside) =>
        pairs.length === 0
          ? inside
          : [
              unshare,
              "--user",
              "--map-root-user",
              "--mount",
              "--",
              "/bin/sh",
              "-c",
              script,
              "sh",
              ...pairs,
              "--",
              ...inside
            ]
    }
    return overlays
  },
  Effect.mapError((error) => (error._tag === "SandboxError" ? error : cannot(error.message, error)))
)
