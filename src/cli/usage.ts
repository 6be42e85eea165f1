/**
 * What is wrong with a command line, in one line that says what to do.
 */
import type { CliError } from "effect/cli"
import { clip } from "./render/clip.ts"

const maxLine = 400

/** What is expected of a value that is there and says nothing. */
export const emptyValue = "a value that is not empty"

const sentence = (error: CliError.NonShowHelpErrors): string => {
  if (error._tag === "InvalidValue" && /^\d+ occurrences$/.test(error.value))
    return `--${error.option} is given more than once: give it once`
  if (error._tag === "InvalidValue" && error.expected === emptyValue)
    return `${error.kind === "flag" ? `--${error.option}` : `<${error.option}>`} is empty: give it a value, or leave it out`
  if (error._tag === "InvalidValue" && /representing (?:a finite|an integer) ?/.test(error.expected))
    return `--${error.option} ${JSON.stringify(error.value)}: it takes a number`
  // A prompt that begins with a dash is read as short flags, letter by letter.
  if (error._tag === "UnrecognizedOption" && /^-[^-]?$/.test(error.option))
    return `there is no flag ${error.option}; a prompt that starts with - goes behind --, after all flags`
  return error.message.replaceAll(/\s*Did you mean this\?\s*/g, "; did you mean ")
}

/** The first fault alone: what follows it is often only its echo. */
export const usageLine = (
  errors: ReadonlyArray<CliError.NonShowHelpErrors>,
  commandPath: ReadonlyArray<string>
): string => {
  const [first] = errors
  const fault = first === undefined ? "the command line cannot be read" : sentence(first)
  return clip(`looplane: ${fault} (see ${commandPath.join(" ")} --help)`, maxLine)
}
