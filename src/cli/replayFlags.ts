/**
 * Flags of `replay` and `bundle`.
 */
import { type Command, Flag } from "effect/cli"
import { off, runArgument, runRoot, text, textOrJson } from "./flags.ts"

export const replayFlags = {
  recording: runArgument(
    'A run (its id, the beginning of it, "last" for the newest, or the path of its directory), or a file that bundle --as-fixture wrote'
  ),
  output: textOrJson("A line for people, or one JSON object (default: text)"),
  runRoot
} as const

export const bundleFlags = {
  run: runArgument(
    'Which run: its id, the beginning of it, "last" for the newest, or the path of its directory'
  ),
  asFixture: off(
    "as-fixture",
    "The run as one file that looplane replay and looplane/testing play again anywhere"
  ),
  file: text("output", "Where the file goes, for this user alone (mode 0600)", "FILE").pipe(
    Flag.withAlias("o")
  ),
  force: off("force", "Replace a file that is there"),
  runRoot
} as const

export type ReplayInput = Command.Command.Config.Infer<typeof replayFlags>
export type BundleInput = Command.Command.Config.Infer<typeof bundleFlags>
