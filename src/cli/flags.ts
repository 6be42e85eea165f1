/**
 * Flags as data. What a flag means is decided in `handlers/`; nothing here does anything.
 */
import { Argument, type Command, Flag } from "effect/cli"
import { defaultCheckTimeoutSeconds, defaultLimits } from "../domain/Task.ts"
import { emptyValue } from "./usage.ts"
import { sandboxFlags } from "./sandbox.ts"

const notEmpty = (value: string): boolean => value !== ""

/** A flag with a value that says something: what an unset variable of a script leaves of one is refused. */
export const text = (name: string, description: string, metavar: string) =>
  Flag.String(name).pipe(
    Flag.filter(notEmpty, () => emptyValue),
    Flag.withDescription(description),
    Flag.withMetavar(metavar)
  )
export const optionalText = (name: string, description: string, metavar: string) =>
  text(name, description, metavar).pipe(Flag.optional)
export const repeated = (name: string, description: string, metavar: string) =>
  text(name, description, metavar).pipe(Flag.atLeast(0))
export const off = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))
export const on = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(true))
/** `--output` of a command that does not run anything. */
export const textOrJson = (description: string) =>
  Flag.Literals("output", ["text", "json"]).pipe(Flag.withDescription(description), Flag.withDefault("text"))
const runOutput = (description: string) =>
  Flag.Literals("output", ["text", "json", "jsonl"]).pipe(Flag.withDescription(description), Flag.optional)
const later = (name: string) => Flag.Boolean(name).pipe(Flag.withHidden, Flag.withDefault(false))

export const prompt = Argument.String("prompt").pipe(
  Argument.withDescription('What should be done, in words. "-" reads it from stdin'),
  Argument.variadic()
)

/** The word that means a run. */
export const runArgument = (description: string) =>
  Argument.String("run").pipe(
    Argument.filter(notEmpty, () => emptyValue),
    Argument.withDescription(description)
  )

export const runRoot = optionalText(
  "run-root",
  "Where runs are kept (default: $LOOPLANE_RUN_ROOT, or looplane/runs under the XDG state directory)",
  "DIR"
)

/** What the default command and `exec` share. */
export const runFlags = {
  prompt,
  task: optionalText("task", "The prompt as a flag, for scripts", "TEXT").pipe(Flag.withAlias("t")),
  directory: text(
    "cd",
    "The repository to work on, or a directory inside it; checks run in that directory (default: here)",
    "DIR"
  ).pipe(Flag.withAlias("C"), Flag.withAlias("repo"), Flag.withDefault(".")),
  check: repeated(
    "check",
    "A command that must pass on the result; repeat it for more. \"auto\" takes what the repository seems to use. No shell: use sh -c '…' for one",
    "CMD"
  ),
  noCheck: off("no-check", "Accept a patch that nothing has verified"),
  provider: optionalText(
    "provider",
    "openai-compatible (the default), anthropic, ollama, openrouter, … Its key comes from the environment",
    "NAME"
  ),
  model: optionalText(
    "model",
    "The model to ask; provider/model works too (default: $LOOPLANE_MODEL, or model in config.json)",
    "ID"
  ).pipe(Flag.withAlias("m")),
  apiUrl: optionalText("api-url", "The provider's base URL, when it is not the official one", "URL").pipe(
    Flag.withAlias("base-url")
  ),
  fallbackModel: repeated(
    "fallback-model",
    "Asked from then on when the model before it fails for good",
    "PROVIDER/MODEL"
  ),
  allowCustomEndpoint: off(
    "allow-custom-provider-endpoint",
    "Send a native provider's key to another host than its official one"
  ),
  allowedPath: repeated(
    "allowed-path",
    "A file, directory or glob that the agent may read and change; repeat it (default: everything)",
    "GLOB"
  ),
  protect: repeated(
    "protect",
    "Paths that no patch may touch, such as tests and their configuration; repeat it",
    "GLOB"
  ),
  base: optionalText(
    "base",
    '"working-tree" starts from the files as they are instead of the last commit',
    "WHAT"
  ),
  baseSha: optionalText("base-sha", "The commit to start from (default: HEAD)", "REV"),
  output: runOutput(
    "What stdout carries: an answer, one JSON object, or events line by line and then the result (default: json for exec; text otherwise, but json for -p in a pipe)"
  ),
  runRoot,
  maxSteps: Flag.Int("max-steps").pipe(
    Flag.withDescription(`Turns of the model at most (default: ${defaultLimits.max_steps})`),
    Flag.withDefault(defaultLimits.max_steps)
  ),
  wallTime: Flag.Finite("wall-time").pipe(
    Flag.withDescription(
      `Active seconds at most; set-up does not count (default: ${defaultLimits.wall_time_seconds})`
    ),
    Flag.withDefault(defaultLimits.wall_time_seconds)
  ),
  maxTotalTokens: Flag.Int("max-total-tokens").pipe(
    Flag.withDescription("Tokens of the whole run at most (default: no limit)"),
    Flag.optional
  ),
  checkTimeout: Flag.Finite("check-timeout").pipe(
    Flag.withDescription(`Seconds that one check may take (default: ${defaultCheckTimeoutSeconds})`),
    Flag.optional
  ),
  setup: repeated(
    "setup",
    "A command that prepares the clone, such as an install; runs once, before everything else",
    "CMD"
  ),
  deps: text(
    "deps",
    "Where installed dependencies come from: auto, copy, none, or a directory (default: auto, those of your checkout when its lock files equal the base's: shown to the checks in the sandbox, copied without one)",
    "HOW"
  ).pipe(Flag.withDefault("auto")),
  include: repeated("include", "Ignored files that the checks need, such as .env.test; repeat it", "GLOB"),
  baseline: on(
    "baseline",
    "Run each check once on the untouched base as well; --no-baseline does not (default: yes)"
  ),
  ...sandboxFlags,
  toolCalling: on(
    "tool-calling",
    "Accepted for scripts; --no-tool-calling is refused, the loop works through tools only"
  ),
  dialect: Flag.Literals("dialect", ["auto", "xml", "native"]).pipe(
    Flag.withHidden,
    Flag.withDefault("auto")
  ),
  experimentalSubscription: later("experimental-subscription"),
  dangerous: later("dangerous"),
  editRealRepo: later("edit-real-repo"),
  autoReview: later("auto-review"),
  denyTool: Flag.String("deny-tool").pipe(Flag.withHidden, Flag.atLeast(0))
} as const

/** What only the default command has. */
export const chatFlags = {
  ...runFlags,
  print: off("print", "Ask nothing, also not for a missing prompt; JSON on stdout in a pipe").pipe(
    Flag.withAlias("p")
  ),
  plain: off("plain", "Line by line, as this version always works"),
  noAltScreen: off("no-alt-screen", "Stay in the terminal's normal buffer, as this version always does")
} as const

export const resumeFlags = {
  run: runArgument(
    'Which run: its id, the beginning of it, "last" (the newest that has not ended), or the path of its directory'
  ).pipe(Argument.withDefault("last")),
  prompt: Argument.String("task").pipe(
    Argument.withDescription("A follow-up task; without one the run goes on where it was cut off"),
    Argument.variadic()
  ),
  provider: optionalText("provider", "Another provider from here on", "NAME"),
  model: optionalText("model", "Another model from here on; provider/model works too", "ID").pipe(
    Flag.withAlias("m")
  ),
  apiUrl: optionalText("api-url", "Another base URL from here on", "URL").pipe(Flag.withAlias("base-url")),
  allowCustomEndpoint: off(
    "allow-custom-provider-endpoint",
    "Send a native provider's key to another host than its official one"
  ),
  unsafeLocalExec: off(
    "unsafe-local-exec",
    "Let the checks of a run that lies outside the run root run on this machine: somebody else may have made it"
  ),
  acceptLoss: off(
    "accept-loss",
    "Go on although the journal has lost events: with what is left of it, and the result says so"
  ),
  output: runOutput(
    "What stdout carries: an answer, one JSON object, or events line by line and then the result (default: json)"
  ),
  runRoot
} as const

export const sessionsFlags = {
  runRoot,
  limit: Flag.Int("limit").pipe(
    Flag.withAlias("n"),
    Flag.withDescription("Runs to list at most (default: 20)"),
    Flag.withDefault(20)
  ),
  forkFromEvent: optionalText(
    "fork-from-event",
    "Make a new run that begins where this one stood after event --sequence; resume goes on with it",
    "RUN"
  ),
  sequence: Flag.Int("sequence").pipe(
    Flag.withDescription("The event to fork from, as --show numbers them"),
    Flag.optional
  ),
  query: optionalText("query", "Only runs whose task, model or status holds this text", "TEXT").pipe(
    Flag.withAlias("q")
  ),
  show: optionalText("show", "One run's events, by id or the beginning of it", "RUN"),
  replay: optionalText(
    "replay",
    "One run's story for people: its tasks, what was said and done in them, and when",
    "RUN"
  ),
  replayJson: optionalText(
    "replay-json",
    "The same as canonical JSON, byte for byte the same for equal journals",
    "RUN"
  ),
  output: textOrJson("A table for people, or JSON (default: text)")
} as const

export type RunInput = Command.Command.Config.Infer<typeof runFlags>
export type ResumeInput = Command.Command.Config.Infer<typeof resumeFlags>
export type SessionsInput = Command.Command.Config.Infer<typeof sessionsFlags>
