import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { findBackend, type BackendOptions } from "../../src/layers/sandbox/Backends.ts"
import { layerNone } from "../../src/layers/sandbox/None.ts"
import { Sandbox } from "../../src/services/Sandbox.ts"

/** Whether this machine lets bubblewrap do anything at all: `.ci/run` installs it where it can, and says so where not. */
export const hasBubblewrap = (() => {
  try {
    execFileSync("bwrap", ["--unshare-user", "--ro-bind", "/", "/", "true"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})()

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layerSecureRandom)

export const found = (options: Partial<BackendOptions> = {}) =>
  findBackend({
    backend: "auto",
    cache_root: null,
    hidden: [],
    read_roots: [],
    own: [],
    ...options
  }).pipe(Effect.provide(platform))

/** The sandbox as the product finds it; one that starts nothing where there is none. */
export const layerFound = (options: Partial<BackendOptions> = {}) =>
  Layer.unwrap(
    Effect.map(found(options), ({ sandbox }) =>
      sandbox === null ? layerNone : Layer.succeed(Sandbox, sandbox)
    )
  )
