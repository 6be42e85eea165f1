/**
 * Where the runs are that a command is about.
 */
import { Effect, Option, Path } from "effect"
import { Settings } from "../services/Settings.ts"

/** The directory of `--run-root`, absolute; without the flag, that of the settings. */
export const runRootOf = Effect.fnUntraced(function* (input: { readonly runRoot: Option.Option<string> }) {
  const path = yield* Path.Path
  const settings = yield* Settings
  return path.resolve(Option.getOrElse(input.runRoot, () => settings.run_root))
})
