/**
 * The command line's entry: parses, runs, and ends the process with the right code.
 */
import { NodeCrypto, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer, Logger, Runtime } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { version } from "../version.ts"
import { root } from "./commands.ts"
import { CliExit } from "./exit.ts"
import { writeErr } from "./io.ts"
import { laterCommand } from "./later.ts"
import { fileLogger, logFile } from "./log.ts"

const oneLine = (text: string): string =>
  text
    .replaceAll(/\s*Did you mean this\?\s*/g, "; did you mean ")
    .replaceAll(/\s+/g, " ")
    .trim()

/** A usage error is one line that says what to do; help is for those who ask for it. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? writeErr(
          `looplane: ${oneLine(event.errors.map((error) => error.message).join("; "))} (see ${event.commandPath.join(" ")} --help)\n`
        )
      : CliOutput.defaultPresenter.present(event)
}

const args = process.argv.slice(2)
const laterLine = laterCommand(args[0] ?? "")

const program =
  laterLine === null
    ? Command.runWith(root, { version })(args)
    : writeErr(`looplane: ${laterLine}\n`).pipe(Effect.andThen(Effect.fail(new CliExit({ code: 2 }))))

/** A defect is a bug of ours: one line for the user, the stack for the log file. */
const reportDefect = (cause: Cause.Cause<unknown>) =>
  Effect.logError("the command died of a defect", cause).pipe(
    Effect.andThen(
      writeErr(`looplane: an internal error ended the command (details: ${logFile(process.env)})\n`)
    )
  )

const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && CliError.isCliError(Cause.squash(exit.cause))
    ? onExit(2)
    : Runtime.defaultTeardown(exit, onExit)

// The first Ctrl-C lets finalizers end the run properly; the second one is for people who will not wait.
let signals = 0
process.on("SIGINT", () => {
  signals += 1
  if (signals > 1) process.exit(130)
})

program.pipe(
  Effect.tapCause((cause) => (Cause.hasDies(cause) ? reportDefect(cause) : Effect.void)),
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      NodeCrypto.layerSecureRandom,
      CliOutput.layerPresenter(presenter),
      CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
      Logger.layer([fileLogger(process.env)])
    )
  ),
  NodeRuntime.runMain({ teardown, disableErrorReporting: true })
)
