import { defineConfig } from "vitest/config"

// Tests that need foreign programs, accounts or a network: never part of `npm test`.
export default defineConfig({
  test: {
    isolate: false,
    pool: "forks",
    include: ["test/real/**/*.test.ts"],
    passWithNoTests: true,
    testTimeout: 600_000,
    hookTimeout: 120_000
  }
})
