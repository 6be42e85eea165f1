/**
 * The command line's entry: parses, runs, and ends the process with the right code.
 */
import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Exit, Layer, Logger, Runtime } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { version } from "../version.ts"
import { root } from "./commands.ts"
import { endWith, tolerateLostStreams, writeErr } from "./io.ts"
import { laterCommand, mistypedCommand } from "./later.ts"
import { fileLogger, logFile } from "./log.ts"
import { runMain } from "./signals.ts"
import { usageLine } from "./usage.ts"

/** A usage error is one line that says what to do; help is for those who ask for it. */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    switch (event._tag) {
      case "InvalidInvocation":
        return writeErr(`${usageLine(event.errors, event.commandPath)}\n`)
      case "Version":
        // As the launcher's fast path says it.
        return Console.log(`looplane ${event.version}`)
      case "Help":
        return CliOutput.defaultPresenter.present(event)
    }
  }
}

const args = process.argv.slice(2)
const laterLine = laterCommand(args[0] ?? "") ?? mistypedCommand(args[0] ?? "")

const program = laterLine === null ? Command.runWith(root, { version })(args) : endWith(2, laterLine)

/** A defect is a bug of ours: one line for the user, the stack for the log file. */
const reportDefect = (cause: Cause.Cause<unknown>) =>
  Effect.logError("the command died of a defect", cause).pipe(
    Effect.andThen(
      writeErr(
        `looplane: an internal error ended the command (details: ${logFile(process.env) ?? "set HOME for a log"})\n`
      )
    )
  )

const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && CliError.isCliError(Cause.squash(exit.cause))
    ? onExit(2)
    : Runtime.defaultTeardown(exit, onExit)

tolerateLostStreams()

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
  runMain({ teardown, disableErrorReporting: true })
)
