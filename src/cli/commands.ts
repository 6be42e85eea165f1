/**
 * The commands as data. Handlers are loaded when they are called, so that `--help` costs nothing else.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { applyDescription, applyExamples, applyFlags, applyShortDescription } from "./applyFlags.ts"
import { chatFlags, resumeFlags, runFlags, sessionsFlags } from "./flags.ts"
import { receiptCheckFlags } from "./receiptFlags.ts"
import { bundleFlags, replayFlags } from "./replayFlags.ts"

export const exec = Command.make("exec", runFlags).pipe(
  Command.withAlias("run"),
  Command.withDescription(
    "Turn a task into a verified patch, without asking anything. The repository stays as it is: the work happens in a clone, the checks run on base plus patch, and stdout carries the result as JSON.\n\nIt needs a model (--model, or LOOPLANE_MODEL, or config.json), its provider's key in the environment, and a check. Checks run in a sandbox; where none holds they are refused, unless --unsafe-local-exec says that the repository is trusted.\n\nExit codes: 0 verified, no change needed, or unverified with --no-check; 1 the run ended otherwise; 2 refused before anything ran; 3 an answer was needed; 4 a cap was reached; 129, 130, 143 interrupted."
  ),
  Command.withShortDescription("Turn a task into a verified patch, headless"),
  Command.withExamples([
    {
      command: 'looplane exec "Fix the failing test." --check "npm test"',
      description: "Work on the repository here, verify with its tests"
    },
    {
      command:
        'looplane exec "Fix add()." -C ~/src/app --check auto --setup "npm ci" --allowed-path "src/**"',
      description:
        "Another repository, its own checks, dependencies installed in the clone, edits only under src"
    },
    {
      command: "looplane exec - --no-check --output text < task.md",
      description: "Read the prompt from stdin and accept an unverified patch"
    },
    { command: "looplane apply", description: "Then take the patch home" }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/run.ts")).pipe(
      Effect.flatMap(({ runTask }) =>
        runTask(input, { checksRequired: true, print: true, defaultOutput: "json", command: "looplane exec" })
      )
    )
  )
)

export const resume = Command.make("resume", resumeFlags).pipe(
  Command.withDescription(
    "Go on with a run: one that was interrupted or killed, exactly from where it stood, or one that has ended, with a follow-up task in the same conversation and workspace.\n\nEverything it was started with holds: repository, checks, limits and what of them is used up, fallback models, sandbox. A tool call that was cut off is made again on the files as they were before it; a question that nobody had answered is dropped, and the model is told so. --provider, --model and --api-url change who is asked from here on, and the result says so.\n\nExit codes as of exec."
  ),
  Command.withShortDescription("Go on with an interrupted run, or give a finished one a follow-up task"),
  Command.withExamples([
    { command: "looplane resume", description: "The newest run that has not ended" },
    {
      command: 'looplane resume last "Now add a test for it."',
      description: "A follow-up task for the newest run"
    },
    {
      command: "looplane resume 0f3c --model anthropic/claude-sonnet-5",
      description: "One run, by the beginning of its id, with another model"
    }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/resume.ts")).pipe(
      Effect.flatMap(({ resumeRun }) => resumeRun(input))
    )
  )
)

export const apply = Command.make("apply", applyFlags).pipe(
  Command.withDescription(applyDescription),
  Command.withShortDescription(applyShortDescription),
  Command.withExamples(applyExamples),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/apply.ts")).pipe(
      Effect.flatMap(({ applyPatch }) => applyPatch(input))
    )
  )
)

const receiptCheck = Command.make("check", receiptCheckFlags).pipe(
  Command.withDescription(
    "Check that a run's patch, logs and journal are what its receipt says, offline and without a model. With -C it also puts the patch on its base in a fresh clone of that repository and runs the checks there again, in a sandbox; where none holds that is skipped, unless --unsafe-local-exec says that receipt and repository are trusted. Nothing is written to the run or the repository.\n\nExit codes: 0 nothing failed, 1 something did, 2 it could not be checked as asked."
  ),
  Command.withShortDescription("Check a receipt and what it speaks of"),
  Command.withExamples([
    { command: "looplane receipt check last", description: "The newest run, by digests" },
    {
      command: "looplane receipt check receipt.json --patch changes.patch -C ~/src/app",
      description: "A receipt that was mailed: apply its patch to a clone and run its checks"
    }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/receipt.ts")).pipe(
      Effect.flatMap(({ checkReceiptOf }) => checkReceiptOf(input))
    )
  )
)

export const receipt = Command.make("receipt").pipe(
  Command.withDescription("The evidence of a patch: what it was made from, and what was proved of it."),
  Command.withShortDescription("Check the evidence of a patch"),
  Command.withSubcommands([receiptCheck])
)

export const replay = Command.make("replay", replayFlags).pipe(
  Command.withDescription(
    "Play a recorded run again: the whole program, from the bytes that the models sent and what tools and checks did then, without network, processes or files. Whatever it does is compared with the journal, event by event.\n\nExit codes: 0 every event agrees; 1 one differs, and the first that does is printed; 2 it cannot be played."
  ),
  Command.withShortDescription("Play a recorded run again and compare"),
  Command.withExamples([
    { command: "looplane replay last", description: "The newest run" },
    {
      command: "looplane replay bug.json",
      description: "A run that somebody sent as a file (looplane bundle)"
    }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/replay.ts")).pipe(
      Effect.flatMap(({ replayRun }) => replayRun(input))
    )
  )
)

export const bundle = Command.make("bundle", bundleFlags).pipe(
  Command.withDescription(
    "Write a run as one file that can be played anywhere: looplane replay FILE, or loadRecording of looplane/testing. It holds everything that the run's journal holds, so look at it before you publish it."
  ),
  Command.withShortDescription("Write a run as one portable file"),
  Command.withExamples([
    {
      command: "looplane bundle last --as-fixture -o bug.json",
      description: "For a bug report, or for a test"
    }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/bundle.ts")).pipe(
      Effect.flatMap(({ bundleRun }) => bundleRun(input))
    )
  )
)

export const sessions = Command.make("sessions", sessionsFlags).pipe(
  Command.withDescription(
    "List past runs, newest first, or show the events of one. Reads only. A run is a directory below the run root, and nothing else: to discard it, remove that directory (--show prints where it is)."
  ),
  Command.withShortDescription("List and show past runs"),
  Command.withExamples([
    { command: "looplane sessions", description: "The last 20 runs" },
    { command: "looplane sessions -q anthropic", description: "Runs that mention a text" },
    { command: "looplane sessions --show 0f3c", description: "One run, by the beginning of its id" }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/sessions.ts")).pipe(
      Effect.flatMap(({ showSessions }) => showSessions(input))
    )
  )
)

export const root = Command.make("looplane", chatFlags).pipe(
  Command.withDescription(
    "looplane turns a task into a verified patch. It clones the repository, lets a model work in the clone, runs your checks on what it hands over, and leaves a complete record of the run. Your own files are never touched.\n\nThe first time: export the provider's key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) and name a model with --model, LOOPLANE_MODEL or config.json. A model on this machine needs no key.\n\nWithout --check nothing verifies an edit: the run then ends unverified, with exit code 1. exec --help lists the exit codes.\n\nA first word that is a command name is the command: put -- before a prompt that starts with one."
  ),
  Command.withExamples([
    {
      command: 'looplane "Why does the test fail?" --model anthropic/claude-sonnet-5',
      description: "Ask about the repository here"
    },
    {
      command: 'looplane "Fix the failing test." --check "npm test"',
      description: "Change it, verified"
    },
    {
      command: 'looplane -p "Summarize this repository." --output text 2>/dev/null',
      description: "For scripts: stdout carries the answer and what came of it, and nothing is asked"
    }
  ]),
  Command.withHandler((input) =>
    Effect.promise(() => import("./handlers/run.ts")).pipe(
      Effect.flatMap(({ runTask }) =>
        runTask(input, {
          checksRequired: false,
          print: input.print,
          defaultOutput: null,
          command: "looplane"
        })
      )
    )
  ),
  Command.withSubcommands([exec, apply, resume, sessions, receipt, replay, bundle])
)
