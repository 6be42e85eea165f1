import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

// One module graph per worker: importing Effect again for every file costs more than the tests. It asks for tests
// without module-level mutable state and without module mocks.
const shared = { isolate: false, pool: "forks", testTimeout: 30_000, hookTimeout: 60_000 } as const
// Much of most tests is waiting for processes, so one more worker than cores keeps them busy.
const maxWorkers = availableParallelism() + 1

export default defineConfig({
  test: {
    maxWorkers,
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/real/**"]
        }
      },
      {
        // Drives bin/looplane.js, so what the sources say now is built first; a run of unit tests alone builds nothing.
        test: {
          ...shared,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["scripts/build-for-tests.mjs"],
          testTimeout: 60_000
        }
      }
    ]
  }
})
