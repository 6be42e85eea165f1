/**
 * The product's graph: the only place that composes it.
 */
import { NodeCrypto } from "@effect/platform-node"
import { Effect, Layer, Path } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import { homedir } from "node:os"
import type { Recording } from "../domain/Recording.ts"
import { refuse } from "../domain/Refusal.ts"
import {
  chooseSandbox as decideSandbox,
  needsProof,
  type SandboxBackend,
  type SandboxWish
} from "../domain/SandboxRule.ts"
import type { Model, ModelSpec } from "../services/Model.ts"
import { Sandbox } from "../services/Sandbox.ts"
import { Search as SearchService } from "../services/Search.ts"
import { Settings as SettingsService } from "../services/Settings.ts"
import * as Headless from "./approval/Headless.ts"
import * as Checks from "./checks/Checks.ts"
import * as Git from "./git/Git.ts"
import * as Store from "./journal/Store.ts"
import { makeModel } from "./model/Providers.ts"
import * as Reproduction from "./receipt/Git.ts"
import * as Replay from "./replay/Replay.ts"
import * as Backends from "./sandbox/Backends.ts"
import * as Host from "./sandbox/Host.ts"
import * as None from "./sandbox/None.ts"
import * as Programs from "./sandbox/Programs.ts"
import * as Search from "./search/Search.ts"
import * as Environment from "./settings/Environment.ts"
import * as Tools from "./tools/Tools.ts"
import * as UserTree from "./usertree/UserTree.ts"
import * as Watcher from "./usertree/Watcher.ts"
import * as Workspace from "./workspace/Workspace.ts"

export { watching } from "./usertree/Watcher.ts"

/** What is needed to find out whether something can run at all. Writes nothing. */
export const layerRead = Layer.mergeAll(Environment.layer, Git.layer, Programs.layer)

/** Digests, by this machine. */
export const layerDigest = NodeCrypto.layerDigest

/** Past runs. */
export const layerStore = (options: { readonly runRoot: string }) =>
  Store.layer({ run_root: options.runRoot }).pipe(Layer.provide(NodeCrypto.layerSecureRandom))

export interface SandboxRequest extends SandboxWish {
  readonly backend: SandboxBackend | null
  /** Absolute. */
  readonly runRoot: string
  /** The repository whose code will run; absent: none that is known. */
  readonly repository?: string
  /** Directories of programs that looplane's own start put on PATH. */
  readonly ownPrograms: ReadonlyArray<string>
}

/** The floor that commands stand on; see `SandboxRule.chooseSandbox`. */
export type SandboxLayer = Layer.Layer<Sandbox, never, ChildProcessSpawner.ChildProcessSpawner | Path.Path>

/** No command is to run. */
export const layerNoCommands: SandboxLayer = None.layerNone

/** Commands run on this machine with nothing around them. */
export const layerUncontained: SandboxLayer = Host.layerHost

/** Where commands will run, or one line that says why they cannot and what to do. Proves what is not proved yet. */
export const chooseSandbox = Effect.fn("Live.chooseSandbox")(function* (request: SandboxRequest) {
  const path = yield* Path.Path
  const settings = yield* SettingsService
  const config = yield* settings.config.pipe(Effect.mapError((error) => refuse(error.message)))
  const inHome = (root: string) => (root.startsWith("~/") ? path.join(homedir(), root.slice(2)) : root)
  const found = needsProof(request)
    ? yield* Backends.findBackend({
        backend: request.backend ?? config.sandbox_backend ?? "auto",
        cache_root: settings.cache_root,
        hidden: [request.runRoot, settings.run_root, path.dirname(settings.config_path)],
        read_roots: (config.sandbox_read_roots ?? []).map(inHome),
        own: request.ownPrograms,
        ...(request.repository === undefined ? {} : { repository: request.repository })
      }).pipe(Effect.provide(NodeCrypto.layerSecureRandom))
    : null
  const choice = decideSandbox(request, found?.proof ?? null)
  switch (choice._tag) {
    case "Contained":
      // Only what proved itself is chosen, and that was found.
      return found === null || found.sandbox === null
        ? layerNoCommands
        : Layer.succeed(Sandbox, found.sandbox)
    case "Host":
      return layerUncontained
    case "Refused":
      return yield* refuse(choice.message)
  }
})

export interface RunOptions {
  /** Absolute. */
  readonly runRoot: string
  readonly sandbox: SandboxLayer
}

/** What runs checks on patches of a repository. */
const layerFloor = (options: RunOptions) =>
  Layer.mergeAll(layerStore(options), layerDigest, Git.layer, Checks.layer, Workspace.layer).pipe(
    Layer.provideMerge(options.sandbox)
  )

/** Everything that a run needs besides its models. */
export const layerRun = (options: RunOptions) =>
  Layer.mergeAll(layerFloor(options), Headless.layer, Tools.layer.pipe(Layer.provide(Search.layer)))

/** What the check of a receipt needs: the run's own floor, and a place to try its patch in. */
export const layerReceipt = (options: RunOptions) => Layer.mergeAll(layerFloor(options), Reproduction.layer)

/** What no replay reaches: its tools are asked for their schemas alone. */
const layerNoSearch = Layer.succeed(
  SearchService,
  SearchService.of({ search: () => Effect.die("a replay searches nothing") })
)

/** Everything that the replay of a recording needs. Nothing of it reaches a file, a process or the network. */
export const layerReplayOf = (recording: Recording, options: Replay.ReplayOptions = {}) =>
  Layer.mergeAll(
    Replay.layerReplay(recording, options).pipe(
      Layer.provide(Tools.layer.pipe(Layer.provide(layerNoSearch)))
    ),
    layerDigest
  )

/** The user's tree. `watcher`: the command that watches over an apply, the tree's root behind it; null for none. */
export const layerUserTree = (options: {
  readonly watcher: readonly [string, ...ReadonlyArray<string>] | null
}) =>
  UserTree.layer.pipe(
    Layer.provide(options.watcher === null ? Watcher.layerNone : Watcher.layerProcess(options.watcher)),
    Layer.provide(NodeCrypto.layerSecureRandom)
  )

/** What taking a patch home needs: past runs, and the user's tree. */
export const layerApply = (options: { readonly runRoot: string } & Parameters<typeof layerUserTree>[0]) =>
  Layer.mergeAll(layerStore(options), layerDigest, Git.layer, layerUserTree(options))

/** The models behind specs, or one line that says what is missing. Nothing is loaded yet. */
export const makeModels = (
  specs: readonly [ModelSpec, ...ReadonlyArray<ModelSpec>],
  options: { readonly allowCustomEndpoint: boolean }
) => {
  const make = (spec: ModelSpec) =>
    makeModel({
      provider: spec.provider,
      model: spec.model,
      apiUrl: spec.api_url,
      apiKey: spec.api_key,
      allowCustomEndpoint: options.allowCustomEndpoint
    }).pipe(Effect.mapError((error) => refuse(error.message)))
  const [first, ...rest] = specs
  return Effect.gen(function* () {
    const candidates: readonly [Model, ...ReadonlyArray<Model>] = [
      yield* make(first),
      ...(yield* Effect.forEach(rest, make))
    ]
    return candidates
  })
}
