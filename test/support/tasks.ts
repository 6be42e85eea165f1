import { Schema } from "effect"
import { defaultLimits, Task } from "../../src/domain/Task.ts"

/** A small task that tests start from. */
export const exampleTask: Task = Schema.decodeSync(Task)({
  instruction: "Fix add.",
  repository: "/repo",
  subdirectory: "",
  base: { kind: "commit", commit: "0123456789abcdef0123456789abcdef01234567" },
  allowed_paths: ["**"],
  verification: {
    mode: "checks",
    checks: [{ name: "check-1", argv: ["node", "--test"], timeout_seconds: 300 }]
  },
  limits: defaultLimits,
  dependencies: { mode: "auto" },
  setup: [],
  include: [],
  baseline: false
})
