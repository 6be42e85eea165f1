/**
 * The command line's entry: parses, runs, and ends the process with the right code.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer, Logger, Runtime } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { version } from "../version.ts"
import { root } from "./commands.ts"
import { writeErr } from "./io.ts"
import { laterCommand } from "./later.ts"

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

const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
    const error = Cause.squash(exit.cause)
    if (CliError.isCliError(error)) return onExit(2)
  }
  return Runtime.defaultTeardown(exit, onExit)
}

const args = process.argv.slice(2)
const laterLine = laterCommand(args[0] ?? "")

// The first Ctrl-C lets finalizers end the run properly; the second one is for people who will not wait.
let signals = 0
process.on("SIGINT", () => {
  signals += 1
  if (signals > 1) process.exit(130)
})

const program =
  laterLine === null
    ? Command.runWith(root, { version })(args)
    : writeErr(`looplane: ${laterLine}\n`).pipe(Effect.andThen(Effect.fail(new CliError.ShowHelp({ commandPath: [], errors: [] }))))

program.pipe(
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      CliOutput.layerPresenter(presenter),
      CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
      Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])
    )
  ),
  NodeRuntime.runMain({ teardown, disableErrorReporting: true })
)
