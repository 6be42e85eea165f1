/**
 * Flags of `receipt check`.
 */
import { Argument, type Command, Flag } from "effect/cli"
import { runRoot } from "./flags.ts"

export const receiptCheckFlags = {
  receipt: Argument.String("run").pipe(
    Argument.withDescription(
      'A run (its id, the beginning of it, "last", or the path of its directory), or the path of a receipt.json'
    )
  ),
  directory: Flag.String("cd").pipe(
    Flag.withAlias("C"),
    Flag.withAlias("repo"),
    Flag.withMetavar("DIR"),
    Flag.withDescription(
      "A repository that holds the base commit: put the patch on it in a fresh clone, and run the checks there again"
    ),
    Flag.optional
  ),
  patch: Flag.String("patch").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("The patch of a receipt that is checked without its bundle"),
    Flag.optional
  ),
  run: Flag.Boolean("run").pipe(
    Flag.withDescription("Run the checks again; --no-run stops at the patched tree (default: yes)"),
    Flag.withDefault(true)
  ),
  unsafeLocalExec: Flag.Boolean("unsafe-local-exec").pipe(
    Flag.withDescription(
      "Let the receipt's checks and set-up run on this machine without a sandbox: for repositories and receipts that you trust"
    ),
    Flag.withDefault(false)
  ),
  deps: Flag.String("deps").pipe(
    Flag.withMetavar("HOW"),
    Flag.withDescription(
      "Where installed dependencies come from: auto, copy, none, or a directory (default: as in the run)"
    ),
    Flag.optional
  ),
  setup: Flag.String("setup").pipe(
    Flag.withMetavar("CMD"),
    Flag.withDescription("A command that prepares the clone, in place of the run's own; repeat it for more"),
    Flag.atLeast(0)
  ),
  output: Flag.Literals("output", ["text", "json"]).pipe(
    Flag.withDescription("A line for each thing that was checked, or one JSON object (default: text)"),
    Flag.withDefault("text")
  ),
  runRoot
} as const

export type ReceiptCheckInput = Command.Command.Config.Infer<typeof receiptCheckFlags>
