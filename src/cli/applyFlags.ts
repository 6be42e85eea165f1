/**
 * `apply` as data: its flags, and what its help says.
 */
import { Argument, type Command, Flag } from "effect/cli"
import { off, optionalText, runArgument, runRoot, textOrJson } from "./flags.ts"

export const applyFlags = {
  run: runArgument(
    "The run: an id, the beginning of one, last, or the path of its directory (default: the newest of the repository)"
  ).pipe(Argument.optional),
  directory: optionalText(
    "cd",
    "The repository to write to (default: the run's own, or the one here)",
    "DIR"
  ).pipe(Flag.withAlias("C"), Flag.withAlias("repo")),
  check: off(
    "check",
    "Only say what would happen; writes nothing, but an apply that was cut off is put right first"
  ),
  undo: off("undo", "Put the files back as they were before the last apply, or before RUN was applied"),
  unverified: off("unverified", "Apply a patch that is not verified; the record of the apply says so"),
  conflicts: off("conflicts", "Write conflict markers where you and the patch changed the same lines"),
  branch: optionalText(
    "branch",
    "Commit base plus patch on a new branch instead; your files stay as they are",
    "NAME"
  ),
  commit: off("commit", "Commit exactly the patch's paths on the current branch as well; runs no hooks"),
  runRoot,
  output: textOrJson("What stdout carries: one line, or one JSON object (default: text)"),
  /** How a process that applies starts the one that watches over it. */
  watchOver: Flag.String("watch-over").pipe(Flag.withHidden, Flag.optional)
} as const

export type ApplyInput = Command.Command.Config.Infer<typeof applyFlags>

export const applyDescription =
  "Take a run's verified patch home. This is the only command that writes to your files.\n\nFiles that you have not touched since the run began get the patch; files that you went on working on are merged line by line. Where both changed the same lines, the paths are named and nothing at all is written (--conflicts writes markers instead). It is all or nothing, also when the process is killed in the middle: the files are then as before or as after, at once or with the next looplane apply in the repository. Your index and your line endings stay as they are, and --undo takes the last apply back as long as its files are what it left.\n\nOnly a patch that is verified, and that its run's journal and receipt vouch for, is applied; --unverified takes one that is less than that, but never one that was changed since.\n\nExit codes: 0 applied, or nothing to do; 1 conflicts, or the undo is not possible; 2 refused, nothing was written."

export const applyShortDescription = "Apply a run's verified patch to your files"

export const applyExamples = [
  { command: "looplane apply", description: "The newest run of the repository here" },
  {
    command: "looplane apply 0f3c --check",
    description: "What would happen, by the beginning of a run's id"
  },
  { command: "looplane apply --undo", description: "Take the last apply back" },
  {
    command: "looplane apply last --branch fix/add",
    description: "On a branch of its own, without touching your files"
  }
] as const
