/**
 * Flags of `replay` and `bundle`.
 */
import { Argument, type Command, Flag } from "effect/cli"
import { runRoot } from "./flags.ts"

export const replayFlags = {
  recording: Argument.String("run").pipe(
    Argument.withDescription(
      'A run (its id, the beginning of it, "last" for the newest, or the path of its directory), or a file that bundle --as-fixture wrote'
    )
  ),
  output: Flag.Literals("output", ["text", "json"]).pipe(
    Flag.withDescription("A line for people, or one JSON object (default: text)"),
    Flag.withDefault("text")
  ),
  runRoot
} as const

export const bundleFlags = {
  run: Argument.String("run").pipe(
    Argument.withDescription(
      'Which run: its id, the beginning of it, "last" for the newest, or the path of its directory'
    )
  ),
  asFixture: Flag.Boolean("as-fixture").pipe(
    Flag.withDescription("The run as one file that looplane replay and looplane/testing play again anywhere"),
    Flag.withDefault(false)
  ),
  file: Flag.String("output").pipe(
    Flag.withAlias("o"),
    Flag.withMetavar("FILE"),
    Flag.withDescription("Where the file goes, for this user alone (mode 0600)")
  ),
  force: Flag.Boolean("force").pipe(
    Flag.withDescription("Replace a file that is there"),
    Flag.withDefault(false)
  ),
  runRoot
} as const

export type ReplayInput = Command.Command.Config.Infer<typeof replayFlags>
export type BundleInput = Command.Command.Config.Infer<typeof bundleFlags>
