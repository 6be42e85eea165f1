import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Path } from "effect"
import * as Memory from "../../../src/layers/fs/Memory.ts"
import { layerWith } from "../../../src/layers/settings/Environment.ts"
import { Settings } from "../../../src/services/Settings.ts"

const read = (env: Readonly<Record<string, string>>, account: string | null) =>
  Settings.pipe(
    Effect.provide(
      layerWith(() => account).pipe(
        Layer.provide([Memory.layer(), Path.layer, ConfigProvider.layer(ConfigProvider.fromUnknown(env))])
      )
    )
  )

describe("where settings and runs are", () => {
  it.effect("below HOME, and without one below the home of the account", () =>
    Effect.gen(function* () {
      const own = yield* read({ HOME: "/home/me" }, "/home/account")
      assert.strictEqual(own.run_root, "/home/me/.local/state/looplane/runs")
      for (const env of [{}, { HOME: "" }, { HOME: "here" }]) {
        const settings = yield* read(env, "/home/account")
        assert.strictEqual(settings.run_root, "/home/account/.local/state/looplane/runs")
        assert.strictEqual(settings.config_path, "/home/account/.config/looplane/config.json")
      }
    })
  )

  it.effect("without any home are refused, unless they are named", () =>
    Effect.gen(function* () {
      for (const env of [{}, { LOOPLANE_RUN_ROOT: "/runs" }, { XDG_CONFIG_HOME: "/config" }]) {
        const error = yield* Effect.flip(read(env, null))
        assert.match(error.message, /^[^\n]*HOME[^\n]*$/)
      }
      const named = yield* read({ LOOPLANE_RUN_ROOT: "/runs", XDG_CONFIG_HOME: "/config" }, null)
      assert.deepInclude(named, { run_root: "/runs", config_path: "/config/looplane/config.json" })
    })
  )
})
