/**
 * Flags of `receipt check`.
 */
import { type Command, Flag } from "effect/cli"
import { on, optionalText, repeated, runArgument, runRoot, textOrJson } from "./flags.ts"
import { sandboxFlags } from "./sandbox.ts"

export const receiptCheckFlags = {
  receipt: runArgument(
    'A run (its id, the beginning of it, "last", or the path of its directory), or the path of a receipt.json'
  ),
  directory: optionalText(
    "cd",
    "A repository that holds the base commit: put the patch on it in a fresh clone, and run the checks there again",
    "DIR"
  ).pipe(Flag.withAlias("C"), Flag.withAlias("repo")),
  patch: optionalText("patch", "The patch of a receipt that is checked without its bundle", "FILE"),
  run: on("run", "Run the checks again; --no-run stops at the patched tree (default: yes)"),
  ...sandboxFlags,
  deps: optionalText(
    "deps",
    "Where installed dependencies come from: auto, copy, none, or a directory (default: as in the run)",
    "HOW"
  ),
  setup: repeated(
    "setup",
    "A command that prepares the clone, in place of the run's own; repeat it for more",
    "CMD"
  ),
  output: textOrJson("A line for each thing that was checked, or one JSON object (default: text)"),
  runRoot
} as const

export type ReceiptCheckInput = Command.Command.Config.Infer<typeof receiptCheckFlags>
