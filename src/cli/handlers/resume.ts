/**
 * `resume`: a run that was cut off, or one that ended and gets a follow-up task.
 */
import { Effect, FileSystem, Layer, Option, Path, Stream } from "effect"
import { isProviderName, providers } from "../../domain/model/Providers.ts"
import { refuse } from "../../domain/Refusal.ts"
import { checksOf } from "../../domain/Task.ts"
import type { RunRequest } from "../../domain/Request.ts"
import {
  chooseSandbox,
  layerNoCommands,
  layerUncontained,
  layerRead,
  layerRun,
  layerStore,
  makeModels
} from "../../layers/Live.ts"
import { recordedModels } from "../../programs/ChooseModels.ts"
import { resume } from "../../programs/Resume.ts"
import { Models } from "../../services/Model.ts"
import { Observer } from "../../services/Observer.ts"
import { RunStore, type RunSummary } from "../../services/RunStore.ts"
import { Settings } from "../../services/Settings.ts"
import type { ResumeInput } from "../flags.ts"
import { endWith } from "../io.ts"
import { ending, observerOf } from "./present.ts"
import { sandboxRequest } from "../sandbox.ts"

/** Whether the journal of a run is not what it was: then whatever its result says, it has not ended. */
const hasLost = Effect.fnUntraced(function* ({ directory }: RunSummary) {
  const store = yield* RunStore
  return yield* store.entries(directory).pipe(
    Stream.runDrain,
    Effect.as(false),
    Effect.catchIf(
      (error) => error.reason === "damaged",
      () => Effect.succeed(true)
    )
  )
})

/** The run that is meant, before anything of it is written. */
const wanted = Effect.fnUntraced(function* (run: string, followUp: boolean, runRoot: string) {
  const store = yield* RunStore
  if (run !== "last" || followUp) return yield* store.find(run)
  const unfinished = yield* store.unfinished
  if (unfinished !== null) return unfinished
  // Fails where there is none at all.
  const newest = yield* store.find("last")
  if (yield* hasLost(newest)) return newest
  return yield* refuse(
    `every run under ${runRoot} has ended: to go on with one, give a follow-up task, as in looplane resume last "next task"`
  )
})

/** A follow-up replaces what an ended run left. It is not taken where there is nothing left to work in. */
const demandPlace = Effect.fnUntraced(function* ({ directory, request, run_id }: RunSummary) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const places = [request?.task.repository ?? directory, path.join(directory, "git")]
  const there = yield* Effect.forEach(places, (at) => Effect.orElseSucceed(fs.exists(at), () => true))
  if (there.includes(true)) return
  return yield* refuse(`run ${run_id} cannot be gone on with: ${places.join(" is gone, and so is ")}`)
})

/** Whether a key may go there without asking: the provider's own host, or this machine. */
const isUsual = (provider: string, endpoint: string | null): boolean => {
  if (endpoint === null) return true
  const host = URL.parse(endpoint)?.hostname ?? ""
  const own = isProviderName(provider) ? URL.parse(providers[provider].base_url)?.hostname : undefined
  return host === own || ["localhost", "127.0.0.1", "[::1]"].includes(host)
}

/** A run that lies elsewhere may be anybody's: what it would run here, and where it would send a key, is said anew. */
const demandConsent = Effect.fnUntraced(function* (
  input: ResumeInput,
  runRoot: string,
  directory: string,
  request: RunRequest
) {
  const path = yield* Path.Path
  if (path.dirname(directory) === runRoot) return
  if (request.sandbox === "host" && !input.unsafeLocalExec)
    return yield* refuse(
      `${directory} lies outside the run root ${runRoot}, and its checks would run on this machine: add --unsafe-local-exec if you trust whoever made it`
    )
  const { setup_network } = request.task
  const open = setup_network === "host" || checksOf(request.task).some(({ network }) => network === "host")
  if (open && !input.unsafeLocalExec)
    return yield* refuse(
      `${directory} lies outside the run root ${runRoot}, and its commands would use this machine's network: add --unsafe-local-exec if you trust whoever made it`
    )
  const strange = request.models.find((each) => !isUsual(each.provider, each.endpoint))
  if (strange !== undefined && Option.isNone(input.apiUrl) && !input.allowCustomEndpoint)
    return yield* refuse(
      `${directory} lies outside the run root ${runRoot}, and your key for ${strange.provider} would go to ${strange.endpoint ?? ""}: add --allow-custom-provider-endpoint if that is right, or name another one with --api-url`
    )
})

/** What was around the run's commands is around them again: nothing less, and nothing else. */
const sandboxOf = Effect.fnUntraced(function* (request: RunRequest, input: ResumeInput, runRoot: string) {
  switch (request.sandbox) {
    case "none":
      return layerNoCommands
    case "host":
      return layerUncontained
    case "bubblewrap":
    case "landlock":
      return yield* chooseSandbox({
        ...sandboxRequest(
          { ...input, sandboxChecks: Option.some(true), sandboxBackend: Option.some(request.sandbox) },
          runRoot,
          request.task.repository
        ),
        unsafe_local_exec: false
      })
  }
})

/** Everything that can be refused is refused here, while the run is still nobody's. */
const prepare = Effect.fnUntraced(function* (input: ResumeInput, runRoot: string, followUp: boolean) {
  const found: RunSummary = yield* wanted(input.run, followUp, runRoot)
  const { request } = found
  if (request === null)
    return yield* refuse(
      `run ${found.run_id} cannot be gone on with: its request.json is missing or cannot be read (${found.directory})`
    )
  if (found.result !== null && !followUp && !(yield* hasLost(found)))
    return yield* refuse(
      `run ${found.run_id} has ended (${found.result.terminal_reason}): give it a follow-up task, as in looplane resume ${found.run_id} "next task"`
    )
  if (found.result !== null) yield* demandPlace(found)
  yield* demandConsent(input, runRoot, found.directory, request)
  const specs = yield* recordedModels(request, {
    provider: Option.getOrNull(input.provider),
    model: Option.getOrNull(input.model),
    api_url: Option.getOrNull(input.apiUrl)
  })
  const allowCustomEndpoint = input.allowCustomEndpoint || request.allow_custom_endpoint === true
  const candidates = yield* makeModels(specs, { allowCustomEndpoint })
  return {
    candidates,
    request,
    directory: found.directory,
    sandbox: yield* sandboxOf(request, input, runRoot)
  }
})

export const resumeRun = Effect.fn("cli.resumeRun")(function* (input: ResumeInput) {
  const path = yield* Path.Path
  const words = input.prompt.join(" ").trim()
  const instruction = words === "" ? null : words
  const output = Option.getOrElse(input.output, () => "json" as const)
  const refused = (error: { readonly message: string }) => endWith(2, error.message)
  const prepared = yield* Effect.gen(function* () {
    const settings = yield* Settings
    const runRoot = path.resolve(Option.getOrElse(input.runRoot, () => settings.run_root))
    const found = yield* prepare(input, runRoot, instruction !== null).pipe(
      Effect.provide(layerStore({ runRoot }))
    )
    return { ...found, runRoot }
  }).pipe(
    Effect.provide(layerRead),
    Effect.catchTags({ Refusal: refused, StoreError: refused, SettingsError: refused })
  )
  const { candidates, directory, request, runRoot, sandbox } = prepared
  const { announce, leave } = ending(request.task, output)
  const finished = yield* Effect.scoped(
    Effect.gen(function* () {
      const store = yield* RunStore
      const taken = yield* store
        .open(directory, { accept_loss: input.acceptLoss })
        .pipe(Effect.catch(refused))
      return yield* resume(taken, { instruction, announce })
    })
  ).pipe(
    Effect.provideService(Observer, observerOf(output)),
    Effect.provide(
      layerRun({ runRoot, sandbox }).pipe(
        Layer.provideMerge(Layer.succeed(Models, Models.of({ candidates })))
      )
    ),
    Effect.catchTags({
      Refusal: refused,
      StoreError: (error) => endWith(1, error.message)
    })
  )
  return yield* leave(finished)
})
